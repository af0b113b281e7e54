"""Prefix scan (prefix sum) of rows over any monoid: reduce-then-scan in two launches.

The first launch reduces each workgroup's share; in the second, every workgroup combines the totals of the shares before
its own, and scans its share from there. The last share goes first, as caches may still have it. Elements are combined
in order; the bracketing depends on length and policy alone, so results are reproducible.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..types.monoids import StartingAt
from ..types.params import ScanParams, ScanPolicy
from .scan_tile import load_tile, scan_workgroup, store_tile
from .sizes import LARGEST_U32, countable_span


@attrs.frozen
class Share:
    """A workgroup's share of a row."""

    number: U32  # of the share in its row
    first: U32  # the index of its first element in `data`
    result: U32  # and in `results`
    place: U32  # and in the row
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
    """Reduces every share to one state."""
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
    """Combines the totals of `count` shares, from index `start`."""
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
    """Scans every share, from the combined totals of the shares before it; `alone`: a share is a whole row."""
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
    """Scans every row of `data` into `results`, packed, with `finish` applied. Rows have one length and are contiguous,
    or `row_stride` elements apart."""
    stride = length if row_stride is None else row_stride
    span = countable_span(rows, length, stride)
    finish = finish or AsItIs(monoid.state)
    data = Buffer("data", monoid.element, span, Role.INPUT)
    results = Buffer("results", finish.result, rows * length, Role.OUTPUT)
    if rows * length == 0:
        return Schedule((data, results), ())
    each, groups = shares(rows, length, policy)
    totals = Buffer("totals", monoid.state, rows * groups, Role.SCRATCH)
    tile, shared = Workgroup(monoid.state, policy.tile), Workgroup(monoid.state, policy.group_size)
    grid = Grid(rows * groups, policy.group_size)
    params = ScanParams(U32(length), U32(groups), U32(min(each * policy.tile, LARGEST_U32)), U32(stride))
    reduce = scan_totals.launch(grid, monoid, data, tile, shared, totals, params, policy)
    scan = scan_shares.launch(
        grid, monoid, finish, data, totals, tile, shared, results, params, policy, kind, groups == 1
    )
    if groups == 1:  # totals are not used: never bound
        return Schedule((data, results), (scan,))
    return Schedule((data, totals, results), (reduce, scan))


def shares(rows: int, length: int, policy: ScanPolicy) -> tuple[int, int]:
    """The tiles in a share, and the shares in a row."""
    tiles = -(-length // policy.tile)
    most = max(1, policy.groups // max(1, rows))
    each = max(1, -(-tiles // most))
    return each, -(-tiles // each)


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
    """Scans a piece of a row, `data`, into `results`; `first` is the index in the row of its first element. `carried`
    (INOUT) has the carry in at 0, if `first` > 0, and gets the carry out at `leaves`."""
    own: Monoid[E, S] = StartingAt(monoid, U32(first))
    each, groups = shares(1, length, policy)
    data = Buffer("data", monoid.element, length, Role.INPUT)
    results = Buffer("results", finish.result, length, Role.OUTPUT)
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
