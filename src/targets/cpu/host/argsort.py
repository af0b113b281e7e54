"""Stable argsort of host arrays: chooses an algorithm by dtype, length and number of rows.

All of it is about numbers that ascend: of what is to descend, of times and of floats by their bits, others are made
first that ascend and tie as the elements should.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from .at_sight import places_at_sight
from .copies import packed, shared_across, with_last
from .counting import argsort_few, rank_found
from .crew_rows import argsort_rows_by_crew
from .key_words import HALF, INDEX, Elements, Places, constants, numbers_of
from .numpy_sort import places_in_order
from .numpy_speed import numpy_argsorts_fast, numpy_sorts_slowly, numpy_sorts_words_soon
from .packed_argsort import argsort_at_once, argsort_packed, pack, places_packed, rank, rank_halves, unpack
from .partition_sort import loading_sorts
from .radix_sort import argsort_by_radix, suits_radix
from .row_networks import argsort_short_rows, least_for_networks
from .sample import is_monotonic, seems_constant

_UP = SortOrder.ASCENDING
_NARROW = 1 << 19  # elements of 32 bits: of more a radix sort scatters too far
_WINDOWS, _WINDOW = 8, 32  # how many neighbours are looked at, and how many in a row
_FEWEST, _LEAST = 6, _WINDOWS * _WINDOW  # elements of a row that is looked at with others, and of one alone
_WORD = 8  # bytes
_DIFFERENT, _FEW_ALIKE = 3, 3 << 6  # of so few that differ among some, in a row of less elements for a byte of one
LEAST_MIXED, _FEW_RUNS = 1 << 9, 4  # elements of a row that is looked at for runs, and of how many NumPy merges them
_AT_ONCE = 1 << 9  # elements of a row, for each byte of one: of more, NumPy sorts words sooner than it finds places
# Elements of some rows: of fewer NumPy finds the places sooner than words are made; and of one of them, at least, by
# the bytes of an element.
_LEAST_PACKED, _FEWEST_PACKED = 1 << 11, {4: 1 << 3, 8: 1 << 5}
_GLANCE, _FEW_FALLS = 16, 2  # elements of the first row, looked at first; how many may be less than the one before
_FAR_FIRST, _FAR = 1 << 6, 1 << 10  # how many are looked at that are far apart
# Elements that are worth a thread, of rows in order and of bytes: of fewer they wait for each other's calls of NumPy.
_IN_ORDER, BY_DIGITS = 1 << 19, 1 << 16
# Of those far apart: each doubling of the number of runs costs a merge of all, a third of what it costs to sort packed
# words. Few threads share shorter rows; these may rather have some elements out of place.
_MOST_TURNS_OF_LONG, _MOST_TURNS = 16, 48


def is_counted(numbers: HostArray) -> bool:
    """Whether NumPy places them by their digits."""
    return numbers.itemsize <= 2 and numbers.dtype != HALF


def argsort_row(row: HostArray, policy: HostSortPolicy) -> Places:
    """Where a row's elements come from, in order, by the first way that suits. Equal elements keep theirs."""
    size, is_wide, found = row.size, row.itemsize > 2, None
    if LEAST_MIXED <= size < policy.serial_below and not is_counted(row):
        if size >= policy.pack_from or not is_wide:
            found = places_at_sight(row)
        if found is None and is_wide:
            found = argsort_mixed(row, policy)
        if found is not None:
            return found
    if size < (policy.pack_from if is_wide else policy.deal_from):
        return places_in_order(row, -1)
    rows = packed(row)[np.newaxis]
    (found,) = (row.argsort(kind="stable"),) if _is_merged(rows, policy) else argsort_rows(rows, policy)
    return found


