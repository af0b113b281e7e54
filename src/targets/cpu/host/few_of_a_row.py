"""NumPy's sort of so few elements of one row, in ascending order, that each question asked of them takes a part of the
time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...base import HostArray
from ...counts import count_nonzero
from .float_ties import FloatTies
from .numpy_sort import lengths_sorted_stably

Sorted: TypeAlias = Callable[[HostArray], HostArray]

FEW_TIMES_OF_A_ROW = 1 << 9  # fewer are sorted sooner than the integers of their bits
MOST_HALVES = 1 << 8  # the same of float16


def sorter_of_few(
    dtype: np.dtype[np.generic], most: int, stable: bool, go_on: Sorted, by_bits: Sorted | None
) -> Sorted:  # fmt: skip
    """Sorts up to `most` elements at once. `go_on` takes more, and whatever is to be looked at; `by_bits` a copy that
    may be written to."""
    if dtype.kind == "f" and dtype.isnative:
        return _of_floats(dtype, most if dtype.itemsize > 2 else min(most, MOST_HALVES), stable, go_on, by_bits)
    if dtype.kind == "f" or (dtype.kind in "Mm" and not dtype.isnative):
        return go_on
    by_radix = lengths_sorted_stably(dtype).start
    few = FEW_TIMES_OF_A_ROW if dtype.kind in "Mm" else min(most, by_radix - 1) if by_radix else most

    def sort(x: HostArray) -> HostArray:
        if x.size > few:
            return go_on(x)
        results = x.copy()
        results.sort()
        return results

    return sort


def _of_floats(
    dtype: np.dtype[np.generic], few: int, stable: bool, go_on: Sorted, by_bits: Sorted | None
) -> Sorted:  # fmt: skip
    ties = FloatTies.of(dtype)
    counted = ties.few

    def sort(x: HostArray) -> HostArray:
        size = x.size
        if not 0 < size <= few:
            return go_on(x)
        results = x.copy()
        if (size > counted or count_nonzero(results) != size) and ties.has_minus_zero(results):
            return go_on(x) if by_bits is None else by_bits(results)
        results.sort()
        greatest = results.item(-1)  # NaN, where there is one
        return results if greatest == greatest or ties.puts_nans_back(x, results, stable) else go_on(x)

    return sort
