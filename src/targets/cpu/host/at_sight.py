"""Rows that are sorted sooner than by a sort: of a handful of different words, or in one order or the other."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ..background import background
from ..pool import ALONE, shared_pool
from .key_words import Elements, numbers_of
from .numpy_sort import restore_ties
from .radix_sort import suits_radix
from .runs import HANDFUL, HANDFUL_OF_NUMPY, Runs, counting_each, handful_of
from .sample import is_monotonic

_SEEN = 5  # elements that are looked at first
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
        elif different < 3:
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


def _copied(row: Elements) -> Elements:
    results = new_array(row.shape, row.dtype)
    results[...] = row
    return results
