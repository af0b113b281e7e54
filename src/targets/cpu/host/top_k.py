"""Top-k of host arrays by NumPy and all threads: a threshold for each row, then whatever does not lie behind it.

The least elements of some columns of a row, more than k of them, give a threshold: the k-th of those is at least the
k-th of all. What it lets pass is put in order by value and index, so equal elements keep their order and the answer is
the first k of a stable argsort. A long row is cut into rows that the caches hold, whose first k compete. A few elements
of each of many rows, or of one that is not long, are found by a compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import chain
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ..background import Steps, background, in_turn
from ..crew import share_kernel
from ..loops import Kernel, place_of
from ..pool import shared_pool, slices
from .argsort import argsort_row, argsort_rows
from .key_words import Elements, Places, constants, numbers_of
from .numpy_sort import ascending, places_along, places_in_order
from .row_networks import least_for_networks
from .select_loops import MOST_SELECTED, select_in_rows, take_in_rows
from .threshold import comparable, first_equals, first_of

_INDEX: np.dtype[np.intp] = np.dtype(np.intp)

SHORT_ROWS = 1 << 11  # elements in all rows: sorted before anything else has begun
# The same of one row, of which as many are worth a loop where new ones come each time; of one or two bytes, which NumPy
# sorts by their digits, as many as of all rows.
_FEW = 1 << 8
_ORDERED, _BYTES_ORDERED = 1 << 5, 1 << 10  # elements of one of some rows that are sorted sooner than chosen from
_FEW_ROWS = 1 << 3  # which are looked at one by one
_MANY_ROWS = 1 << 12  # elements of a row at most that is looked at beside others
_ALONE = 1 << 16  # elements of a row that all threads look at, where there are fewer rows than threads
_TASK = 1 << 14  # elements at least that a thread takes at a time
_PIECE = 1 << 18  # elements of a long row that are looked at together
_BY_LOOP, _LOOKED_AT = 1 << 19, 1 << 17  # the same of what a compiled loop looks at, and of a part of it
_LARGE_SHARE = 1 << 5  # one of so many elements, or more of them: all are sorted
_TAKEN = 1 << 13  # elements that a compiled loop takes sooner
_FEW_SELECTED = 1 << 4  # that it selects in rows of any length
_MOST_THREADS = 4  # for calls of NumPy that are so short that more threads wait for Python's lock
_SHARED = 1 << 20  # bytes: below, one thread is done as soon as others have come


def top_k_rows(
    source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy
) -> tuple[HostArray, npt.NDArray[np.int64]]:  # fmt: skip
    """The first k elements of each row of a packed array in an order, NaN and NaT last, and where in the row they
    stand. Of equals the first come first."""
    found = _by_loop(source, k, order)
    if found is not None:
        return found
    places = _places(source, k, order, policy)
    return taken(source, places), places


def top_k_of_row(row: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> tuple[HostArray, Places]:
    """The same of one row."""
    if row.size > (SHORT_ROWS if row.itemsize == 1 else _FEW):
        found = _by_loop(row[np.newaxis], k, order)
        if found is not None:
            return found[0][0], found[1][0]
    places = _of_row(row, k, order, policy) if k else np.empty(0, np.intp)
    return row.take(places), places


def taken(packed: Elements, places: Places) -> Elements:
    """Elements of each row. NumPy's function for that takes as long as a short row."""
    length: int = packed.shape[1]
    (rows, k), size = places.shape, packed.itemsize
    if places.size >= _TAKEN and background.has(("take", size), in_turn(partial(take_in_rows, size)), packed.nbytes):
        results: Elements = new_array(places.shape, packed.dtype)
        words = packed.view(f"i{size}"), np.ascontiguousarray(places), results.view(f"i{size}")
        numbers = *chain(*map(place_of, words)), length, k
        share_kernel(take_in_rows(size), rows, numbers, places.nbytes + results.nbytes, least=-(-_TASK // k))
        return results
    starts: Places = np.arange(0, packed.size, length)
    return packed.reshape(-1).take(places + starts[:, np.newaxis])


def _places(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    rows, length = source.shape
    if not k or not rows:
        return np.empty((rows, k), np.intp)
    if source.size <= (SHORT_ROWS << 1 if source.itemsize == 1 else SHORT_ROWS):
        return places_in_order(source, 1, order)[:, :k].copy()
    if length <= _MANY_ROWS and rows > 1:
        return _of_short_rows(source, k, order, policy)
    places: Places = np.empty((rows, k), np.intp)
    for number in range(rows):
        places[number] = _of_row(source[number], k, order, policy)
    return places


def _of_row(row: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    size, near = row.size, None
    if 2 * k < size > (SHORT_ROWS if row.itemsize <= 2 else _FEW) and not _LARGE_SHARE * k > size > SHORT_ROWS:
        item = numbers_of(row).item
        seen = item(0), item(size >> 2), item(size >> 1), item(3 * size >> 2), item(size - 1)
        are_nans = all(number != number for number in seen)
        if size <= _PIECE and (are_nans or len({*seen}) < 3):
            equals = _equals_first(row, k, order)
            if equals is not None:
                return equals
        near = None if are_nans and size <= _PIECE else _near_first(row, k, order)
        if near is None and row.dtype.kind == "f" and (found := _before_nans(row, k, order)) is not None:
            return found
    some = row if near is None else row[near]
    places: Places
    if some.size > SHORT_ROWS:
        places = _argsorted(some[np.newaxis], k, order, policy)[0]
    else:
        places = argsort_row(some, order, policy)[:k]
    return places if near is None else near[places]


def _equals_first(row: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k of a row stand, if these are equal."""
    numbers, ascends = comparable(row, order)
    found = first_equals(numbers, numbers.min() if ascends else numbers.max(), k)
    return found if found.size == k else None


def _before_nans(row: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k of a row stand, of which fewer than that are numbers."""
    are_numbers = row == row
    near = are_numbers.nonzero()[0]
    if near.size >= k:
        return None
    places = near[ascending(row[near], order).argsort(kind="stable")]
    return np.concatenate([places, first_equals(are_numbers, np.False_, k - near.size)])


def _near_first(row: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k of a row stand, and some more; those that are equal as they lie. None where too few are
    numbers."""
    by_loop = _near_by_loop(row, k, order)
    if by_loop is not None:
        return _nearer(row, by_loop, k, order)
    pieces = row.size // max(_PIECE, _LARGE_SHARE * k)
    if pieces < 2:
        return first_of(*comparable(row, order), k)
    parts, found = slices(row.size, pieces), dict[int, Places | None]()

    def look(number: int) -> None:
        near = first_of(*comparable(row[parts[number]], order), k)
        found[number] = None if near is None else near + parts[number].start

    shared_pool().run(look, pieces)
    all_found = [near for _, near in sorted(found.items()) if near is not None]
    if len(all_found) < pieces:
        return None
    return _nearer(row, np.concatenate(all_found), k, order)


def _nearer(row: HostArray, near: Places, k: int, order: SortOrder) -> Places:
    """Of what was near the first in its part of a row, what is near the first in all."""
    again = first_of(*comparable(row[near], order), k)
    return near if again is None else near[again]


def _argsorted(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    everywhere: Places = new_array(source.shape, _INDEX)
    argsort_rows(source, everywhere, order, policy)
    if k == source.shape[1]:
        return everywhere
    places: Places = new_array((len(source), k), _INDEX)
    places[...] = everywhere[:, :k]
    return places


# -- by a compiled loop --------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Selecting:
    """The loop that selects in rows of a dtype, in an order."""

    job: tuple[object, ...]
    kernel: Callable[[], Kernel]
    steps: Steps
    word: np.dtype[np.signedinteger[Any]]
    constants: tuple[int, int]  # where they lie

    @classmethod
    @cache
    def of(cls, dtype: np.dtype[np.generic], order: SortOrder) -> _Selecting:
        kind = dtype.itemsize, dtype.kind == "f"
        kernel, kept = partial(select_in_rows, *kind), place_of(constants(dtype, order))  # which are kept for good
        return cls(("select", *kind), kernel, in_turn(kernel), np.dtype(f"i{dtype.itemsize}"), kept)

    def is_there(self, source: HostArray) -> bool:
        if source.size <= SHORT_ROWS:
            return background.has_for_many(self.job, self.steps)
        return background.has(self.job, self.steps, source.nbytes)

    def run(self, source: HostArray, places: Places, values: HostArray | None = None) -> None:
        (rows, k), length = places.shape, source.shape[1]
        found, wanted = ((0, 0), 0) if values is None else (place_of(values), k)
        where = *place_of(source.view(self.word)), *place_of(places), *found, *self.constants
        if source.size <= _TASK:
            self.kernel()(0, rows, *where, length, k, wanted)
        else:
            share_kernel(self.kernel(), rows, (*where, length, k, wanted), source.nbytes, least=-(-_TASK // length))


def _by_loop(source: HostArray, k: int, order: SortOrder) -> tuple[HostArray, Places] | None:
    """The first k elements of each row, and where they stand. None if other ways suit."""
    rows, length = source.shape
    if not 0 < k <= MOST_SELECTED or length <= (k if source.size <= SHORT_ROWS else max(2 * k, _ORDERED)):
        return None
    if k > _FEW_SELECTED and length < _LARGE_SHARE * k:
        return None
    if length > (_LOOKED_AT if rows == 1 else _ALONE) and rows < max(2, shared_pool().threads):
        return None
    loop = _Selecting.of(source.dtype, order)
    if not loop.is_there(source):
        return None
    make = np.empty if source.size <= SHORT_ROWS else new_array
    values, places = make((rows, k), source.dtype), make((rows, k), _INDEX)
    loop.run(source, places, values)
    return values, places


def _near_by_loop(row: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k of a row stand, and some more: the first k of each part, as if these were rows, and the few
    elements behind them all."""
    if row.size < _BY_LOOP or row.itemsize > 4 or not row.flags.c_contiguous:  # 64 bits are compared slowly
        return None
    rows = max(row.size // _LOOKED_AT, min(shared_pool().threads, row.size // _TASK))
    length = row.size // rows
    source = row[: rows * length].reshape(rows, length)
    loop = _Selecting.of(row.dtype, order)
    if k > MOST_SELECTED or not loop.is_there(source):
        return None
    places: Places = np.empty((rows, k), np.intp)
    loop.run(source, places)
    places += np.arange(0, rows * length, length)[:, np.newaxis]
    return np.concatenate((places.reshape(-1), np.arange(rows * length, row.size)))


# -- many rows ----------------------------------------------------------------------------------------------


def _of_short_rows(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    """Some of them at a time."""
    rows, length = source.shape
    are_sorted = length <= (_BYTES_ORDERED if source.itemsize == 1 else _ORDERED)
    are_sorted |= source.itemsize <= 2 and source.size < policy.serial_below  # by their digits
    halves = 5 if source.size >= least_for_networks(policy) else 4  # of k: of more elements some are chosen
    if are_sorted or 2 * length <= halves * k:
        return _argsorted(source, k, order, policy)
    chunk = max(1, policy.chunk // length)
    places: Places = np.empty((rows, k), np.intp)

    def work(number: int) -> None:
        own = slice(number * chunk, (number + 1) * chunk)
        words = ascending(source[own], order)
        places[own] = _within(words, _thresholds(words, k), k)

    chunks = -(-rows // chunk)
    if source.nbytes < _SHARED:
        for number in range(chunks):
            work(number)
    else:
        shared_pool().of_at_most(_MOST_THREADS).run(work, chunks)
    return places


def _thresholds(words: Elements, k: int) -> Elements:
    """Of each row, one that at least k of its numbers do not exceed; NaN where there are too few numbers."""
    width, least = words.shape[1], np.fmin if words.dtype.kind == "f" else np.minimum
    while width >= max(8 * k, 128):
        width //= 2
        words = least(words[:, :width], words[:, width : 2 * width])
    return np.partition(words, k - 1, axis=1)[:, k - 1 : k]


def _within(words: Elements, thresholds: Elements, k: int) -> Places:
    """Where the first k of each row stand, which are within its threshold."""
    rows, length = words.shape
    mask = words <= thresholds
    if words.dtype.kind == "f":
        mask[(thresholds != thresholds)[:, 0]] = True
    if rows <= _FEW_ROWS:
        near_ones = [one.nonzero()[0] for one in mask]
        return np.stack([near[words[row, near].argsort(kind="stable")[:k]] for row, near in enumerate(near_ones)])
    hits = mask.reshape(-1).nonzero()[0]
    if 2 * hits.size > words.size:  # mostly equal, of which NumPy makes long runs
        return places_along(words, 1, is_own=False)[:, :k]
    near, columns = words.reshape(-1).take(hits), hits % length
    if hits.size == rows * k:  # then k in each row, for none has fewer
        return taken(columns.reshape(rows, k), near.reshape(rows, k).argsort(axis=1, kind="stable"))
    row = hits // length
    counts = np.bincount(row, minlength=rows)
    slot = np.arange(hits.size) - (np.cumsum(counts) - counts)[row]
    shape = rows, int(counts.max())
    behind_all = np.nan if words.dtype.kind == "f" else np.iinfo(words.dtype).max
    padded, where = np.full(shape, behind_all, words.dtype), np.zeros(shape, np.intp)
    padded[row, slot], where[row, slot] = near, columns
    return taken(where, padded.argsort(axis=1, kind="stable")[:, :k])
