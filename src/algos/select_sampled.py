"""Selection from long rows by sampling: a sample gives a threshold, and one pass filters the row by it.

The threshold is the sample that at least k elements pass, except with a probability of about 1e-10. Those that pass are
candidates; many of them are sampled and filtered once more. They are sorted by counting how many precede each; for
large k, by a network. A bad threshold shows in their number: a further launch then finds the k-th element by radix
select. So the result is exact, whatever the data.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.language import *
from ..types.checks import as_int, power_within, require, within
from ..types.params import MOST_GROUPS, MOST_INVOCATIONS, BitonicPolicy
from .candidates import C
from .select_rows import kth_of
from .sizes import LARGEST_U32

D = TypeVar("D")

_ALL = LARGEST_U32  # the rank of a threshold that all elements pass


@attrs.frozen
class SampledPolicy(Policy):
    """Tuning of sampled selection."""

    # samples of a row
    samples: int = attrs.field(default=4096, converter=as_int, validator=power_within(2, 1 << 16))
    # the workgroup size of the ranking kernels
    group_size: int = attrs.field(default=256, converter=as_int, validator=power_within(1, MOST_INVOCATIONS))
    # elements that such a workgroup ranks: group_size / ranked invocations share the comparisons of each
    ranked: int = attrs.field(default=32, converter=as_int, validator=power_within(1, MOST_INVOCATIONS))
    # the workgroup size of the filter, and the elements that each invocation loads at a time
    filter_group: int = attrs.field(default=512, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    items: int = attrs.field(default=16, converter=as_int, validator=within(1, 32))
    # workgroups of the filter over all rows, at most
    groups: int = attrs.field(default=264, converter=as_int, validator=within(1, MOST_GROUPS))
    # candidates that a workgroup stages in workgroup memory
    staged: int = attrs.field(default=2048, converter=as_int, validator=within(1, 1 << 20))
    # expected candidates up to which there is no second sampling
    few: int = attrs.field(default=4096, converter=as_int, validator=within(1, 1 << 20))
    # k from which candidates are sorted by a network
    sorted_from: int = attrs.field(default=4097, converter=as_int, validator=within(1, MOST_GROUPS))
    network: BitonicPolicy = attrs.field(factory=BitonicPolicy)

    def __attrs_post_init__(self) -> None:
        require(self.ranked <= min(self.group_size, self.samples), self, "ranked", "at most group_size and samples")
        require(self.few >= self.samples, self, "few", f"at least samples={self.samples}")

    @property
    def sample_bits(self) -> int:
        return self.samples.bit_length() - 1

    @property
    def filter_tile(self) -> int:
        return self.filter_group * self.items


@attrs.frozen
class SampleParams:
    length: U32
    k: U32
    rank: U32  # of the threshold among the samples, from 0
    groups_per_row: U32
    capacity: U32  # the candidates that fit for each row


def sampled_place(number: U32, count: U32, policy: SampledPolicy) -> U32:
    """The index of a sample: at a hashed position in one of as many equal strata as there are samples."""
    low = U32((U64(count) * U64(number)) >> policy.sample_bits)
    width = U32((U64(count) * U64(number + 1)) >> policy.sample_bits) - low
    hashed = number * 0x9E3779B1
    hashed = (hashed ^ (hashed >> 15)) * 0x85EBCA77
    hashed = hashed ^ (hashed >> 13)
    return low + U32((U64(hashed) * U64(width)) >> 32)


def rank_among(k: U32, count: U32, policy: SampledPolicy) -> U32:
    """The threshold's rank: the samples expected among the first k, and about six standard deviations more."""
    if count <= policy.few:
        return U32(_ALL)
    expected = k * policy.samples // count + 1
    root = U32(1) << ((33 - leading_zeros(expected)) // 2)
    root = (root + expected // root) // 2 + 1
    root = (root + expected // root) // 2 + 1
    return expected + 6 * root + 12


@kernel
def select_threshold(
    cx: Invocation, source: Monoid[E, C], data: Storage[E], samples: Workgroup[C], ranks: Workgroup[U32],
    thresholds: Storage[C], counts: Storage[U32], params: SampleParams, level: int, policy: SampledPolicy,
) -> None:  # fmt: skip
    """Ranks the samples of every row, and writes the one of the wanted rank as threshold. Every workgroup loads all
    samples, and ranks `policy.ranked` of them. Level 1 is the second sampling, of the candidates of the first."""
    row = cx.group_id // params.groups_per_row
    part = cx.group_id - row * params.groups_per_row
    count = minimum(counts.atomic_load(2 * row), params.length) if level > 0 else params.length
    wanted = rank_among(params.k, count, policy) if level > 0 else params.rank
    if count >= policy.samples:
        for i in dynamic_range(cx.local_id, U32(policy.samples), cx.group_size):
            place = sampled_place(i, count, policy)
            samples[i] = source.lift(data[row * params.length + place], place)
    else:
        for i in dynamic_range(cx.local_id, U32(policy.samples), cx.group_size):
            samples[i] = source.identity()
    if cx.local_id < policy.ranked:
        ranks[cx.local_id] = U32(0)
    cx.barrier()
    mine = cx.local_id % policy.ranked
    ranked = samples[part * policy.ranked + mine]
    before = U32(0)
    for i in dynamic_range(cx.local_id // policy.ranked, U32(policy.samples), cx.group_size // policy.ranked):
        before += U32(samples[i] < ranked)
    ranks.atomic_add(mine, before)
    cx.barrier()
    if cx.local_id < policy.ranked:
        if ranks[cx.local_id] == wanted:
            thresholds[row] = ranked
    if part == 0 and cx.local_id == 0:
        counts.atomic_store(2 * row + level, U32(0))
        if wanted >= policy.samples:
            thresholds[row] = source.identity()


@kernel
def select_below(
    cx: Invocation, source: Monoid[E, C], data: Storage[E], thresholds: Storage[C], staged: Workgroup[C],
    shared: Workgroup[U32], candidates: Storage[C], counts: Storage[U32], params: SampleParams, level: int,
    policy: SampledPolicy,
) -> None:  # fmt: skip
    """Compacts the elements that pass their row's threshold, unordered, and counts them. A workgroup stages candidates
    in workgroup memory, and reserves room for them by one atomic."""
    row = cx.group_id // params.groups_per_row
    part = cx.group_id - row * params.groups_per_row
    first = row * params.length
    count = minimum(counts.atomic_load(2 * row), params.length) if level > 0 else params.length
    counter = 2 * row + level
    threshold = thresholds[row]
    if cx.local_id == 0:
        shared.atomic_store(U32(0), U32(0))
    cx.barrier()
    elements: Registers[E] = Registers(source.element, policy.items)
    tile = U32(policy.filter_tile)
    for start in dynamic_range(part * tile, count, params.groups_per_row * tile):
        hits = U32(0)
        if count - start >= tile:
            for i in dynamic_range(U32(0), U32(policy.items)):
                elements[i] = data[first + start + i * cx.group_size + cx.local_id]
            for i in dynamic_range(U32(0), U32(policy.items)):
                place = start + i * cx.group_size + cx.local_id
                hits |= U32(not threshold < source.lift(elements[i], place)) << i
        else:
            for i in dynamic_range(U32(0), U32(policy.items)):
                offset = i * cx.group_size + cx.local_id
                if offset < count - start:
                    place = start + offset
                    hits |= U32(not threshold < source.lift(data[first + place], place)) << i
        if hits != 0:
            found = count_ones(hits)
            slot = shared.atomic_add(U32(0), found)
            end = slot + found
            behind = slot if slot > policy.staged else U32(policy.staged)  # from here on, workgroup memory is full
            room = counts.atomic_add(counter, end - behind) if end > behind else U32(0)
            while hits != 0:
                i = trailing_zeros(hits)
                hits = hits & (hits - 1)
                place = start + i * cx.group_size + cx.local_id
                state = source.lift(data[first + place], place)
                if slot < policy.staged:
                    staged[slot] = state
                elif room + (slot - behind) < params.capacity:
                    candidates[row * params.capacity + room + (slot - behind)] = state
                slot += 1
    cx.barrier()
    mine = minimum(shared.atomic_load(U32(0)), U32(policy.staged))
    if cx.local_id == 0:
        shared.atomic_store(U32(1), counts.atomic_add(counter, mine))
    cx.barrier()
    room = shared.atomic_load(U32(1))
    for i in dynamic_range(cx.local_id, mine, cx.group_size):
        if room + i < params.capacity:
            candidates[row * params.capacity + room + i] = staged[i]


@kernel
def select_anew(
    cx: Invocation, source: Monoid[E, C], data: Storage[E], candidates: Storage[C], counts: Storage[U32],
    counters: Workgroup[U32], shared: Workgroup[U32], params: SampleParams, first_capacity: U32, level: int,
    digits: int,
) -> None:  # fmt: skip
    """The exact fallback, a workgroup for each row: if the threshold failed, radix selects the k-th element."""
    row = cx.group_id
    first = row * params.length
    if cx.local_id == 0:
        count, before = counts.atomic_load(2 * row + level), counts.atomic_load(2 * row)
        shared[0] = U32(count < params.k or count > params.capacity or before > first_capacity)
    if cx.load_uniform(shared, 0) != 0:
        threshold = kth_of(cx, source, data, first, U32(0), params.length, params.k, counters, digits)
        if cx.local_id == 0:
            counters[0] = U32(0)
        cx.barrier()
        for place in dynamic_range(cx.local_id, params.length, cx.group_size):
            state = source.lift(data[first + place], place)
            if not threshold < state:
                candidates[row * params.capacity + counters.atomic_add(U32(0), U32(1))] = state
        if cx.local_id == 0:
            counts.atomic_store(2 * row + level, params.k)


@kernel
def select_ranked(
    cx: Invocation, candidates: Storage[C], counts: Storage[U32], data: Storage[D], ranks: Workgroup[U32],
    values: Storage[D], indices: Storage[U64], params: SampleParams, level: int, policy: SampledPolicy,
) -> None:  # fmt: skip
    """Writes the first k candidates, sorted by rank: each counts how many precede it."""
    row = cx.group_id // params.groups_per_row
    part = cx.group_id - row * params.groups_per_row
    count = counts.atomic_load(2 * row + level)
    first = row * params.capacity
    mine = part * policy.ranked + cx.local_id % policy.ranked
    if cx.local_id < policy.ranked:
        ranks[cx.local_id] = U32(0)
    cx.barrier()
    if mine < count:
        ranked = candidates[first + mine]
        before = U32(0)
        for i in dynamic_range(cx.local_id // policy.ranked, count, cx.group_size // policy.ranked):
            before += U32(candidates[first + i] < ranked)
        ranks.atomic_add(cx.local_id % policy.ranked, before)
    cx.barrier()
    if cx.local_id < policy.ranked and mine < count:
        rank = ranks[cx.local_id]
        if rank < params.k:
            place = candidates[first + mine].place
            indices[row * params.k + rank] = U64(place)
            values[row * params.k + rank] = data[row * params.length + place]


@kernel
def select_padded(
    cx: Invocation, source: Monoid[E, C], candidates: Storage[C], counts: Storage[U32], params: SampleParams, level: int
) -> None:
    """Pads the candidates with the identity, which comes last, for the bitonic network."""
    row = cx.group_id // params.groups_per_row
    part = cx.group_id - row * params.groups_per_row
    start = counts.atomic_load(2 * row + level) + part * cx.group_size + cx.local_id
    for i in dynamic_range(start, params.capacity, params.groups_per_row * cx.group_size):
        candidates[row * params.capacity + i] = source.identity()


@kernel
def select_sorted(
    cx: Invocation, candidates: Storage[C], data: Storage[D], values: Storage[D], indices: Storage[U64],
    params: SampleParams,
) -> None:  # fmt: skip
    """Writes the first k of the sorted candidates."""
    row = cx.group_id // params.groups_per_row
    part = cx.group_id - row * params.groups_per_row
    for i in dynamic_range(part * cx.group_size + cx.local_id, params.k, params.groups_per_row * cx.group_size):
        place = candidates[row * params.capacity + i].place
        indices[row * params.k + i] = U64(place)
        values[row * params.k + i] = data[row * params.length + place]
