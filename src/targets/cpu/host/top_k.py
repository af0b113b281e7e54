"""Top-k of host arrays by NumPy and all threads: a threshold for each row, then whatever does not lie behind it.

The least elements of some columns of a row, more than k of them, give a threshold: the k-th of those is at least the
k-th of all. What it lets pass is put in order by value and index, so equal elements keep their order and the answer is
the first k of a stable argsort. A long row is cut into rows that the caches hold, whose first k compete. A few elements
of each of many rows, or of one that is not long, are found by a compiled loop.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from ..pool import shared_pool, slices
from .argsort import argsort_row, argsort_rows
from .key_words import Elements, Places, numbers_of, ordered_ranks, ordered_words
from .numpy_sort import ascending, places_along, places_in_order
from .row_networks import least_for_networks
from .select_loops import LARGE_SHARE, ORDERED, SHORT_ROWS, selected_in_parts, selected_in_rows
from .strides import taken_in_rows

_INDEX: np.dtype[np.intp] = np.dtype(np.intp)

# Elements of one row, of which as many are worth a loop where new ones come each time; of one or two bytes, which NumPy
# sorts by their digits, as many as of all rows.
_FEW = 1 << 8
_BYTES_ORDERED = 1 << 10  # bytes of one of some rows that are sorted sooner than chosen from
_PARTED = 1 << 12  # elements that a partition takes sooner than the best of columns are found
_TIED = 1 << 7  # elements that stand besides the k first ones, where hardly any are equal
_AT_ONCE = 1 << 10  # elements among which equals are looked for
_COLUMN, _SHORTEST_COLUMN = 64, 8  # elements, of whose best the k-th is a threshold
_FEW_ROWS = 1 << 3  # that are looked at one by one
_MANY_ROWS = 1 << 12  # elements of a row at most that is looked at beside others
_PIECE = 1 << 18  # elements of a long row that are looked at together
_MOST_THREADS = 4  # for calls of NumPy that are so short that more threads wait for Python's lock
_SHARED = 1 << 20  # bytes: below, one thread is done as soon as others have come


def top_k_rows(
    source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy
) -> tuple[HostArray, npt.NDArray[np.int64]]:  # fmt: skip
    """The first k elements of each row of a packed array in an order, NaN and NaT last, and where in the row they
    stand. Of equals the first come first."""
    found = selected_in_rows(source, k, order)
    if found is not None:
        return found
    places = _places(source, k, order, policy)
    return taken_in_rows(source, places), places


def top_k_of_row(row: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> tuple[HostArray, Places]:
    """The same of one row."""
    if row.size > (SHORT_ROWS if row.itemsize == 1 else _FEW):
        found = selected_in_rows(row[np.newaxis], k, order)
        if found is not None:
            return found[0][0], found[1][0]
    places = _of_row(row, k, order, policy) if k else np.empty(0, np.intp)
    return row.take(places), places


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
    if 2 * k < size > (SHORT_ROWS if row.itemsize <= 2 else _FEW) and not LARGE_SHARE * k > size > SHORT_ROWS:
        item = numbers_of(row).item
        seen = item(0), item(size >> 2), item(size >> 1), item(3 * size >> 2), item(size - 1)
        are_nans = all(number != number for number in seen)
        if size <= _PIECE and (are_nans or len({*seen}) < 3):
            numbers, ascends = _comparable(row, order)
            equals = _first_equals(numbers, numbers.min() if ascends else numbers.max(), k)
            if equals.size == k:
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


def _before_nans(row: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k of a row stand, of which fewer than that are numbers."""
    are_numbers = row == row
    near = are_numbers.nonzero()[0]
    if near.size >= k:
        return None
    places = near[ascending(row[near], order).argsort(kind="stable")]
    return np.concatenate([places, _first_equals(are_numbers, np.False_, k - near.size)])