def argsort_rows(source: HostArray, policy: HostSortPolicy) -> Places:
    """The same of each row of a packed array."""
    rows, length = source.shape
    found = argsort_by_network(source, 1, _UP, policy) if source.size else np.empty(source.shape, np.intp)
    if found is not None:
        return found
    if source.size < policy.serial_below:
        return _of_rows(source, policy)
    places: Places = new_array(source.shape, INDEX)
    pool, is_narrow = shared_pool(), source.itemsize <= 2  # whose rows NumPy has, unless they are long
    long = max(policy.serial_below, policy.deal_from) if is_narrow else policy.serial_below
    is_shared = length >= long and share_each_row(rows, pool.threads, source.itemsize)
    if is_shared and can_argsort(source.dtype, source.nbytes):
        few = pool.of_at_most(policy.threads_for(8 * length))  # words of 64 bits are sorted
        for row, own in zip(source, places, strict=True):
            if rows > 1 and _is_merged(row[np.newaxis], policy):  # one alone has been looked at
                own[:] = row.argsort(kind="stable")
            else:
                argsort_one(row, own, policy, few)
    elif not argsort_rows_by_crew(source, places, policy):

        def write(own: slice) -> None:
            places[own] = _of_rows(source[own], policy)

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
    if _are_in_order(rows, policy):
        return places_shared(x, axis) if order is _UP else None  # which is asked again of what ascends
    places: Places = new_array(x.shape, INDEX)
    return places if argsort_short_rows(rows, places.transpose(axes), order, policy) else None


