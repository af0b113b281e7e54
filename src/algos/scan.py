"""Prefix scan over any monoid, once for all targets.

Reduce, then scan: every workgroup has a share of the elements. The first launch combines each share into one state; in
the second every workgroup combines what the shares before its own came to, and scans its share from there; it begins
with the last share, which caches may still hold. No workgroup waits for another, so this runs anywhere. Elements are
combined in their own order: `combine` must be associative, but need not be commutative. How they are bracketed depends
on the length and the policy alone, so a result is reproducible. A finish is fused into the last store.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.finishes import AsItIs, Finish
from ..types.indices import ScanKind
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.params import ScanParams, ScanPolicy
from ..types.scalars import U32
from .scan_tile import load_tile, scan_workgroup, store_tile
from .sizes import LARGEST_U32, require_countable

E = TypeVar("E")
S = TypeVar("S")
R = TypeVar("R")


@attrs.frozen
class Share:
    """The elements of one workgroup."""

    number: U32  # of the share in its row
    first: U32
    result: U32  # of the first
    place: U32  # of the first in its row
    count: U32

    @classmethod
    def of(cls, index: U32, params: ScanParams) -> Share:
        row = index // params.groups_per_row
        number = index - row * params.groups_per_row
        place = number * params.share
        first, result = row * params.row_stride + place, row * params.num_elements + place
        return cls(number, first, result, place, minimum(params.share, params.num_elements - place))


@kernel
def scan_totals(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], tile: Workgroup[S], shared: Workgroup[S],
    totals: Storage[S], params: ScanParams, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Combines every share into one state."""
    share = Share.of(cx.group_id, params)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        first, place, count = share.first + start, share.place + start, share.count - start
        total = load_tile(cx, monoid, data, first, place, count, tile, mine, policy)
        carry = monoid.combine(carry, scan_workgroup(cx, monoid, shared, total, policy).total)
    if cx.local_id == 0:
        totals[cx.group_id] = carry


def combine_earlier(
    cx: Invocation, monoid: Monoid[E, S], totals: Storage[S], start: U32, count: U32, shared: Workgroup[S],
    policy: ScanPolicy,
) -> S:  # fmt: skip
    """What `count` shares came to, from one on."""
    each = (count + cx.group_size - 1) // cx.group_size
    first = cx.local_id * each
    mine = monoid.identity()
    for i in dynamic_range(first, minimum(first + each, count)):
        mine = monoid.combine(mine, totals[start + i])
    return scan_workgroup(cx, monoid, shared, mine, policy).total


@kernel
def scan_shares(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], totals: Storage[S],
    tile: Workgroup[S], shared: Workgroup[S], results: Storage[R], params: ScanParams, policy: ScanPolicy,
    kind: ScanKind, alone: bool,
) -> None:  # fmt: skip
    """Scans every share, from the state of all elements before it; none are, where a share has its row alone."""
    index = cx.num_groups - 1 - cx.group_id
    share = Share.of(index, params)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    if not alone:
        carry = combine_earlier(cx, monoid, totals, index - share.number, share.number, shared, policy)
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        first, place, count = share.first + start, share.place + start, share.count - start
        total = load_tile(cx, monoid, data, first, place, count, tile, mine, policy)
        found = scan_workgroup(cx, monoid, shared, total, policy)
        before = monoid.combine(carry, found.before)
        store_tile(cx, monoid, finish, results, share.result + start, count, tile, mine, before, kind, policy)
        carry = monoid.combine(carry, found.total)


def scan_rows(
    monoid: Monoid[E, S], rows: int, length: int, kind: ScanKind, policy: ScanPolicy,
    finish: Finish[S, Any] | None = None, row_stride: int | None = None,
) -> Schedule:  # fmt: skip
    """Scans every row of `data`, a buffer of rows of one length, into `results`, which are packed: states, or what
    `finish` makes of them. Rows lie one behind the other, or as far apart as `row_stride` says."""
    require_countable(rows, length)
    stride = length if row_stride is None else row_stride
    span = (rows - 1) * stride + length if rows and length else 0
    require_countable(1, span)
    finish = finish or AsItIs(monoid.state)
    data = Buffer("data", monoid.element, span, Role.INPUT)
    results = Buffer("results", finish.result, rows * length, Role.OUTPUT)
    each, groups = shares(rows, length, policy)
    totals = Buffer("totals", monoid.state, max(1, rows * groups), Role.SCRATCH)
    if rows * length == 0:
        return Schedule((data, results), ())
    tile, shared = Workgroup(monoid.state, policy.tile), Workgroup(monoid.state, policy.group_size)
    grid = Grid(rows * groups, policy.group_size)
    params = ScanParams(U32(length), U32(groups), U32(min(each * policy.tile, LARGEST_U32)), U32(stride))
    reduce = scan_totals.launch(grid, monoid, data, tile, shared, totals, params, policy)
    scan = scan_shares.launch(
        grid, monoid, finish, data, totals, tile, shared, results, params, policy, kind, groups == 1
    )
    if groups == 1:  # nobody asks for totals: no target gets to see them
        return Schedule((data, results), (scan,))
    return Schedule((data, totals, results), (reduce, scan))


def shares(rows: int, length: int, policy: ScanPolicy) -> tuple[int, int]:
    """Tiles of a share, and shares of a row."""
    tiles = -(-length // policy.tile)
    most = max(1, policy.groups // max(1, rows))
    each = max(1, -(-tiles // most))
    return each, -(-tiles // each)