def _near_first(row: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k of a row stand, and some more; those that are equal as they lie. None where too few are
    numbers."""
    by_loop = selected_in_parts(row, k, order)
    if by_loop is not None:
        return _nearer(row, by_loop, k, order)
    pieces = row.size // max(_PIECE, LARGE_SHARE * k)
    if pieces < 2:
        return _first_of(*_comparable(row, order), k)
    parts, found = slices(row.size, pieces), dict[int, Places | None]()

    def look(number: int) -> None:
        near = _first_of(*_comparable(row[parts[number]], order), k)
        found[number] = None if near is None else near + parts[number].start

    shared_pool().run(look, pieces)
    all_found = [near for _, near in sorted(found.items()) if near is not None]
    if len(all_found) < pieces:
        return None
    return _nearer(row, np.concatenate(all_found), k, order)


def _nearer(row: HostArray, near: Places, k: int, order: SortOrder) -> Places:
    """Of what was near the first in its part of a row, what is near the first in all."""
    again = _first_of(*_comparable(row[near], order), k)
    return near if again is None else near[again]


def _comparable(elements: Elements, order: SortOrder) -> tuple[Elements, bool]:
    """Numbers that compare as elements do, NaN in no way; and whether the first are the least of them."""
    match elements.dtype.kind:
        case "f" if elements.dtype.itemsize == 2:  # which are compared as integers in a tenth of the time
            return ordered_ranks(elements, order), True
        case "M" | "m":
            return ordered_words(elements, order), True
        case _:
            return numbers_of(elements), order is SortOrder.ASCENDING


def _first_of(numbers: Elements, ascends: bool, k: int) -> Places | None:
    """Where they stand, k and some more; None where too few are numbers."""
    height = min(_COLUMN, numbers.size // (4 * k))
    if height >= _SHORTEST_COLUMN and (numbers.size > _PARTED or numbers.itemsize <= 2):
        width = numbers.size // height
        best = _best_of(numbers[: height * width].reshape(height, width), ascends)
    else:
        best = numbers.copy()
    if best.dtype.kind == "f" and count_nonzero(are_numbers := best == best) < best.size:
        best = best[are_numbers]
    if best.size < k:
        return None
    place, reaches, exceeds = (k - 1, np.less_equal, np.less) if ascends else (-k, np.greater_equal, np.greater)
    best.partition(place)
    threshold = best[place]
    mask: npt.NDArray[np.bool_] = reaches(numbers, threshold)
    if count_nonzero(mask) <= 8 * k + _TIED:
        return mask.nonzero()[0]
    near = exceeds(numbers, threshold).nonzero()[0]  # many are equal to it: the first of them will do
    return np.concatenate([near, _first_equals(numbers, threshold, k - near.size)])


def _first_equals(numbers: Elements, threshold: Elements | np.bool_, count: int) -> Places:
    """Where so many numbers that are equal to it stand, or all that are."""
    size, equal = 0, np.empty(0, np.intp)
    while equal.size < count and size < numbers.size:
        size = 8 * size + _AT_ONCE
        equal = (numbers[:size] == threshold).nonzero()[0]
    return equal[: max(0, count)]


def _best_of(columns: Elements, ascends: bool) -> Elements:
    """The least or the greatest number of each column that has any; of others NaN."""
    best: Elements = columns.min(0) if ascends else columns.max(0)
    if best.dtype.kind == "f" and count_nonzero(best == best) < best.size:
        best = (np.fmin if ascends else np.fmax).reduce(columns, 0)  # which takes several times as long
    return best


def _argsorted(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    everywhere: Places = new_array(source.shape, _INDEX)
    argsort_rows(source, everywhere, order, policy)
    if k == source.shape[1]:
        return everywhere
    places: Places = new_array((len(source), k), _INDEX)
    places[...] = everywhere[:, :k]
    return places


# -- many rows ----------------------------------------------------------------------------------------------


def _of_short_rows(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    """Some of them at a time."""
    rows, length = source.shape
    are_sorted = length <= (_BYTES_ORDERED if source.itemsize == 1 else ORDERED)
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
        return taken_in_rows(columns.reshape(rows, k), near.reshape(rows, k).argsort(axis=1, kind="stable"))
    row = hits // length
    counts = np.bincount(row, minlength=rows)
    slot = np.arange(hits.size) - (np.cumsum(counts) - counts)[row]
    shape = rows, int(counts.max())
    behind_all = np.nan if words.dtype.kind == "f" else np.iinfo(words.dtype).max
    padded, where = np.full(shape, behind_all, words.dtype), np.zeros(shape, np.intp)
    padded[row, slot], where[row, slot] = near, columns
    return taken_in_rows(where, padded.argsort(axis=1, kind="stable")[:, :k])
