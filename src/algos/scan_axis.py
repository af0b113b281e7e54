"""Prefix scan along any axis of a strided array, without a transposed copy.

A workgroup goes down its columns tile by tile. Each invocation, a rank of its column, reduces consecutive elements of a
tile; the ranks' totals are scanned in workgroup memory. Where columns are few, several workgroups share each, as in
scan.py.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..kernel.launch import unbound
from ..types.elements import dtype_of
from ..types.params import AxisParams, ScanPolicy
from .columns import Place, place_of
from .cut import Arrangement, Columns, Cut
from .layout import Layout, require_addressable
from .scan import scan_rows
from .scan_tile import Scanned, exclusive_scan_ranks
from .short_axis import is_short, scan_short_axis


@attrs.frozen
class Strip:
    """An invocation's place, and the elements of its column that its share has."""

    place: Place
    begin: U32
    end: U32

    @classmethod
    def of(cls, cx: Invocation, params: AxisParams, arrangement: Arrangement) -> Strip:
        """The last share goes first: caches may still have it in the second launch."""
        place = place_of(cx, cx.num_groups - 1 - cx.group_id, params, arrangement)
        begin = place.share * params.share
        return cls(place, begin, begin + minimum(params.share, params.length - begin))


def scan_ranks(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S, place: Place, params: AxisParams
) -> Scanned[S]:
    """An exclusive scan over the ranks of a column, in workgroup memory, and the total."""
    step = params.rank_step
    earlier = exclusive_scan_ranks(cx, monoid, shared, mine, place.rank * step, params.ranks * step, step)
    total = shared[place.lane * params.lane_step + (params.ranks - 1) * step]
    cx.barrier()
    return Scanned(earlier, total)


def load_strip(
    monoid: Monoid[E, S], data: Storage[E], strip: Strip, start: U32, mine: Registers[S], params: AxisParams,
    policy: ScanPolicy,
) -> S:  # fmt: skip
    """Loads an invocation's elements of a tile, all loads in flight at once, into `mine`; returns them combined. Beyond
    the share's end, they are the identity."""
    rest, column = strip.end - start, strip.place.column
    found: Registers[E] = Registers(monoid.element, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = start + minimum(strip.place.rank * policy.items + i, rest - 1)
        found[i] = data[index * params.length_stride + column.first]
    total = monoid.identity()
    for i in dynamic_range(U32(0), U32(policy.items)):
        offset = strip.place.rank * policy.items + i
        mine[i] = monoid.lift(found[i], start + offset) if offset < rest else monoid.identity()
        total = monoid.combine(total, mine[i])
    return total


@kernel
def scan_column_totals(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], shared: Workgroup[S], totals: Storage[S],
    params: AxisParams, policy: ScanPolicy, arrangement: Arrangement,
) -> None:  # fmt: skip
    """Reduces every share to one state."""
    strip = Strip.of(cx, params, arrangement)
    place, column = strip.place, strip.place.column
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            for index in dynamic_range(strip.begin, strip.end):
                carry = monoid.combine(carry, monoid.lift(data[index * params.length_stride + column.first], index))
        case _:
            for start in dynamic_range(strip.begin, strip.end, params.ranks * policy.items):
                total = load_strip(monoid, data, strip, start, mine, params, policy)
                carry = monoid.combine(carry, scan_ranks(cx, monoid, shared, total, place, params).total)
    if place.works & (place.rank == 0):
        totals[place.share * params.all_columns + column.number] = carry


def combine_shares(
    cx: Invocation, monoid: Monoid[E, S], totals: Storage[S], place: Place, shared: Workgroup[S], params: AxisParams,
    arrangement: Arrangement,
) -> S:  # fmt: skip
    """Combines the totals of the shares before this one in its column; each rank combines some of them."""
    each = (place.share + params.ranks - 1) // params.ranks
    first = minimum(place.rank * each, place.share)
    carry = monoid.identity()
    for i in dynamic_range(first, minimum(first + each, place.share)):
        carry = monoid.combine(carry, totals[i * params.all_columns + place.column.number])
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            return carry
        case _:
            return scan_ranks(cx, monoid, shared, carry, place, params).total


@kernel
def scan_columns(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], totals: Storage[S],
    shared: Workgroup[S], results: Storage[R], params: AxisParams, policy: ScanPolicy, arrangement: Arrangement,
    kind: ScanKind, alone: bool,
) -> None:  # fmt: skip
    """Scans every share, from the combined totals of the shares before it; `alone`: a share is a whole column."""
    strip = Strip.of(cx, params, arrangement)
    place, column = strip.place, strip.place.column
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    if not alone:
        carry = combine_shares(cx, monoid, totals, place, shared, params, arrangement)
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            for index in dynamic_range(strip.begin, strip.end):
                following = monoid.combine(carry, monoid.lift(data[index * params.length_stride + column.first], index))
                shown = following if kind is ScanKind.INCLUSIVE else carry
                if place.works:
                    results[index * params.length_result + column.result] = finish.finish(shown)
                carry = following
        case _:
            for start in dynamic_range(strip.begin, strip.end, params.ranks * policy.items):
                total = load_strip(monoid, data, strip, start, mine, params, policy)
                found = scan_ranks(cx, monoid, shared, total, place, params)
                before = monoid.combine(carry, found.before)
                for i in dynamic_range(U32(0), U32(policy.items)):
                    offset = strip.place.rank * policy.items + i
                    following = monoid.combine(before, mine[i])
                    shown = following if kind is ScanKind.INCLUSIVE else before
                    if place.works & (offset < strip.end - start):
                        results[(start + offset) * params.length_result + column.result] = finish.finish(shown)
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
        short = scan_short_axis(monoid, finish, layout, kind, policy, data, results)
        return Schedule((data, results), (short,))
    if layout.inner == 1 and layout.row_stride is not None:
        return scan_rows(monoid, layout.outer, layout.length, kind, policy, finish, layout.row_stride)
    view = Columns.to_scan(layout)
    cut = Cut.of_scan(view, policy, dtype_of(monoid.element).itemsize)
    each = cut.rows_of_share(view, policy.items)
    alone = cut.shares == 1
    totals = unbound(monoid.state) if alone else Buffer("totals", monoid.state, view.count * cut.shares, Role.SCRATCH)
    params = cut.params(view, layout.inner, each)
    grid, shared = Grid(cut.groups(view), cut.group_size), Workgroup(monoid.state, cut.group_size)
    sized = attrs.evolve(policy, group_size=cut.group_size)
    reduce = scan_column_totals.launch(grid, monoid, data, shared, totals, params, sized, cut.arrangement)
    scan = scan_columns.launch(
        grid, monoid, finish, data, totals, shared, results, params, sized, cut.arrangement, kind, alone
    )
    return Schedule((data, results), (scan,) if alone else (reduce, scan))
