"""What a workgroup does with one tile of a scan: fetch it, scan it, and put it back.

Memory is read and written element by element across the invocations, as it likes best; each combines elements that
lie together. In between a tile changes hands in workgroup memory.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..types.finishes import Finish
from ..types.indices import ScanKind
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.params import ScanPolicy
from ..types.scalars import U32

E = TypeVar("E")
S = TypeVar("S")
R = TypeVar("R")


@attrs.frozen
class Scanned(Generic[S]):
    """What the invocations before one hold, combined, and what all of them hold."""

    before: S
    total: S


def load_tile(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], first: U32, place: U32, count: U32,
    tile: Workgroup[S], mine: Registers[S], policy: ScanPolicy,
) -> S:  # fmt: skip
    """Fetches up to `count` elements from `first` on: `mine` is then my part of the tile. Gives it combined.

    `place` says where in its row the first one stands.
    """
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
    """Scans my part of the tile, from the state of all elements before it, and writes the tile to memory."""
    for i in dynamic_range(U32(0), U32(policy.items)):
        following = monoid.combine(before, mine[i])
        match kind:
            case ScanKind.INCLUSIVE:
                tile[cx.local_id * policy.items + i] = following
            case ScanKind.EXCLUSIVE:
                tile[cx.local_id * policy.items + i] = before
        before = following
    cx.barrier()
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = i * cx.group_size + cx.local_id
        if index < count:
            results[first + index] = finish.finish(tile[index])


def scan_subgroup(cx: Invocation, monoid: Monoid[E, S], mine: S) -> S:
    """What the lanes up to this one hold, combined."""
    distance = U32(1)
    while distance < cx.subgroup_size:
        before = cx.shuffle_up(mine, distance)
        if cx.lane >= distance:
            mine = monoid.combine(before, mine)
        distance = distance * 2
    return mine


def scan_workgroup(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S, policy: ScanPolicy
) -> Scanned[S]:
    """Over what each invocation holds. The caller waits before `shared` is used again."""
    if not policy.subgroups:
        before = exclusive_scan_workgroup(cx, monoid, shared, mine)
        return Scanned(before, shared[cx.group_size - 1])
    lanes = minimum(cx.subgroup_size, cx.group_size)
    up_to_me = scan_subgroup(cx, monoid, mine)
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
    """What the invocations before this one hold, combined. Afterwards the workgroup's total is the last of `shared`.

    Each round looks twice as far back as the one before; two barriers keep its reads before its writes.
    """
    shared[cx.local_id] = mine
    cx.barrier()
    distance = U32(1)
    while distance < cx.group_size:
        before = shared[cx.local_id - distance] if cx.local_id >= distance else monoid.identity()
        cx.barrier()
        shared[cx.local_id] = monoid.combine(before, shared[cx.local_id])
        cx.barrier()
        distance = distance * 2
    return shared[cx.local_id - 1] if cx.local_id > 0 else monoid.identity()
