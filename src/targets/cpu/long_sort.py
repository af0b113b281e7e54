"""One long row: parted about pivots by all threads, then its parts sorted by NumPy side by side.

NumPy's vectorised sort runs without the GIL. A pass of partition is cheap beside it, so each thread gets a part of its
own to sort. Input that is in order, or holds few different elements, is seen first.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ...types.dtypes import ArrayKey, key_for
from ...types.indices import SortOrder
from ..base import HostArray
from .few_sort import sort_few
from .parting import balanced_pivots, copy_over, part_about, reverse_all
from .plan import Sample, Trend, seems_constant, slices, trend_of
from .policy import SortPolicy
from .pool import Pool
from .ranks import Elements, bits_of, numbers_of
from .row_sort import sort_chunk
from .special import minus_zero, nans_in_order, write_zeros, zeros_among


def sort_long(source: HostArray, results: HostArray, order: SortOrder, policy: SortPolicy, pool: Pool) -> None:
    """Sorts a one-dimensional array of 32- or 64-bit elements. `results` may lie where `source` does."""
    key = key_for(source.dtype)
    if source.nbytes < policy.few_bytes_from and seems_constant(source):
        sort_chunk(source[np.newaxis], results[np.newaxis], order)  # by NumPy, on this thread
        return
    numbers = numbers_of(source)
    sample = Sample.of(numbers, policy)
    if sample.different <= policy.some:
        if source.nbytes >= policy.few_bytes_from and sort_few(key, source, results, order, policy, pool):
            return
        are_equal = sample.different <= policy.skewed and source.nbytes < policy.skewed_bytes_from
        if are_equal or source.nbytes < policy.few_bytes_from:
            sort_chunk(source[np.newaxis], results[np.newaxis], order)
            return
    match source.dtype.kind:
        case "f":
            _sort_floats(key, source, results, sample, order, policy, pool)
        case "M" | "m":
            sorted_ = results.view(np.int64)
            _sort_integers(numbers, sorted_, sample, policy, pool)
            if order is SortOrder.DESCENDING:
                reverse_all(sorted_, pool)
            else:
                _nat_last(sorted_)
        case _:
            _sort_integers(source, results, sample, policy, pool)
            if order is SortOrder.DESCENDING:
                reverse_all(results, pool)


def _sort_integers(source: Elements, results: Elements, sample: Sample, policy: SortPolicy, pool: Pool) -> None:
    if _copied_in_order(source, results, trend_of(source, sample.elements, pool), pool):
        return
    pivots = balanced_pivots(sample, policy, pool)
    if not pivots.size:
        copy_over(source, results, pool)
        results.sort()
        return
    parted = part_about(source, results, pivots, None, policy, pool)
    _sort_parts(results, parted.bounds, pool)


def _sort_floats(
    key: ArrayKey,
    source: Elements,
    results: Elements,
    sample: Sample,
    order: SortOrder,
    policy: SortPolicy,
    pool: Pool,
) -> None:
    if _copied_in_order(source, results, trend_of(source, sample.elements, pool), pool):
        zeros = zeros_among(results)
        write_zeros(zeros, int(np.count_nonzero(np.signbit(zeros))))
        if order is SortOrder.DESCENDING:
            reverse_all(results, pool)
        return
    pivots = balanced_pivots(sample, policy, pool)
    special = _Special(policy.block)
    if pivots.size:
        parted = part_about(source, results, pivots, special.move, policy, pool)
        nans = nans_in_order(key, parted.whole, special.nans, sample.elements, pool)
        _sort_parts(results, parted.bounds, pool)
    else:
        special.look(source, pool)
        nans = nans_in_order(key, source, special.nans, sample.elements, pool)
        copy_over(source, results, pool)
        results.sort()
    numbers = results[: results.size - special.nans]
    bits_of(results)[numbers.size :] = nans
    if special.minus_zeros:
        write_zeros(zeros_among(numbers), special.minus_zeros)
    if order is SortOrder.DESCENDING:
        reverse_all(numbers, pool)


@attrs.define
class _Special:
    """Counts the floats that NumPy does not tell apart, while they are read anyway."""

    block: int
    found: list[tuple[int, int]] = attrs.field(factory=list[tuple[int, int]])  # by thread: NaNs, -0.0

    def move(self, source: Elements, own: slice, pivot: Any, target: Elements, claimed: Any) -> None:
        from .part_kernels import part_floats

        words = bits_of(source[own])
        self.found.append(part_floats(source[own], pivot, target, self.block, claimed, words, minus_zero(words)))

    def look(self, source: Elements, pool: Pool) -> None:
        from .part_kernels import survey

        words, pieces = bits_of(source), slices(source.size, 4 * pool.threads)

        def look(number: int) -> None:
            piece = pieces[number]
            self.found.append(survey(source[piece], words[piece], minus_zero(words)))

        pool.run(look, len(pieces))

    @property
    def nans(self) -> int:
        return sum(nans for nans, _ in self.found)

    @property
    def minus_zeros(self) -> int:
        return sum(minus_zeros for _, minus_zeros in self.found)


def _nat_last(sorted_: npt.NDArray[np.int64]) -> None:
    """Moves the least integers, which are NaT, to the end."""
    nat = np.iinfo(np.int64).min
    count = int(sorted_.searchsorted(nat, side="right"))
    if count:
        sorted_[: sorted_.size - count] = sorted_[count:]
        sorted_[sorted_.size - count :] = nat


def _copied_in_order(source: Elements, results: Elements, trend: Trend, pool: Pool) -> bool:
    """Whether the row is in order, and so is in the results now, ascending."""
    match trend:
        case Trend.NEITHER:
            return False
        case Trend.ASCENDS:
            copy_over(source, results, pool)
        case Trend.DESCENDS:
            copy_over(source, results, pool)
            reverse_all(results, pool)
    return True


def _sort_parts(results: Elements, bounds: list[int], pool: Pool) -> None:
    pool.run(lambda part: results[bounds[part] : bounds[part + 1]].sort(), len(bounds) - 1)
