"""Rows that are sorted sooner than by a sort, or their places found: of a handful of different words, or in one order
or the other."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...counts import count_nonzero
from ..background import background
from ..pool import ALONE, shared_pool
from .key_words import Elements, Places, bits_of, numbers_of, ordered_ranks
from .numpy_sort import restore_ties
from .radix_sort import suits_radix
from .runs import HANDFUL, HANDFUL_OF_NUMPY, Runs, counting_each, handful_of
from .sample import is_monotonic, some_words

_SEEN = 5  # elements that are looked at first
_DIFFERENT = 3  # of these, and a row may be of a handful
_MOST_HALVES, _LOOKED = 1 << 13, 1 << 14  # elements: of more, which are a run or equal, NumPy takes longer
_AT_A_GLANCE = 32  # elements of such a row that are looked at then
_FLOATS = 1 << 15  # elements: fewer that are alike are sorted sooner than looked at


def sorted_at_sight(row: Elements, order: SortOrder, policy: HostSortPolicy, stable: bool) -> Elements | None:
    """A new row, of one that holds a handful of words, or is in one order or the other and not for threads to work on.
    None, and hardly any time spent, if some of its elements tell that it is neither."""
    item, size, found = numbers_of(row).item, row.size, None
    a, b, c, d, e = item(0), item(size >> 2), item(size >> 1), item(3 * size >> 2), item(-1)
    different = len({a, b, c, d, e})
    if different < _SEEN or a != a:  # a NaN is not its own equal
        if _is_counted_sooner(row, policy):
            found = _counted(row, order, policy, stable)
        elif different < _DIFFERENT:
            return None
    seems_in_order = a != e and (a <= b <= c <= d <= e or a >= b >= c >= d >= e)
    if found is None and seems_in_order and size < policy.part_from(row.dtype):
        found = _of_neighbours(row, order, stable)
    return found


def _is_counted_sooner(row: Elements, policy: HostSortPolicy) -> bool:
    """Whether NumPy's sort of a few different elements takes longer: of many, where it has no vector code, or looks at
    floats that tie."""
    is_long = row.nbytes >= policy.few_bytes_from or (row.dtype.kind == "f" and row.size >= _FLOATS)
    return row.itemsize == 2 or is_long or suits_radix(row.size, row.size, row.dtype, policy)


def _counted(row: Elements, order: SortOrder, policy: HostSortPolicy, stable: bool) -> Elements | None:
    """By counting each word; no compiler is loaded for short rows."""
    size, pool = row.itemsize, None
    if row.nbytes >= policy.few_bytes_from and background.has(("each", size), partial(counting_each, size), row.nbytes):
        pool = shared_pool()
    words = handful_of(row, order, HANDFUL_OF_NUMPY if pool is None else HANDFUL, stable=stable)
    if words is None:
        return None
    packed = np.ascontiguousarray(row)
    runs = Runs.counted(packed, words, pool)
    if runs is None:
        return None
    results = new_array(row.shape, row.dtype) if packed is row else packed
    if packed is row or words.size > 1:
        runs.fill(results, False, pool)
    return results


def _of_neighbours(row: Elements, order: SortOrder, stable: bool) -> Elements | None:
    """By comparing all neighbours. NaT is the least integer and yet last; float16 is compared in more time."""
    numbers, kind = numbers_of(row), row.dtype.kind
    if row.dtype == np.float16 or (kind in "Mm" and np.iinfo(np.int64).min in (numbers[0], numbers[-1])):
        return None
    ascends = is_monotonic(numbers, np.less_equal, ALONE)
    if not ascends and not is_monotonic(numbers, np.greater_equal, ALONE):
        return None
    results = _copied(row if ascends == (order is SortOrder.ASCENDING) else row[::-1])
    if kind == "f":
        restore_ties(row, results, order, stable)
    return results


def places_at_sight(row: Elements, order: SortOrder, most: int) -> Places | None:
    """Where the elements of a row come from, in order, if it is a run that NumPy merges with nothing, or, of at most so
    many elements, holds a handful of words. None, and hardly any time spent, if some tell that it is neither."""
    size, kind, is_half = row.size, row.dtype.kind, row.itemsize == 2  # of which NumPy takes its time
    item, half = numbers_of(row).item, size >> 1
    a, b, c, d, e = item(0), item(size >> 2), item(half), item(3 * size >> 2), item(-1)
    is_one, is_run = a == e, False
    if (
        order is SortOrder.DESCENDING
        or kind in "Mm"
        or (is_half and size > _MOST_HALVES)
        or (is_one and size > _LOOKED)
    ):
        pass
    elif a <= b <= c <= d <= e:
        is_run = a <= item(1) <= item(2) <= item(3) and c <= item(half + 1) <= item(half + 2) <= item(half + 3)
    elif a >= b >= c >= d >= e and not is_half:
        is_run = a >= item(1) >= item(2) >= item(3) and c >= item(half + 1) >= item(half + 2) >= item(half + 3)
    elif is_half and a != a:
        is_run = b != b and c != c and d != d and e != e
    if is_run:
        return row.argsort(kind="stable")
    return _places_of_few(row, order) if size <= most and (a != a or len({a, b, c, d, e}) < _DIFFERENT) else None


def _places_of_few(row: Elements, order: SortOrder) -> Places | None:
    """By looking for each word."""
    words, bits = frozenset(some_words(row, _AT_A_GLANCE)), bits_of(row)
    if len(words) > HANDFUL_OF_NUMPY:
        return None
    tied = _tied(row.dtype, order, words)
    if len(tied) == 1:
        return np.arange(row.size) if sum(count_nonzero(bits == word) for word in tied[0]) == row.size else None
    found: list[Places] = []
    for first, *others in tied:
        are_such = bits == first
        for word in others:
            are_such |= bits == word
        found.append(are_such.nonzero()[0])
    return np.concatenate(found) if sum(map(len, found)) == row.size else None


@lru_cache(maxsize=64)
def _tied(dtype: np.dtype[np.generic], order: SortOrder, words: frozenset[int]) -> list[list[Elements]]:
    """Those that share a rank, in order, as arrays of no dimension, which are compared with soonest."""
    tied: dict[int, list[Elements]] = {}
    for word in words:
        bits = np.array([word], f"u{dtype.itemsize}")
        tied.setdefault(int(ordered_ranks(bits.view(dtype), order)[0]), []).append(bits.reshape(()))
    return [tied[rank] for rank in sorted(tied)]


def _copied(row: Elements) -> Elements:
    results = new_array(row.shape, row.dtype)
    results[...] = row
    return results
