"""Prefix scan along any axis of a strided array, without a transposed copy.

A workgroup goes down its columns tile by tile. Each invocation, a rank of its column, reduces consecutive elements of a
tile; the ranks' totals are scanned in workgroup memory. Where columns are few, several workgroups share each, as in
scan.py.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..types.elements import dtype_of
from ..types.params import AxisParams, ScanPolicy
from .cut import Arrangement, Columns, Cut
from .layout import Layout, require_addressable
from .scan import scan_rows
from .scan_tile import Scanned
from .short_axis import is_short, scan_short_axis


@attrs.frozen
class Strip:
    """A workgroup's share of a column, and this invocation's rank in it."""

    first: U32  # the index of the column's first element
    result: U32  # the index of its result
    total: U32  # the index of the total of its first share
    share: U32
    begin: U32  # the share's first element in the column
    end: U32
    rank: U32
    ranks: U32
    works: Bool  # whether it writes: no other invocation has this column and rank


def strip_of(cx: Invocation, params: AxisParams, arrangement: Arrangement) -> Strip:
    """The strip of an invocation. The last share goes first: caches may still have it in the second launch."""
    group = cx.num_groups - 1 - cx.group_id
    tile = group % params.tiles
    rest = group // params.tiles
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:  # the last tile is shifted back to be full
            share = rest % params.shares
            plane = rest // params.shares
            begin = share * params.share
            end = begin + minimum(params.share, params.length - begin)
            column = minimum(tile * cx.group_size, params.columns - cx.group_size) + cx.local_id
            return Strip(
                plane * params.plane_stride + column, plane * params.plane_result + column,
                plane * params.columns + column, share, begin, end, U32(0), U32(1), column >= tile * cx.group_size,
            )  # fmt: skip
        case _:
            begin = rest * params.share
            end = begin + minimum(params.share, params.length - begin)
            rank = cx.local_id // params.lanes
            index = tile * params.lanes + cx.local_id % params.lanes
            works = (index < params.all_columns) & (rank < params.ranks)
            index = minimum(index, params.all_columns - 1)
            plane = index // params.columns
            column = index - plane * params.columns
            return Strip(
                plane * params.plane_stride + column * params.column_stride,
                plane * params.plane_result + column * params.column_result, index, rest, begin, end, rank,
                params.ranks, works,
            )  # fmt: skip


def scan_ranks(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S, rank: U32, params: AxisParams
) -> Scanned[S]:
    """A Hillis-Steele scan over the ranks of a column, in workgroup memory."""
    shared[cx.local_id] = mine
    cx.barrier()
    distance = U32(1)
    while distance < params.ranks:
        before = shared[cx.local_id - distance * params.lanes] if rank >= distance else monoid.identity()
        cx.barrier()
        shared[cx.local_id] = monoid.combine(before, shared[cx.local_id])
        cx.barrier()
        distance = distance * 2
    earlier = shared[cx.local_id - params.lanes] if rank > 0 else monoid.identity()
    total = shared[cx.local_id % params.lanes + (params.ranks - 1) * params.lanes]
    cx.barrier()
    return Scanned(earlier, total)


def load_strip(
    monoid: Monoid[E, S], data: Storage[E], strip: Strip, start: U32, mine: Registers[S], params: AxisParams,
    policy: ScanPolicy,
) -> S:  # fmt: skip
    """Loads an invocation's elements of a tile, all loads in flight at once, into `mine`; returns them combined. Beyond
    the share's end, they are the identity."""
    rest = strip.end - start
    found: Registers[E] = Registers(monoid.element, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = start + minimum(strip.rank * policy.items + i, rest - 1)
        found[i] = data[index * params.length_stride + strip.first]
    total = monoid.identity()
    for i in dynamic_range(U32(0), U32(policy.items)):
        place = strip.rank * policy.items + i
        mine[i] = monoid.lift(found[i], start + place) if place < rest else monoid.identity()
        total = monoid.combine(total, mine[i])
    return total


@kernel
def scan_column_totals(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], shared: Workgroup[S], totals: Storage[S],
    params: AxisParams, policy: ScanPolicy, arrangement: Arrangement,
) -> None:  # fmt: skip
    """Reduces every share to one state."""
    strip = strip_of(cx, params, arrangement)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            for index in dynamic_range(strip.begin, strip.end):
                carry = monoid.combine(carry, monoid.lift(data[index * params.length_stride + strip.first], index))
        case _:
            for start in dynamic_range(strip.begin, strip.end, params.ranks * policy.items):
                total = load_strip(monoid, data, strip, start, mine, params, policy)
                carry = monoid.combine(carry, scan_ranks(cx, monoid, shared, total, strip.rank, params).total)
    if strip.works & (strip.rank == 0):
        totals[strip.share * params.column_total + strip.total] = carry