def places_shared(x: HostArray, axis: int, each: int = _IN_ORDER) -> Places:
    """By NumPy along one axis: in parts of the longest other one where threads share them, one for `each` so many
    elements."""
    pool = shared_pool().of_at_most(x.size // each)
    if pool.threads < 2:
        return places_in_order(x, axis)
    places: Places = np.empty(x.shape, np.intp)

    def write(part: tuple[slice, ...]) -> None:
        places[part] = places_in_order(x[part], axis)

    shared_across(x, axis, pool, write)
    return places


def _are_in_order(x: HostArray, policy: HostSortPolicy) -> bool:
    """Whether rows seem to be made of few runs, of elements that NumPy merges; or, of narrow ones, in order."""
    least = _FEWEST if x.itemsize > 2 else _WINDOW  # of bytes networks take less time
    if not least <= x.shape[-1] < x.size:
        return False
    rows = numbers_of(x[(0,) * (x.ndim - 2)])
    first = rows[0, :_GLANCE].tolist()
    if _FEW_FALLS < sum(map(gt, first, first[1:])) < len(first) - 1 - _FEW_FALLS:
        return False
    if x.itemsize > 2:
        return _has_long_runs(rows, policy)
    some = rows[:: -(-len(rows) // _WINDOWS)]
    far = some[:, :: -(-x.shape[-1] // _FAR_FIRST)]
    return all(are_all(np.less_equal(numbers[:, :-1], numbers[:, 1:])) for numbers in (some[:, :_WINDOW], far))


def argsort_mixed(row: HostArray, policy: HostSortPolicy) -> Places | None:
    """Of a row that one thread has, by NumPy's vector code, if it has any. None where its stable argsort suits: where a
    few elements that are far apart seem to be of few runs, which it merges, or hardly differ, so that it foresees what
    it branches by."""
    if not numpy_sorts_words_soon():
        return None
    size, itemsize, is_float = row.size, row.itemsize, row.dtype.kind == "f"
    some = _some_mixed(row)
    if not some:
        return None
    different = len(set(some))
    # Words of 64-bit floats that have equals are made twice; those of 32-bit integers are made soonest.
    suits = is_float or itemsize > 4 if different == len(some) else is_float and itemsize > 4
    if suits and size < _AT_ONCE * itemsize and numpy_argsorts_fast(itemsize):
        found = argsort_at_once(row)
        if found is not None:
            return found
    return places_packed(row, policy)


def are_packed_soon(x: HostArray, axis: int) -> bool:
    """Whether rows that are few in all are argsorted as packed words: as they are mixed."""
    if x.itemsize <= 2 or x.size < _LEAST_PACKED or x.shape[axis] < _FEWEST_PACKED[x.itemsize]:
        return False
    if not numpy_sorts_words_soon():
        return False
    rows = x.swapaxes(axis, -1)
    return bool(_some_mixed(rows[tuple([number >> 1 for number in rows.shape[:-1]])]))


def _some_mixed(row: HostArray) -> list[float]:
    """Elements that are far apart; empty where they seem to be of few runs, or hardly differ."""
    size = row.size
    step = size // _GLANCE or 1
    some: list[float] = row[step >> 1 :: step].tolist()
    if some == sorted(some, reverse=True) or (len(set(some)) <= _DIFFERENT and size < _FEW_ALIKE * row.itemsize):
        return []
    few = _FEW_RUNS if size >= _GLANCE else _FEW_FALLS
    return some if few <= sum(map(gt, some, some[1:])) < len(some) - few else []


def _has_long_runs(rows: HostArray, policy: HostSortPolicy) -> bool:
    """Whether neighbours in some rows, or all over a single one, mostly go on as they began, and those far apart too,
    so that NumPy's merge of runs has little to do: a few runs, or rows that are nearly in order."""
    row = rows[len(rows) // 2]
    if row.itemsize <= 2:
        return False
    if len(rows) == 1:
        step = row.size // _WINDOWS
        windows = row[: _WINDOWS * step].reshape(_WINDOWS, step)[:, :_WINDOW]
    else:
        windows = rows[:: -(-len(rows) // _WINDOWS), :_WINDOW]
    if _turns(windows) * _LEAST > policy.few_turns * windows.size:
        return False
    far: Elements = row[:: max(1, row.size // _FAR)]
    most = _MOST_TURNS if row.size < policy.serial_below else _MOST_TURNS_OF_LONG
    return row.size <= _WINDOW or _turns(far) * _FAR < most * far.size


def _is_merged(row: HostArray, policy: HostSortPolicy) -> bool:
    """The same of a single row, which NumPy merges then."""
    return row.size >= max(policy.pack_from, _LEAST) and _has_long_runs(row, policy)


def _turns(numbers: Elements) -> int:
    """How often what ascended in a row descends, or the other way round."""
    rises = numbers[..., :-1] <= numbers[..., 1:]
    return count_nonzero(rises[..., :-1] != rises[..., 1:])


def argsort_one(source: HostArray, places: Places, policy: HostSortPolicy, pool: Pool) -> None:
    """A row that is worth the compiled loops."""
    if source.itemsize <= 2 and source.size > LARGEST_U32:
        places[:] = _of_rows(source[np.newaxis], policy)[0]
    elif _numbered(source, places, pool):
        pass
    elif source.dtype == HALF:
        argsort_by_radix(_ranks(source, pool), places, pool.threads)
    elif source.itemsize > 2 and argsort_few(source, places, policy, pool):
        pass
    elif source.itemsize <= 2 or (
        source.itemsize == 4 and source.size <= _NARROW and suits_radix(source.size, source.size, source.dtype, policy)
    ):  # of a copy, as other threads may change what is counted first
        argsort_by_radix(source.copy(), places, pool.threads)
    else:
        argsort_packed(source, places, policy, pool)


def _ranks(halves: HostArray, pool: Pool) -> Elements:
    """Of float16, where the kernels would make them anew in each pass."""
    ranks: Elements = np.empty(halves.shape, np.uint16)
    share(rank_halves(), halves.size, pool, halves.view(np.int16), ranks, constants(halves.dtype, _UP))
    return ranks


def _numbered(source: HostArray, places: Places, pool: Pool) -> bool:
    """Writes the places of a row that ascends or, without equals, descends; False, and nothing done, if it does
    neither."""
    last, ascends = source.size - 1, is_monotonic(source, np.less_equal, pool)
    if not ascends and not is_monotonic(source, np.greater, pool):
        return False

    def number(own: slice) -> None:
        first, past = (own.start, own.stop) if ascends else (last - own.start, last - own.stop)
        places[own] = np.arange(first, past, 1 if ascends else -1)

    pool.over(source.size, number, -(-source.size // PIECE))
    return True


def _of_rows(source: HostArray, policy: HostSortPolicy) -> Places:
    """Of rows that one thread has."""
    rows, length = source.shape
    if not policy.packs(source.size, length, source.dtype):
        is_packed = are_packed_soon(source, 1)
    elif (source.itemsize > 4 or numpy_sorts_slowly(_WORD)) and seems_constant(source[rows // 2], few=2):
        is_packed = False  # NumPy's stable sort sees long runs
    else:
        is_packed = rows == 1 or length < _FEWEST or not _has_long_runs(source, policy)
    return places_packed(source, policy) if is_packed else places_in_order(source, 1)


def can_argsort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    return background.has((_argsorting, dtype), nbytes)


def _argsorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    size, is_half = dtype.itemsize, dtype == HALF
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
        argsort_by_radix(row, places, 1)
        yield None
