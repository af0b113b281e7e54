"""Prefix scan over any monoid, once for all targets.

Reduce, then scan: the first launch combines every tile into one state, the second scans those states in one workgroup,
the third scans every tile from the state before it. No workgroup waits for another, so this runs anywhere. Elements
are combined in their own order: `combine` must be associative, but need not be commutative.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.indices import ScanKind
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.params import ScanParams, ScanPolicy
from ..types.scalars import U32

E = TypeVar("E")
S = TypeVar("S")


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


@kernel
def scan_totals(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], shared: Workgroup[S], totals: Storage[S],
    params: ScanParams, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Combines every tile into one state."""
    first = (cx.group_id * cx.group_size + cx.local_id) * policy.items
    total = monoid.identity()
    for i in dynamic_range(U32(0), U32(policy.items)):
        if first + i < params.num_elements:
            total = monoid.combine(total, monoid.lift(data[first + i], first + i))
    before = exclusive_scan_workgroup(cx, monoid, shared, total)
    if cx.local_id == cx.group_size - 1:
        totals[cx.group_id] = monoid.combine(before, total)


@kernel
def scan_carries(
    cx: Invocation,
    monoid: Monoid[E, S],
    totals: Storage[S],
    shared: Workgroup[S],
    params: ScanParams,
    policy: ScanPolicy,
) -> None:
    """Turns every tile's state into that of all tiles before it. One workgroup, which goes from block to block."""
    block = cx.group_size * policy.items
    carry = monoid.identity()
    mine: Registers[S] = Registers(monoid.state, policy.items)
    for start in dynamic_range(U32(0), params.num_elements, block):
        first = start + cx.local_id * policy.items
        total = monoid.identity()
        for i in dynamic_range(U32(0), U32(policy.items)):
            mine[i] = totals[first + i] if first + i < params.num_elements else monoid.identity()
            total = monoid.combine(total, mine[i])
        before = monoid.combine(carry, exclusive_scan_workgroup(cx, monoid, shared, total))
        for i in dynamic_range(U32(0), U32(policy.items)):
            if first + i < params.num_elements:
                totals[first + i] = before
            before = monoid.combine(before, mine[i])
        carry = monoid.combine(carry, shared[cx.group_size - 1])
        cx.barrier()


@kernel
def scan_tiles(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], carries: Storage[S], shared: Workgroup[S],
    results: Storage[S], params: ScanParams, policy: ScanPolicy, kind: ScanKind,
) -> None:  # fmt: skip
    """Scans every tile, from the state of all tiles before it."""
    first = (cx.group_id * cx.group_size + cx.local_id) * policy.items
    mine: Registers[S] = Registers(monoid.state, policy.items)
    total = monoid.identity()
    for i in dynamic_range(U32(0), U32(policy.items)):
        mine[i] = monoid.identity()
        if first + i < params.num_elements:
            mine[i] = monoid.lift(data[first + i], first + i)
        total = monoid.combine(total, mine[i])
    prefix = monoid.combine(carries[cx.group_id], exclusive_scan_workgroup(cx, monoid, shared, total))
    for i in dynamic_range(U32(0), U32(policy.items)):
        following = monoid.combine(prefix, mine[i])
        if first + i < params.num_elements:
            match kind:
                case ScanKind.INCLUSIVE:
                    results[first + i] = following
                case ScanKind.EXCLUSIVE:
                    results[first + i] = prefix
        prefix = following


def scan_launches(
    monoid: Monoid[E, S], data: Buffer[E], carries: Buffer[S], results: Buffer[S], length: int, kind: ScanKind,
    policy: ScanPolicy,
) -> tuple[Launch, ...]:  # fmt: skip
    """The three launches, over buffers of the caller's; `carries` holds `scan_tiles_of(length, policy)` states."""
    tiles = scan_tiles_of(length, policy)
    shared = Workgroup(monoid.state, policy.group_size)
    params = ScanParams(U32(length))
    return (
        scan_totals.launch(Grid(tiles, policy.group_size), monoid, data, shared, carries, params, policy),
        scan_carries.launch(Grid(1, policy.group_size), monoid, carries, shared, ScanParams(U32(tiles)), policy),
        scan_tiles.launch(Grid(tiles, policy.group_size), monoid, data, carries, shared, results, params, policy, kind),
    )


def scan_tiles_of(length: int, policy: ScanPolicy) -> int:
    """How many tiles a scan of this length has."""
    return -(-length // (policy.group_size * policy.items))


def scan_array(monoid: Monoid[E, S], length: int, kind: ScanKind, policy: ScanPolicy) -> Schedule:
    """Scans `data` into `results`."""
    data = Buffer("data", monoid.element, length, Role.INPUT)
    results = Buffer("results", monoid.state, length, Role.OUTPUT)
    carries = Buffer("carries", monoid.state, max(1, scan_tiles_of(length, policy)), Role.SCRATCH)
    launches = scan_launches(monoid, data, carries, results, length, kind, policy) if length else ()
    return Schedule((data, carries, results), launches)
