"""A workgroup's scan of a tile: load, scan, store. Loads and stores are striped over invocations, so that they are
coalesced; between, the tile is transposed in workgroup memory, and each scans a contiguous block."""

from __future__ import annotations

from typing import Generic

import attrs

from ..kernel.language import *
from ..types.params import ScanningPolicy, ScanPolicy


@attrs.frozen
class Scanned(Generic[S]):
    """An exclusive prefix over invocations, and the total."""

    before: S
    total: S


def load_tile(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], first: U32, place: U32, count: U32,
    tile: Workgroup[S], mine: Registers[S], policy: ScanPolicy,
) -> S:  # fmt: skip
    """Loads up to `count` elements from index `first`; this invocation's block is then in `mine`. Returns it combined.
    `place` is the index in the row of the first element."""
    if count >= policy.tile:
        found: Registers[E] = Registers(monoid.element, policy.items)
        for i in dynamic_range(U32(0), U32(policy.items)):
            found[i] = data[first + i * cx.group_size + cx.local_id]
        for i in dynamic_range(U32(0), U32(policy.items)):
            index = i * cx.group_size + cx.local_id
            tile[index] = monoid.lift(found[i], place + index)
    else:
        for i in dynamic_range(U32(0), U32(policy.items)):
            index = i * cx.group_size + cx.local_id
            tile[index] = monoid.lift(data[first + index], place + index) if index < count else monoid.identity()
    cx.barrier()
    total = monoid.identity()
    for i in dynamic_range(U32(0), U32(policy.items)):
        mine[i] = tile[cx.local_id * policy.items + i]
        total = monoid.combine(total, mine[i])
    return total


def store_tile(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], results: Storage[R], first: U32, count: U32,
    tile: Workgroup[S], mine: Registers[S], before: S, kind: ScanKind, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Scans this invocation's block, from the state of all elements before it, and stores the tile."""
    for i in dynamic_range(U32(0), U32(policy.items)):
        following = monoid.combine(before, mine[i])
        tile[cx.local_id * policy.items + i] = following if kind is ScanKind.INCLUSIVE else before
        before = following
    cx.barrier()
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = i * cx.group_size + cx.local_id
        if index < count:
            results[first + index] = finish.finish(tile[index])


def scan_lanes(cx: Invocation, monoid: Monoid[E, S], mine: S, rank: U32, ranks: U32) -> S:
    """An inclusive scan over so many lanes of a subgroup, by shuffles (Hillis-Steele)."""
    distance = U32(1)
    while distance < ranks:
        before = cx.shuffle_up(mine, distance)
        if rank >= distance:
            mine = monoid.combine(before, mine)
        distance = distance * 2
    return mine


def scan_workgroup(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S, policy: ScanningPolicy
) -> Scanned[S]:
    """An exclusive scan over a workgroup, and the total. The caller has a barrier before `shared` is used again."""
    if not policy.subgroups:
        before = exclusive_scan_workgroup(cx, monoid, shared, mine)
        return Scanned(before, shared[cx.group_size - 1])
    lanes = minimum(cx.subgroup_size, cx.group_size)
    up_to_me = scan_lanes(cx, monoid, mine, cx.lane, cx.subgroup_size)
    if cx.lane == lanes - 1:
        shared[cx.subgroup_id] = up_to_me
    cx.barrier()
    total = monoid.identity()
    earlier = monoid.identity()
    for i in dynamic_range(U32(0), cx.group_size // lanes):
        if i == cx.subgroup_id:
            earlier = total
        total = monoid.combine(total, shared[i])
    below = cx.shuffle_up(up_to_me, U32(1))
    return Scanned(monoid.combine(earlier, below) if cx.lane > 0 else earlier, total)


def exclusive_scan_workgroup(cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S) -> S:
    """An exclusive scan over a workgroup, in workgroup memory; leaves the total last in `shared`."""
    return exclusive_scan_ranks(cx, monoid, shared, mine, cx.local_id, cx.group_size, U32(1))


def exclusive_scan_ranks(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S, behind: U32, span: U32, step: U32
) -> S:
    """The same over invocations `step` apart, of which this is `behind` the first, and `span` is past the last
    (Hillis-Steele). Each round doubles the distance; two barriers separate its reads from its writes."""
    shared[cx.local_id] = mine
    cx.barrier()
    distance = step
    while distance < span:
        before = shared[cx.local_id - distance] if behind >= distance else monoid.identity()
        cx.barrier()
        shared[cx.local_id] = monoid.combine(before, shared[cx.local_id])
        cx.barrier()
        distance = distance * 2
    return shared[cx.local_id - step] if behind > 0 else monoid.identity()
