"""Stable argsort: an element's rank and its place are packed into one word, and the words are sorted.

No two words are equal, so any sort of them is stable.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ....types.keys import FloatKey
from ...base import HostArray
from ..alias import without_lock
from ..pool import Pool, shared_pool, slices
from .key_words import Elements, bits_of, numbers_of, ordered_ranks
from .loading import can_argsort
from .sample import Trend, order_of

Places = npt.NDArray[np.intp]
WORD_BITS = 64
_WINDOWS, _WINDOW = 8, 32  # how many neighbours are looked at, and how many in a row
_FEW_TIES = 8  # one of so many elements
_NUMBERS = 1 << 16
_SHORT_OF_BYTES = 32  # elements of a row
_LINE = 64  # bytes that the memory hands out at a time


def argsort_rows(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> None:
    """Where each row's elements come from, in order. Equal elements keep theirs."""
    rows, length = source.shape
    if not source.size:
        return
    if source.size < policy.serial_below:
        _argsort_chunk(source, places, order, policy)
        return
    pool = shared_pool()
    if length >= policy.serial_below and rows < 2 * pool.threads and can_argsort(source.dtype, source.nbytes):
        for row in range(rows):
            argsort_one(source[row], places[row], order, policy, pool)
        return
    chunk = max(1, policy.chunk // length)
    chunks = [slice(start, start + chunk) for start in range(0, rows, chunk)]
    pool.run(lambda number: _argsort_chunk(source[chunks[number]], places[chunks[number]], order, policy), len(chunks))


def argsort_spread_rows(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> bool:
    """The same of rows and places with any strides, in any byte order, if the rows are many and short: block by block,
    for a few columns of a matrix fill whole cache lines. Whether it is done."""
    rows, length = source.shape
    if not source.size or length < 2 or length >= policy.serial_below:
        return False
    pool = Pool(1) if source.size < policy.serial_below else shared_pool()
    block = max(_LINE // source.itemsize, policy.chunk // length)
    if rows < 2 * pool.threads * block:
        return False
    dtype = source.dtype.newbyteorder("=")

    def work(number: int) -> None:
        own = slice(number * block, (number + 1) * block)
        packed = np.array(source[own], dtype, order="C")
        found: Places = np.empty(packed.shape, np.intp)
        _argsort_chunk(packed, found, order, policy)
        places[own] = found

    pool.run(work, -(-rows // block))
    return True


def argsort_runs(row: HostArray, order: SortOrder, policy: HostSortPolicy) -> Places | None:
    """The same of a row that is made of a few long runs, which NumPy merges, or which are there already; else None."""
    if not _has_long_runs(row, order, policy):
        return None
    if row.size >= policy.deal_from and can_argsort(row.dtype, row.nbytes):
        places = new_array(row.shape, np.dtype(np.intp))
        if _numbered(without_lock(row), places, order, policy, shared_pool()):
            return places
    return np.argsort(row, kind="stable")


def _has_long_runs(row: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Whether neighbours mostly go on as they began, so that NumPy's merge of runs has little to do."""
    least = max(policy.pack_from, _WINDOWS * _WINDOW)
    if order is SortOrder.DESCENDING or row.itemsize <= 2 or row.size < least:
        return False
    step = row.size // _WINDOWS
    seen: Elements = row[: _WINDOWS * step].reshape(_WINDOWS, step)[:, :_WINDOW]
    rises = seen[:, :-1] <= seen[:, 1:]
    turns = np.count_nonzero(rises[:, :-1] != rises[:, 1:])
    return int(turns) <= policy.few_turns


def argsort_one(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> None:
    """A row that is worth the compiled loops."""
    from .counting_argsort import argsort_by_counting
    from .few_argsort import argsort_few
    from .packed_argsort import argsort_long

    source = without_lock(source)
    if source.itemsize <= 2 and source.size < policy.deal_from:
        _argsort_chunk(source[np.newaxis], places[np.newaxis], order, policy)
    elif _numbered(source, places, order, policy, pool):
        pass
    elif source.itemsize <= 2:
        argsort_by_counting(source, places, order, pool)
    elif not argsort_few(source, places, order, policy, pool):
        argsort_long(source, places, order, policy, pool)


def _numbered(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> bool:
    """Writes the places of a row that is in this order or the other; False, and nothing done, if it is in neither."""
    wanted = Trend.ASCENDS if order is SortOrder.ASCENDING else Trend.DESCENDS
    found, pieces = order_of(source, policy, pool), slices(places.size, 4 * pool.threads)
    if found is Trend.NEITHER:
        return False
    from .order_kernels import number, number_backwards

    numbers = numbers_of(source)

    def work(piece: int) -> None:
        own = pieces[piece]
        if found is wanted:
            number(places[own], own.start)
        else:
            number_backwards(numbers, places, own.start, own.stop)

    pool.run(work, len(pieces))
    return True


# -- short rows: NumPy alone -------------------------------------------------------------------------------


def _argsort_chunk(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> None:
    length = source.shape[1]
    plain = not policy.packs(source.size, length, source.dtype)
    if plain and order is SortOrder.ASCENDING and source.dtype != np.float16:
        places[...] = places_in_rows(source)
        return
    key = key_for(source.dtype)
    ranks = ordered_ranks(key, bits_of(source), order)
    place_bits = max(1, (length - 1).bit_length())
    needed = 8 * ranks.itemsize + place_bits
    if plain:
        places[...] = places_in_rows(ranks)
    elif needed <= WORD_BITS:
        _unpack(_sorted_words(ranks.astype(np.uint64), place_bits), place_bits, places)
    else:
        mine = ranks.copy() if np.may_share_memory(ranks, source) else ranks
        if isinstance(key, FloatKey) and order is SortOrder.ASCENDING:
            mine -= mine >= np.uint64(key.zero)  # so that the lowest bits of floats that are integers are alike
        mine -= mine.min()
        _argsort_wide(mine, place_bits, places)


def places_in_rows(source: Elements) -> Places:
    """NumPy's own stable argsort. Of bytes it looks at all 256, however short a row is: not at those of wider words."""
    if source.itemsize <= 2 and source.shape[1] <= _SHORT_OF_BYTES and source.dtype.kind in "biu":
        source = numbers_of(source).astype(np.int32)
    return source.argsort(axis=1, kind="stable")


def _argsort_wide(ranks: Elements, place_bits: int, places: Places) -> None:
    """By ranks, which are used up, and may not fit beside a place: less their lowest bits, if that is enough."""
    room = WORD_BITS - place_bits
    left_out = int(ranks.max()).bit_length() - room
    if left_out <= 0:
        _unpack(_sorted_words(ranks, place_bits), place_bits, places)
        return
    words = _sorted_words(ranks >> np.uint64(left_out), place_bits)
    _unpack(words, place_bits, places)
    if not int(np.bitwise_or.reduce(ranks, axis=None)) & ((1 << left_out) - 1):
        return  # what was left out is zero
    ties = words[:, 1:] ^ words[:, :-1] < np.uint64(1 << place_bits)
    count = np.count_nonzero(ties)
    if count > ranks.size // _FEW_TIES:
        # Twice: by the lowest bits of the ranks, then by the others.
        before = np.empty_like(places)
        _unpack(_sorted_words(ranks.copy(), place_bits), place_bits, before)
        high = np.take_along_axis(ranks, before, axis=1) >> np.uint64(room)
        _unpack(_sorted_words(high, place_bits), place_bits, places)
        places[...] = np.take_along_axis(before, places, axis=1)
    elif count:
        _settle(ranks, ties, places)


def _settle(ranks: Elements, ties: npt.NDArray[np.bool_], places: Places) -> None:
    """Sorts those places anew whose ranks tie with a neighbour's, as far as they were looked at."""
    tied = np.zeros(places.shape, np.bool_)
    tied[:, 1:] = ties
    tied[:, :-1] |= ties
    rows, columns = np.nonzero(tied)
    found = places[rows, columns]
    places[rows, columns] = found[np.lexsort((ranks[rows, found], rows))]


def _sorted_words(ranks: Elements, place_bits: int) -> Elements:
    """Words in order, each of a rank, less its highest bits if it finds no room, and of a place. Made of the ranks."""
    ranks <<= np.uint64(place_bits)
    ranks |= _numbers_below(ranks.shape[1])
    ranks.sort(axis=1)
    return ranks


def _numbers_below(count: int) -> Elements:
    return _first_numbers()[:count] if count <= _NUMBERS else np.arange(count, dtype=np.uint64)


@cache
def _first_numbers() -> Elements:
    """Kept: short-lived arrays of this size are what the system clears anew each time."""
    return np.arange(_NUMBERS, dtype=np.uint64)


def _unpack(words: Elements, place_bits: int, places: Places) -> None:
    np.bitwise_and(words, np.uint64((1 << place_bits) - 1), out=places.view(np.uint64))
