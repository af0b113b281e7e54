"""Prefix scan of a row in pieces, one after another, with a carry: for rows beyond the largest buffer or the memory.

Each piece is scanned as scan.py does a row, but from the carry of the pieces before.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.finishes import Finish
from ..types.indices import ScanKind
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.params import ScanParams, ScanPolicy
from ..types.scalars import U32
from ..types.starting_at import StartingAt
from .scan import Share, combine_earlier, scan_totals, shares
from .scan_tile import load_tile, scan_workgroup, store_tile

E = TypeVar("E")
S = TypeVar("S")
R = TypeVar("R")


@attrs.frozen
class Carry:
    """How a piece uses the buffer of carries: the carry in is element 0."""

    begins: U32  # 1 if there is a carry in
    leaves: U32  # the index of the carry out


@kernel
def scan_piece(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], totals: Storage[S],
    tile: Workgroup[S], shared: Workgroup[S], results: Storage[R], carried: Storage[S], params: ScanParams,
    handed: Carry, policy: ScanPolicy, kind: ScanKind, alone: bool,
) -> None:  # fmt: skip
    """Scans every share of the piece, from the carry and the totals of the shares before it."""
    share = Share.of(cx.group_id, params)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    if handed.begins != 0:
        carry = carried[0]
    if not alone:
        earlier = combine_earlier(cx, monoid, totals, U32(0), share.number, shared, policy)
        carry = monoid.combine(carry, earlier)
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        first, place, count = share.first + start, share.place + start, share.count - start
        total = load_tile(cx, monoid, data, first, place, count, tile, mine, policy)
        found = scan_workgroup(cx, monoid, shared, total, policy)
        before = monoid.combine(carry, found.before)
        store_tile(cx, monoid, finish, results, share.result + start, count, tile, mine, before, kind, policy)
        carry = monoid.combine(carry, found.total)
    if (cx.local_id == 0) & (cx.group_id == cx.num_groups - 1):
        carried[handed.leaves] = carry


def scan_in_turn(
    monoid: Monoid[E, S], first: int, length: int, leaves: int, kind: ScanKind, policy: ScanPolicy,
    finish: Finish[S, Any],
) -> Schedule:  # fmt: skip
    """Scans a piece of a row, `data`, into `results`; `first` is the index in the row of its first element.

    `carried` (INOUT) has the carry in at 0, if `first` > 0, and gets the carry out at `leaves`.
    """
    own: Monoid[E, S] = StartingAt(monoid, U32(first))
    each, groups = shares(1, length, policy)
    data, results = (
        Buffer("data", monoid.element, length, Role.INPUT),
        Buffer("results", finish.result, length, Role.OUTPUT),
    )
    carried = Buffer("carried", monoid.state, leaves + 1, Role.INOUT)
    totals = Buffer("totals", monoid.state, groups, Role.SCRATCH)
    tile, shared = Workgroup(monoid.state, policy.tile), Workgroup(monoid.state, policy.group_size)
    grid = Grid(groups, policy.group_size)
    params = ScanParams(U32(length), U32(groups), U32(each * policy.tile), U32(length))
    launches: list[Launch] = []
    if groups > 1:
        launches.append(scan_totals.launch(grid, own, data, tile, shared, totals, params, policy))
    launches.append(
        scan_piece.launch(
            grid, own, finish, data, totals, tile, shared, results, carried, params,
            Carry(U32(first > 0), U32(leaves)), policy, kind, groups == 1,
        )
    )  # fmt: skip
    return Schedule((data, totals, results, carried), tuple(launches))
