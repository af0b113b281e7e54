"""Prefix scan (prefix sum) of rows over any monoid: reduce-then-scan in two launches.

The first launch reduces each workgroup's share; in the second, every workgroup combines the totals of the shares before
its own, and scans its share from there. The last share goes first, as caches may still have it. Elements are combined
in order; the bracketing depends on length and policy alone, so results are reproducible.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..kernel.launch import unbound
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


@attrs.frozen
class Carry:
    """How a piece of a row uses the buffer of carries: the carry in is element 0."""

    begins: U32  # 1 if there is a carry in
    leaves: U32  # the index of the carry out


@kernel
def scan_shares(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], totals: Storage[S],
    tile: Workgroup[S], shared: Workgroup[S], results: Storage[R], carried: Storage[S], params: ScanParams,
    policy: ScanPolicy, kind: ScanKind, alone: bool, handed: Carry | None,
) -> None:  # fmt: skip
    """Scans every share, from the combined totals of the shares before it; `alone`: a share is a whole row. A piece of
    a row is `handed` a carry, and leaves one."""
    index = cx.num_groups - 1 - cx.group_id
    share = Share.of(index, params)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    if not alone:
        carry = combine_earlier(cx, monoid, totals, index - share.number, share.number, shared, policy)
    if handed is not None and handed.begins != 0:
        carry = monoid.combine(carried[0], carry)
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        first, place, count = share.first + start, share.place + start, share.count - start
        total = load_tile(cx, monoid, data, first, place, count, tile, mine, policy)
        found = scan_workgroup(cx, monoid, shared, total, policy)
        before = monoid.combine(carry, found.before)
        store_tile(cx, monoid, finish, results, share.result + start, count, tile, mine, before, kind, policy)
        carry = monoid.combine(carry, found.total)
    if handed is not None and (cx.local_id == 0) & (cx.group_id == 0):  # which has the last share
        carried[handed.leaves] = carry


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
    return Schedule((data, results), _scan(monoid, rows, length, stride, kind, policy, finish, data, results))


def scan_in_turn(
    monoid: Monoid[E, S], first: int, length: int, leaves: int, kind: ScanKind, policy: ScanPolicy,
    finish: Finish[S, Any],
) -> Schedule:  # fmt: skip
    """Scans a piece of a row, `data`, into `results`; `first` is the index in the row of its first element. `carried`
    (INOUT) has the carry in at 0, if `first` > 0, and gets the carry out at `leaves`."""
    own: Monoid[E, S] = StartingAt(monoid, U32(first))
    data = Buffer("data", monoid.element, length, Role.INPUT)
    results = Buffer("results", finish.result, length, Role.OUTPUT)
    carried = Buffer("carried", monoid.state, leaves + 1, Role.INOUT)
    handed = Carry(U32(first > 0), U32(leaves))
    launches = _scan(own, 1, length, length, kind, policy, finish, data, results, carried, handed)
    return Schedule((data, results, carried), launches)


def _scan(
    monoid: Monoid[E, S], rows: int, length: int, row_stride: int, kind: ScanKind, policy: ScanPolicy,
    finish: Finish[S, R], data: Buffer[E], results: Buffer[R], carried: Buffer[S] | None = None,
    handed: Carry | None = None,
) -> tuple[Launch, ...]:  # fmt: skip
    each, groups = shares(rows, length, policy)
    alone = groups == 1
    totals = unbound(monoid.state) if alone else Buffer("totals", monoid.state, rows * groups, Role.SCRATCH)
    tile, shared = Workgroup(monoid.state, policy.tile), Workgroup(monoid.state, policy.group_size)
    grid = Grid(rows * groups, policy.group_size)
    params = ScanParams(U32(length), U32(groups), U32(min(each * policy.tile, LARGEST_U32)), U32(row_stride))
    scan = scan_shares.launch(
        grid, monoid, finish, data, totals, tile, shared, results, carried or totals, params, policy, kind, alone,
        handed,
    )  # fmt: skip
    return (scan,) if alone else (scan_totals.launch(grid, monoid, data, tile, shared, totals, params, policy), scan)


def shares(rows: int, length: int, policy: ScanPolicy) -> tuple[int, int]:
    """The tiles in a share, and the shares in a row."""
    tiles = -(-length // policy.tile)
    most = max(1, policy.groups // max(1, rows))
    each = max(1, -(-tiles // most))
    return each, -(-tiles // each)
