"""The schedule of sampled selection from long rows: sample, filter, rank; and the statistics of its threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs

from ..kernel.language import *
from ..types.monoids import OverStates
from .argsort import OwnWords
from .bitonic import bitonic_launches
from .candidates import DIGITS, digits_of, first_of
from .select_sampled import (
    SampledPolicy,
    SampleParams,
    select_anew,
    select_below,
    select_padded,
    select_ranked,
    select_sorted,
    select_threshold,
)

_FAILURE = 1e-10  # the probability that fewer than k elements pass a threshold


@attrs.frozen
class CandidateKey(OwnWords[Any]):
    """The key of candidates."""

    @property
    def greatest(self) -> Any:
        return self.word.last()


@attrs.frozen
class Plan:
    """The threshold's rank among the samples, and how many candidates pass it, with high probability at most."""

    rank: int
    capacity: int
    again: int  # the capacity after a second sampling; 0 if there is none

    @classmethod
    def of(cls, length: int, k: int, policy: SampledPolicy) -> Plan | None:
        """The plan for rows of a length; None where sampling does not pay."""
        expected = k * policy.samples / length
        rank = _poisson_quantile(expected)
        if 2 * rank >= policy.samples or k * policy.samples >= 1 << 32 or length < 4 * policy.samples:
            return None
        share = length / policy.samples
        capacity = min(length, math.ceil(share * _poisson_mean_above(rank + 1)))
        if share * (rank + 1) <= policy.few:
            return cls(rank, capacity, 0)
        # The more pass the first threshold, the more pass the second one.
        again = k * policy.samples / capacity + 1
        wanted = again + 6 * (math.sqrt(again) + 2) + 13
        left = capacity / policy.samples * _poisson_mean_above(math.ceil(wanted))
        again_capacity = max(policy.few, math.ceil(left))
        return cls(rank, capacity, again_capacity if 2 * again_capacity <= capacity else 0)

    def narrowings(self, length: int) -> Iterator[tuple[int, int]]:
        """For each sampling, the elements before it, and the capacity after it."""
        yield length, self.capacity
        if self.again:
            yield self.capacity, self.again


def _poisson_quantile(mean: float) -> int:
    """A quantile: a Poisson variable of a mean exceeds it with probability _FAILURE."""
    if mean > 100:
        return math.ceil(mean + 6.4 * math.sqrt(mean) + 12)
    count, term = 0, math.exp(-mean)
    beyond = 1 - term
    while beyond > _FAILURE:
        count += 1
        term *= mean / count
        beyond -= term
    return count


def _poisson_mean_above(count: int) -> float:
    """The mean for which a Poisson variable is below `count` with negligible probability."""
    return count + 6.4 * math.sqrt(count) + 15


def select_sampled(
    key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder,
    buffers: tuple[Buffer[E], Buffer[E], Buffer[U64]], plan: Plan, policy: SampledPolicy,
) -> Schedule:  # fmt: skip
    """All launches: sample and filter, once or twice; the exact fallback; sort the candidates."""
    data, values, indices = buffers
    source = first_of(key, order)
    state, digits = source.state, digits_of(source.state)
    thresholds: Buffer[Any] = Buffer("thresholds", state, rows, Role.SCRATCH)
    counts = Buffer("counts", U32, 2 * rows, Role.SCRATCH)
    rank, share = policy.group_size, max(1, policy.groups // rows)

    def params(length: int, groups: int, capacity: int) -> SampleParams:
        return SampleParams(U32(length), U32(k), U32(plan.rank), U32(groups), U32(capacity))

    def launches() -> Iterator[Launch]:
        left: Buffer[Any] = data
        elements: Monoid[Any, Any] = source
        level, capacity, ranking = 0, length, policy.samples // policy.ranked
        for level, (size, capacity) in enumerate(plan.narrowings(length)):
            into: Buffer[Any] = Buffer(f"candidates_{level}", state, rows * capacity, Role.SCRATCH)
            own = attrs.evolve(policy, items=min(2, policy.items)) if level else policy  # short: more workgroups
            filtering = min(share, -(-size // own.filter_tile))
            yield select_threshold.launch(
                Grid(rows * ranking, rank), elements, left, Workgroup(state, policy.samples),
                Workgroup(U32, policy.ranked), thresholds, counts, params(size, ranking, capacity), level, policy,
            )  # fmt: skip
            yield select_below.launch(
                Grid(rows * filtering, policy.filter_group), elements, left, thresholds,
                Workgroup(state, policy.staged), Workgroup(U32, 2), into, counts, params(size, filtering, capacity),
                level, own,
            )  # fmt: skip
            left, elements = into, OverStates(source)
        yield select_anew.launch(
            Grid(rows, policy.filter_group), source, data, left, counts, Workgroup(U32, DIGITS), Workgroup(U32, 1),
            params(length, 1, capacity), U32(plan.capacity), level, digits,
        )  # fmt: skip
        if k < policy.sorted_from:
            groups = -(-capacity // policy.ranked)
            yield select_ranked.launch(
                Grid(rows * groups, rank), left, counts, data, Workgroup(U32, policy.ranked), values, indices,
                params(length, groups, capacity), level, policy,
            )  # fmt: skip
        else:
            grid, shared = Grid(rows * share, rank), params(length, share, capacity)
            yield select_padded.launch(grid, source, left, counts, shared, level)
            ascending: SortableKey[Any, Any] = CandidateKey(state, state)
            yield from bitonic_launches(ascending, left, rows, capacity, SortOrder.ASCENDING, policy.network)
            yield select_sorted.launch(grid, left, data, values, indices, shared)

    return Schedule(buffers, tuple(launches()))
