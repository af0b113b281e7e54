"""Sorts one long row: a parallel partition about pivots, then NumPy's SIMD sort of the parts in parallel.

NumPy's vectorised sort runs without the GIL. A pass of partition is cheap beside it, so each thread gets a part of its
own to sort. Input that is in order, or holds few different elements, is seen first.
"""

from __future__ import annotations

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool
from .commit import put_in_place
from .few_values import sort_few
from .key_words import Elements, numbers_of
from .numpy_sort import sort_row
from .partition import balanced_pivots, copy_over, reverse_all, sort_parts
from .sample import Monotonicity, Sample, monotonicity_of, seems_constant
from .ties import restore_ties


def sort_long(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool, stable: bool
) -> None:
    """Sorts a one-dimensional array of 32- or 64-bit elements. `results` is `source` itself, or lies apart; apart, if
    floats that tie are to keep their order."""
    is_short = source.nbytes < policy.few_bytes_from
    if is_short and seems_constant(source):
        sort_row(source, results, order, stable)
        return
    numbers = numbers_of(source)
    sample = Sample.of(numbers, policy)
    if sample.different <= policy.some:
        if not is_short and sort_few(key_for(source.dtype), source, results, order, policy, pool):
            if stable:
                restore_ties(source[np.newaxis], results[np.newaxis], order, stable)
            return
        if is_short or (sample.different <= policy.skewed and source.nbytes < policy.skewed_bytes_from):
            sort_row(source, results, order, stable)
            return
    trend = monotonicity_of(numbers, sample.elements, pool)
    ordered = results if results is not source or trend is not Monotonicity.NEITHER else np.empty_like(source)
    _put_in_order(numbers, numbers_of(ordered), sample, trend, policy, pool)
    _turn(numbers_of(ordered), order, source.dtype.kind, pool)
    if source.dtype.kind == "f":
        restore_ties(source[np.newaxis], ordered[np.newaxis], order, stable)
    if ordered is not results:
        put_in_place(ordered, results, pool)


def _put_in_order(
    numbers: Elements, ordered: Elements, sample: Sample, trend: Monotonicity, policy: HostSortPolicy, pool: Pool
) -> None:
    """Ascending, as NumPy has it."""
    pivots = balanced_pivots(sample, policy, pool) if trend is Monotonicity.NEITHER else sample.numbers[:0]
    if pivots.size:
        sort_parts(numbers, ordered, pivots, policy, pool)
        return
    if ordered is not numbers:
        copy_over(numbers, ordered, pool)
    if trend is Monotonicity.DESCENDS:
        reverse_all(ordered, pool)
    elif trend is Monotonicity.NEITHER:
        ordered.sort()


def _turn(ordered: Elements, order: SortOrder, kind: str, pool: Pool) -> None:
    """From NumPy's order of numbers to ours: descending, if it is to be, and NaN and NaT last."""
    if order is SortOrder.DESCENDING:
        numbers = ordered.size if kind != "f" else int(ordered.searchsorted(np.array([np.nan], ordered.dtype))[0])
        reverse_all(ordered[:numbers], pool)
    elif kind in "Mm":  # NaT is the least integer
        count = int(ordered.searchsorted(np.iinfo(np.int64).min, side="right"))
        if count:
            put_in_place(np.concatenate([ordered[count:], ordered[:count]]), ordered, pool)
