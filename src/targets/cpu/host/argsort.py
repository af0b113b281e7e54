"""Stable argsort of host arrays: chooses an algorithm by dtype, length and number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import gt

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import are_all, count_nonzero
from ..background import background
from ..crew import share
from ..loops import PIECE
from ..pool import Pool, share_each_row, shared_pool
from .counting import argsort_few, rank_found
from .crew_rows import argsort_rows_by_crew
from .key_words import Elements, Places, constants, numbers_of, ordered_words
from .numpy_sort import places_along, places_in_order
from .numpy_speed import numpy_argsorts_fast, numpy_sorts_slowly
from .packed_argsort import argsort_at_once, argsort_packed, pack, places_packed, rank, rank_halves, unpack
from .partition_sort import loading_sorts
from .radix_sort import argsort_by_radix, suits_radix
from .row_networks import argsort_short_rows, least_for_networks
from .sample import is_monotonic, seems_constant
from .strides import shared_across, with_last

INDEX: np.dtype[np.intp] = np.dtype(np.intp)
_NARROW = 1 << 19  # elements of 32 bits: of more a radix sort scatters too far
_WINDOWS, _WINDOW = 8, 32  # how many neighbours are looked at, and how many in a row
_FEWEST, _LEAST = 6, _WINDOWS * _WINDOW  # elements of a row that is looked at with others, and of one alone
_WORD = 8  # bytes
_DIFFERENT, _FEW_ALIKE = 3, 3 << 6  # of so few that differ among some, in a row of less elements for a byte of one
LEAST_MIXED, _FEW_RUNS = 5 << 7, 4  # elements of a row that is looked at for runs, and of how many NumPy merges them
_AT_ONCE = 1 << 9  # elements of a row, for each byte of one: of more, NumPy sorts words sooner than it finds places
_GLANCE, _FEW_FALLS = 16, 2  # elements of the first row, looked at first; how many may be less than the one before
_FAR_FIRST, _FAR = 1 << 6, 1 << 10  # how many are looked at that are far apart
# Elements that are worth a thread, of rows in order and of bytes: of fewer they wait for each other's calls of NumPy.
_IN_ORDER, BY_DIGITS = 1 << 19, 1 << 16
# Of those far apart: each doubling of the number of runs costs a merge of all, a third of what it costs to sort packed
# words. Few threads share shorter rows; these may rather have some elements out of place.
_MOST_TURNS_OF_LONG, _MOST_TURNS = 16, 48


def argsort_rows(source: HostArray, order: SortOrder, policy: HostSortPolicy) -> Places:
    """Where each row's elements come from, in order. Equal elements keep theirs."""
    rows, length = source.shape
    found = argsort_by_network(source, 1, order, policy) if source.size else np.empty(source.shape, np.intp)
    if found is not None:
        return found
    if source.size < policy.serial_below:
        return _of_rows(source, order, policy)
    places: Places = new_array(source.shape, INDEX)
    pool, is_narrow = shared_pool(), source.itemsize <= 2  # whose rows NumPy has, unless they are long
    long = max(policy.serial_below, policy.deal_from) if is_narrow else policy.serial_below
    is_shared = length >= long and share_each_row(rows, pool.threads, source.itemsize)
    if is_shared and can_argsort(source.dtype, source.nbytes):
        few = pool.of_at_most(policy.threads_for(8 * length))  # words of 64 bits are sorted
        for row, own in zip(source, places, strict=True):
            runs = argsort_runs(row, order, policy) if rows > 1 else None  # one alone has been looked at
            if runs is None:
                argsort_one(row, own, order, policy, few)
            else:
                own[:] = runs
    elif not argsort_rows_by_crew(source, places, order, policy):

        def write(own: slice) -> None:
            places[own] = _of_rows(source[own], order, policy)

        chunk = max(1, policy.chunk // length)
        pool.over(rows, write, -(-rows // chunk))
    return places


def argsort_by_network(x: HostArray, axis: int, order: SortOrder, policy: HostSortPolicy) -> Places | None:
    """Along an axis, where rows are short: by a network, or where they are mostly in order by NumPy, which merges runs.
    None where other ways suit."""
    if x.size < least_for_networks(policy) or x.ndim < 2:
        return None
    axes = with_last(x, axis)
    rows = x.transpose(axes)
    if _are_in_order(rows, order, policy):
        return places_shared(x, axis)
    places: Places = np.empty(x.shape, np.intp)
    return places if argsort_short_rows(rows, places.transpose(axes), order, policy) else None


def places_shared(x: HostArray, axis: int, each: int = _IN_ORDER) -> Places:
    """By NumPy along one axis: in parts of the longest other one where threads share them, one for `each` so many
    elements."""
    pool = shared_pool().of_at_most(x.size // each)
    if pool.threads < 2:
        return places_along(x, axis, is_own=False)
    places: Places = np.empty(x.shape, np.intp)

    def write(part: tuple[slice, ...]) -> None:
        places[part] = places_along(x[part], axis, is_own=False)

    shared_across(x, axis, pool, write)
    return places


def _are_in_order(x: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Whether rows seem to be made of few runs, of elements that NumPy merges; or, of narrow ones, in order."""
    least = _FEWEST if x.itemsize > 2 else _WINDOW  # of bytes networks take less time
    if not least <= x.shape[-1] < x.size or order is SortOrder.DESCENDING:
        return False
    rows = numbers_of(x[(0,) * (x.ndim - 2)])
    first = rows[0, :_GLANCE].tolist()
    if _FEW_FALLS < sum(map(gt, first, first[1:])) < len(first) - 1 - _FEW_FALLS:
        return False
    some = rows[:: -(-len(rows) // _WINDOWS)]
    windows = some[:, :_WINDOW]
    if x.itemsize > 2:
        return _has_long_runs(windows, rows[len(rows) // 2], order, policy)
    far = some[:, :: -(-x.shape[-1] // _FAR_FIRST)]
    return all(are_all(np.less_equal(numbers[:, :-1], numbers[:, 1:])) for numbers in (windows, far))


def argsort_mixed(row: HostArray, order: SortOrder, policy: HostSortPolicy, *, by_bits: bool = False) -> Places | None:
    """Of a row that one thread has, by NumPy's vector code, if it has any. None where its stable argsort suits: where a
    few elements that are far apart seem to be of few runs, which it merges, or hardly differ, so that it foresees what
    it branches by."""
    if numpy_sorts_slowly(_WORD):
        return None
    size, itemsize, is_float = row.size, row.itemsize, row.dtype.kind == "f"
    some: list[float] = numbers_of(row)[size // (2 * _GLANCE) :: size // _GLANCE].tolist()
    in_order, different = sorted(some), len(set(some))
    if some == in_order or some == in_order[::-1] or (different <= _DIFFERENT and size < _FEW_ALIKE * itemsize):
        return None
    if not _FEW_RUNS <= sum(map(gt, some, some[1:])) < len(some) - _FEW_RUNS:
        return None
    if by_bits:
        row, order = ordered_words(row, order), SortOrder.ASCENDING
    # Words of 64-bit floats that have equals are made twice; those of 32-bit integers are made soonest.
    suits = is_float or itemsize > 4 if different == len(some) else is_float and itemsize > 4
    if suits and size < _AT_ONCE * itemsize and numpy_argsorts_fast(itemsize):
        found = argsort_at_once(row, order)
        if found is not None:
            return found
    return places_packed(row, order, policy)


def argsort_row(row: HostArray, order: SortOrder, policy: HostSortPolicy) -> Places:
    """Of a row that one thread has, packed or not."""
    found = argsort_mixed(row, order, policy) if row.itemsize > 2 and row.size >= LEAST_MIXED else None
    return places_in_order(row, -1, order) if found is None else found


def argsort_runs(row: HostArray, order: SortOrder, policy: HostSortPolicy) -> Places | None:
    """The same of a row that is made of a few long runs, which NumPy merges; else None."""
    if row.size < max(policy.pack_from, _LEAST):
        return None
    step = row.size // _WINDOWS
    windows: Elements = row[: _WINDOWS * step].reshape(_WINDOWS, step)[:, :_WINDOW]
    return row.argsort(kind="stable") if _has_long_runs(windows, row, order, policy) else None


def _has_long_runs(windows: HostArray, row: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Whether neighbours mostly go on as they began, and those far apart too, so that NumPy's merge of runs has little
    to do: a few runs, or rows that are nearly in order."""
    if order is SortOrder.DESCENDING or row.itemsize <= 2:
        return False
    if _turns(windows) * _LEAST > policy.few_turns * windows.size:
        return False
    far: Elements = row[:: max(1, row.size // _FAR)]
    most = _MOST_TURNS if row.size < policy.serial_below else _MOST_TURNS_OF_LONG
    return row.size <= _WINDOW or _turns(far) * _FAR < most * far.size


def _turns(numbers: Elements) -> int:
    """How often what ascended in a row descends, or the other way round."""
    rises = numbers[..., :-1] <= numbers[..., 1:]
    return count_nonzero(rises[..., :-1] != rises[..., 1:])


def argsort_one(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> None:
    """A row that is worth the compiled loops."""
    if source.itemsize <= 2 and source.size > LARGEST_U32:
        places[:] = _of_rows(source[np.newaxis], order, policy)[0]
    elif _numbered(source, places, order, pool):
        pass
    elif source.dtype == np.float16:
        argsort_by_radix(_ranks(source, order, pool), places, SortOrder.ASCENDING, pool.threads)
    elif source.itemsize <= 2:  # of a copy, as other threads may change what is counted first
        argsort_by_radix(source.copy(), places, order, pool.threads)
    elif argsort_few(source, places, order, policy, pool):
        pass
    elif (
        source.itemsize == 4 and source.size <= _NARROW and suits_radix(source.size, source.size, source.dtype, policy)
    ):
        argsort_by_radix(source, places, order, pool.threads)
    else:
        argsort_packed(source, places, order, policy, pool)


def _ranks(halves: HostArray, order: SortOrder, pool: Pool) -> Elements:
    """Of float16, where the kernels would make them anew in each pass."""
    ranks: Elements = np.empty(halves.shape, np.uint16)
    share(rank_halves(), halves.size, pool, halves.view(np.int16), ranks, constants(halves.dtype, order))
    return ranks


def _numbered(source: HostArray, places: Places, order: SortOrder, pool: Pool) -> bool:
    """Writes the places of a row that is in this order or, without equals, in the other; False, and nothing done, if it
    is in neither."""
    numbers, last = numbers_of(source), source.size - 1
    if source.dtype.kind in "Mm" and np.iinfo(np.int64).min in (numbers[0], numbers[-1]):
        return False  # NaT is last in either
    same, other = (np.less_equal, np.greater) if order is SortOrder.ASCENDING else (np.greater_equal, np.less)
    is_same = is_monotonic(numbers, same, pool)
    if not is_same and not is_monotonic(numbers, other, pool):
        return False

    def number(own: slice) -> None:
        first, past = (own.start, own.stop) if is_same else (last - own.start, last - own.stop)
        places[own] = np.arange(first, past, 1 if is_same else -1)

    pool.over(source.size, number, -(-source.size // PIECE))
    return True


def _of_rows(source: HostArray, order: SortOrder, policy: HostSortPolicy) -> Places:
    """Of rows that one thread has."""
    rows, length = source.shape
    is_packed = policy.packs(source.size, length, source.dtype)
    if is_packed and (source.itemsize > 4 or numpy_sorts_slowly(_WORD)):
        is_packed = not seems_constant(source[rows // 2], few=2)  # NumPy's stable sort sees long runs
    if is_packed and rows > 1 and length >= _FEWEST:
        windows = source[:: -(-rows // _WINDOWS), :_WINDOW]
        is_packed = not _has_long_runs(windows, source[rows // 2], order, policy)
    return places_packed(source, order, policy) if is_packed else places_in_order(source, 1, order)


def can_argsort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    return background.has(("argsort", dtype), partial(_argsorting, dtype), nbytes)


def _argsorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    size, is_half = dtype.itemsize, dtype == np.float16
    if size >= 4:
        yield rank(size, dtype.kind == "f")
        yield pack()
        yield unpack()
        yield from loading_sorts(np.dtype(np.uint64))
        yield rank_found(size)
    if is_half:
        yield rank_halves()
        dtype = np.dtype(np.uint16)
    narrow = size <= 2 or (size == 4 and numpy_sorts_slowly(4))
    for counted in {dtype if narrow else np.dtype(np.uint8), dtype if size <= 2 else np.dtype(np.uint8)}:
        row: HostArray = np.zeros(2, counted)
        places: Places = np.empty(2, np.intp)
        argsort_by_radix(row, places, SortOrder.ASCENDING, 1)
        yield None
