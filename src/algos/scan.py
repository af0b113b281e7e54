"""Prefix scan over any monoid, once for all targets.

Reduce, then scan: every workgroup has a share of the elements. The first launch combines each share into one state; in
the second every workgroup combines what the shares before its own came to, and scans its share from there. No workgroup
waits for another, so this runs anywhere. Elements are combined in their own order: `combine` must be associative, but
need not be commutative. How they are bracketed depends on the length and the policy alone, so a result is reproducible.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.carriers import carrier_for
from ..types.errors import InvalidArgumentError
from ..types.indices import ScanKind
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.params import ScanParams, ScanPolicy
from ..types.scalars import U32
from .scan_sweep import scan_in_one_sweep
from .scan_tile import load_tile, scan_workgroup, store_tile

E = TypeVar("E")
S = TypeVar("S")


@attrs.frozen
class Share:
    """The elements of one workgroup."""

    first: U32
    count: U32

    @classmethod
    def of(cls, cx: Invocation, params: ScanParams) -> Share:
        first = cx.group_id * params.share
        return cls(first, minimum(params.share, params.num_elements - first))


@kernel
def scan_totals(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], tile: Workgroup[S], shared: Workgroup[S],
    totals: Storage[S], params: ScanParams, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Combines every share into one state."""
    share = Share.of(cx, params)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        total = load_tile(cx, monoid, data, share.first + start, share.count - start, tile, mine, policy)
        carry = monoid.combine(carry, scan_workgroup(cx, monoid, shared, total, policy).total)
    if cx.local_id == 0:
        totals[cx.group_id] = carry


def combine_earlier(
    cx: Invocation, monoid: Monoid[E, S], totals: Storage[S], shared: Workgroup[S], policy: ScanPolicy
) -> S:
    """What the shares before this workgroup's came to."""
    each = (cx.group_id + cx.group_size - 1) // cx.group_size
    first = cx.local_id * each
    mine = monoid.identity()
    for i in dynamic_range(first, minimum(first + each, cx.group_id)):
        mine = monoid.combine(mine, totals[i])
    return scan_workgroup(cx, monoid, shared, mine, policy).total


@kernel
def scan_shares(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], totals: Storage[S], tile: Workgroup[S],
    shared: Workgroup[S], results: Storage[S], params: ScanParams, policy: ScanPolicy, kind: ScanKind,
) -> None:  # fmt: skip
    """Scans every share, from the state of all elements before it."""
    share = Share.of(cx, params)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = combine_earlier(cx, monoid, totals, shared, policy)
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        first, count = share.first + start, share.count - start
        total = load_tile(cx, monoid, data, first, count, tile, mine, policy)
        found = scan_workgroup(cx, monoid, shared, total, policy)
        store_tile(cx, monoid, results, first, count, tile, mine, monoid.combine(carry, found.before), kind, policy)
        carry = monoid.combine(carry, found.total)


def scan_array(monoid: Monoid[E, S], length: int, kind: ScanKind, policy: ScanPolicy) -> Schedule:
    """Scans `data` into `results`."""
    if policy.sweeps:
        carrier = carrier_for(monoid.state)
        if carrier is None:
            raise InvalidArgumentError(f"policy: a sweep takes states that are scalars, found {monoid.state.__name__}")
        return scan_in_one_sweep(monoid, carrier, length, kind, policy)
    tiles = -(-length // policy.tile)
    each = max(1, -(-tiles // policy.groups))  # tiles of a share
    groups = -(-tiles // each)
    data = Buffer("data", monoid.element, length, Role.INPUT)
    results = Buffer("results", monoid.state, length, Role.OUTPUT)
    totals = Buffer("totals", monoid.state, max(1, groups), Role.SCRATCH)
    tile, shared = Workgroup(monoid.state, policy.tile), Workgroup(monoid.state, policy.group_size)
    grid, params = Grid(groups, policy.group_size), ScanParams(U32(length), U32(each * policy.tile))
    reduce = scan_totals.launch(grid, monoid, data, tile, shared, totals, params, policy)
    scan = scan_shares.launch(grid, monoid, data, totals, tile, shared, results, params, policy, kind)
    if groups == 0:
        return Schedule((data, totals, results), ())
    return Schedule((data, totals, results), (reduce, scan) if groups > 1 else (scan,))