def combine_shares(
    cx: Invocation, monoid: Monoid[E, S], totals: Storage[S], strip: Strip, shared: Workgroup[S], params: AxisParams,
    arrangement: Arrangement,
) -> S:  # fmt: skip
    """Combines the totals of the shares before this one in its column; each rank combines some of them."""
    each = (strip.share + strip.ranks - 1) // strip.ranks
    first = minimum(strip.rank * each, strip.share)
    carry = monoid.identity()
    for i in dynamic_range(first, minimum(first + each, strip.share)):
        carry = monoid.combine(carry, totals[i * params.column_total + strip.total])
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            return carry
        case _:
            return scan_ranks(cx, monoid, shared, carry, strip.rank, params).total


@kernel
def scan_columns(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], totals: Storage[S],
    shared: Workgroup[S], results: Storage[R], params: AxisParams, policy: ScanPolicy, arrangement: Arrangement,
    kind: ScanKind, alone: bool,
) -> None:  # fmt: skip
    """Scans every share, from the combined totals of the shares before it; `alone`: a share is a whole column."""
    strip = strip_of(cx, params, arrangement)
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    if not alone:
        carry = combine_shares(cx, monoid, totals, strip, shared, params, arrangement)
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            for index in dynamic_range(strip.begin, strip.end):
                following = monoid.combine(carry, monoid.lift(data[index * params.length_stride + strip.first], index))
                shown = following if kind is ScanKind.INCLUSIVE else carry
                if strip.works:
                    results[index * params.length_result + strip.result] = finish.finish(shown)
                carry = following
        case _:
            for start in dynamic_range(strip.begin, strip.end, params.ranks * policy.items):
                total = load_strip(monoid, data, strip, start, mine, params, policy)
                found = scan_ranks(cx, monoid, shared, total, strip.rank, params)
                before = monoid.combine(carry, found.before)
                for i in dynamic_range(U32(0), U32(policy.items)):
                    place = strip.rank * policy.items + i
                    following = monoid.combine(before, mine[i])
                    shown = following if kind is ScanKind.INCLUSIVE else before
                    if strip.works & (place < strip.end - start):
                        results[(start + place) * params.length_result + strip.result] = finish.finish(shown)
                    before = following
                carry = monoid.combine(carry, found.total)


def scan_axis(
    monoid: Monoid[E, S], layout: Layout, kind: ScanKind, policy: ScanPolicy, finish: Finish[S, Any] | None = None
) -> Schedule:
    """Scans `data`, of `layout.span` elements, along the length into packed `results`, with `finish` applied."""
    require_addressable(layout, layout.size)
    finish = finish or AsItIs(monoid.state)
    data = Buffer("data", monoid.element, layout.span, Role.INPUT)
    results = Buffer("results", finish.result, layout.size, Role.OUTPUT)
    if layout.size == 0:
        return Schedule((data, results), ())
    if is_short(layout, policy):
        return scan_short_axis(monoid, finish, layout, kind, policy, data, results)
    if layout.inner == 1 and layout.row_stride is not None:
        return scan_rows(monoid, layout.outer, layout.length, kind, policy, finish, layout.row_stride)
    view = Columns.to_scan(layout)
    cut = Cut.of_scan(view, policy, dtype_of(monoid.element).itemsize)
    each = cut.rows_of_share(view, policy.items)
    totals = Buffer("totals", monoid.state, view.count * cut.shares, Role.SCRATCH)
    params = cut.params(view, layout.inner, view.count, each)
    grid, shared = Grid(cut.groups(view), cut.group_size), Workgroup(monoid.state, cut.group_size)
    sized = attrs.evolve(policy, group_size=cut.group_size)
    reduce = scan_column_totals.launch(grid, monoid, data, shared, totals, params, sized, cut.arrangement)
    scan = scan_columns.launch(
        grid, monoid, finish, data, totals, shared, results, params, sized, cut.arrangement, kind, cut.shares == 1
    )  # fmt: skip
    if cut.shares == 1:  # totals are not used: never bound
        return Schedule((data, results), (scan,))
    return Schedule((data, totals, results), (reduce, scan))
