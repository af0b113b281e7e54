"""One long row: parted about pivots by all threads, then its parts sorted by NumPy side by side.

NumPy's vectorised sort runs without the GIL. A pass of partition is cheap beside it, so each thread gets a part of its
own to sort. Input that is in order, or holds few different elements, is seen first.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import ArrayKey, key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool, slices
from .commit import put_in_place
from .few_sort import sort_few
from .key_words import Elements, bits_of, numbers_of
from .numpy_sort import sort_row
from .partition import balanced_pivots, copy_over, part_about, reverse_all
from .sample import Sample, Trend, seems_constant, trend_of
from .zeros_and_nans import minus_zero, nans_in_order, write_zeros, zeros_among


def sort_long(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> None:
    """Sorts a one-dimensional array of 32- or 64-bit elements. `results` is `source` itself, or lies apart."""
    key = key_for(source.dtype)
    if source.nbytes < policy.few_bytes_from and seems_constant(source):
        _sort_by_numpy(source, results, order)
        return
    numbers = numbers_of(source)
    sample = Sample.of(numbers, policy)
    if sample.different <= policy.some:
        if source.nbytes >= policy.few_bytes_from and sort_few(key, source, results, order, policy, pool):
            return
        are_equal = sample.different <= policy.skewed and source.nbytes < policy.skewed_bytes_from
        if are_equal or source.nbytes < policy.few_bytes_from:
            _sort_by_numpy(source, results, order)
            return
    match source.dtype.kind:
        case "f":
            _sort_floats(key, source, results, sample, order, policy, pool)
        case "M" | "m":
            sorted_ = numbers if results is source else results.view(np.int64)
            _sort_integers(numbers, sorted_, sample, order, policy, pool)
            if order is SortOrder.ASCENDING:
                _nat_last(sorted_, pool)
        case _:
            _sort_integers(source, results, sample, order, policy, pool)


def _sort_by_numpy(source: HostArray, results: HostArray, order: SortOrder) -> None:
    """On this thread. Integers that are to descend where they lie need no other memory: they are sorted, then turned
    round, each in one call into C, which leaves all of them there."""
    if results is source and order is SortOrder.DESCENDING and source.dtype.kind in "iu":
        from .order_kernels import reverse

        reverse(results, 0, 0)  # compiles it
        results.sort()
        reverse(results, 0, results.size // 2)
    else:
        sort_row(source, results, order)


def _sort_integers(
    source: Elements, results: Elements, sample: Sample, order: SortOrder, policy: HostSortPolicy, pool: Pool
) -> None:
    trend = trend_of(source, sample.elements, pool)
    pivots = balanced_pivots(sample, policy, pool) if trend is Trend.NEITHER else sample.numbers[:0]
    if not pivots.size:  # in place, each step leaves all elements there
        if results is not source:
            copy_over(source, results, pool)
        if trend is Trend.NEITHER:
            results.sort()
        if (trend is Trend.DESCENDS) is (order is SortOrder.ASCENDING):
            reverse_all(results, pool)
        return

    def goal(passes: int) -> Elements:
        return results if passes or results is not source else np.empty_like(source)

    parted = part_about(source, goal, pivots, None, policy, pool)
    sorted_ = parted.results
    _sort_parts(sorted_, parted.bounds, pool)
    if sorted_ is not results:
        put_in_place(sorted_ if order is SortOrder.ASCENDING else sorted_[::-1], results, pool)
    elif order is SortOrder.DESCENDING:
        reverse_all(results, pool)


def _sort_floats(
    key: ArrayKey,
    source: Elements,
    results: Elements,
    sample: Sample,
    order: SortOrder,
    policy: HostSortPolicy,
    pool: Pool,
) -> None:
    trend = trend_of(source, sample.elements, pool)
    if trend is not Trend.NEITHER:
        _put_in_order(source, results, trend, order, pool)
        return
    pivots = balanced_pivots(sample, policy, pool)
    special = _Special(policy.block)

    def goal(passes: int) -> Elements:
        is_plain = passes > 0 and special.nans == special.minus_zeros == 0  # else NumPy's sort does not keep all bits
        return results if is_plain or results is not source else np.empty_like(source)

    if pivots.size:
        parted = part_about(source, goal, pivots, special.move, policy, pool)
        sorted_ = parted.results
        nans = nans_in_order(key, parted.whole, special.nans, sample.elements, pool)
        _sort_parts(sorted_, parted.bounds, pool)
    else:
        sorted_ = goal(0)
        special.look(source, pool)
        nans = nans_in_order(key, source, special.nans, sample.elements, pool)
        copy_over(source, sorted_, pool)
        sorted_.sort()
    numbers = sorted_[: sorted_.size - special.nans]
    bits_of(sorted_)[numbers.size :] = nans
    if special.minus_zeros:
        write_zeros(zeros_among(numbers), special.minus_zeros)
    if sorted_ is not results and not special.nans:
        put_in_place(sorted_ if order is SortOrder.ASCENDING else sorted_[::-1], results, pool)
        return
    if order is SortOrder.DESCENDING:
        reverse_all(numbers, pool)
    if sorted_ is not results:
        put_in_place(sorted_, results, pool)


def _put_in_order(source: Elements, results: Elements, trend: Trend, order: SortOrder, pool: Pool) -> None:
    """Floats that are in an order, but for zeros' signs. In place, each step leaves all elements there."""
    if results is not source:
        copy_over(source, results, pool)
    if trend is Trend.DESCENDS:
        reverse_all(results, pool)
    zeros = zeros_among(results)
    write_zeros(zeros, int(np.count_nonzero(np.signbit(zeros))))
    if order is SortOrder.DESCENDING:
        reverse_all(results, pool)


@attrs.define
class _Special:
    """Counts the floats that NumPy does not tell apart, while they are read anyway."""

    block: int
    found: list[tuple[int, int]] = attrs.field(factory=list[tuple[int, int]])  # by thread: NaNs, -0.0

    def move(self, source: Elements, own: slice, pivot: Any, target: Elements, claimed: Any) -> None:
        from .partition_kernels import part_floats

        words = bits_of(source[own])
        self.found.append(part_floats(source[own], pivot, target, self.block, claimed, words, minus_zero(words)))

    def look(self, source: Elements, pool: Pool) -> None:
        from .partition_kernels import survey

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


def _nat_last(sorted_: npt.NDArray[np.int64], pool: Pool) -> None:
    """Moves the least integers, which are NaT, to the end."""
    count = int(sorted_.searchsorted(np.iinfo(np.int64).min, side="right"))
    if count:
        put_in_place(np.concatenate([sorted_[count:], sorted_[:count]]), sorted_, pool)


def _sort_parts(results: Elements, bounds: list[int], pool: Pool) -> None:
    pool.run(lambda part: results[bounds[part] : bounds[part + 1]].sort(), len(bounds) - 1)
