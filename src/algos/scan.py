"""Prefix scan (prefix sum) along any axis of a strided array, without a transposed copy, over any monoid:
reduce-then-scan in two launches.

The first launch reduces each workgroup's share of a column; in the second, every workgroup combines the totals of the
shares before its own, and scans its share from there, tile by tile: each invocation, a rank of its column, reduces
consecutive elements; the ranks' totals are scanned in workgroup memory. Rows of contiguous elements are columns whose
tiles are loaded and stored coalesced (scan_tile.py). Elements are combined in order; the bracketing depends on layout
and policy alone, so results are reproducible.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..kernel.launch import unbound
from ..types.elements import dtype_of
from ..types.monoids import StartingAt
from ..types.params import AxisParams, ScanPolicy
from .columns import Place, load_column, place_of
from .cut import Arrangement, Columns, Cut
from .layout import Layout, require_addressable
from .scan_tile import Scanned, exclusive_scan_ranks, load_tile, scan_lanes, scan_workgroup, store_tile


@attrs.frozen
class Strip:
    """An invocation's place, and the elements of its column that its share has."""

    place: Place
    begin: U32
    end: U32

    @classmethod
    def of(cls, cx: Invocation, group: U32, params: AxisParams, arrangement: Arrangement) -> Strip:
        place = place_of(cx, group, params, arrangement)
        begin = place.share * params.share
        return cls(place, begin, begin + minimum(params.share, params.length - begin))


def load_strip(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], strip: Strip, start: U32, tile: Workgroup[S],
    mine: Registers[S], params: AxisParams, policy: ScanPolicy, arrangement: Arrangement,
) -> S:  # fmt: skip
    """Loads an invocation's elements of a tile, all loads in flight at once, into `mine`; returns them combined. Beyond
    the share's end, they are the identity."""
    rest, column = strip.end - start, strip.place.column
    if arrangement is Arrangement.ROWS:
        return load_tile(cx, monoid, data, column.first + start, start, rest, tile, mine, policy)
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


def store_strip(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], results: Storage[R], strip: Strip, start: U32,
    tile: Workgroup[S], mine: Registers[S], before: S, params: AxisParams, kind: ScanKind, policy: ScanPolicy,
    arrangement: Arrangement,
) -> None:  # fmt: skip
    """Scans an invocation's elements, from the state of all before them, and stores the tile."""
    rest, column = strip.end - start, strip.place.column
    if arrangement is Arrangement.ROWS:
        store_tile(cx, monoid, finish, results, column.result + start, rest, tile, mine, before, kind, policy)
    else:
        for i in dynamic_range(U32(0), U32(policy.items)):
            offset = strip.place.rank * policy.items + i
            following = monoid.combine(before, mine[i])
            shown = following if kind is ScanKind.INCLUSIVE else before
            if strip.place.works & (offset < rest):
                results[(start + offset) * params.length_result + column.result] = finish.finish(shown)
            before = following


def scan_ranks(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], mine: S, place: Place, params: AxisParams,
    policy: ScanPolicy, arrangement: Arrangement,
) -> Scanned[S]:  # fmt: skip
    """An exclusive scan over the ranks of a column, in workgroup memory, and the total."""
    match arrangement:
        case Arrangement.ROWS:
            return scan_workgroup(cx, monoid, shared, mine, policy)
        case Arrangement.SIDE_BY_SIDE:
            return Scanned(monoid.identity(), mine)
        case _:
            step = params.rank_step
            earlier = exclusive_scan_ranks(cx, monoid, shared, mine, place.rank * step, params.ranks * step, step)
            total = shared[place.lane * params.lane_step + (params.ranks - 1) * step]
            cx.barrier()
            return Scanned(earlier, total)


def tile_of(params: AxisParams, policy: ScanPolicy, arrangement: Arrangement) -> U32:
    """The elements of a column that a workgroup scans at a time."""
    return U32(policy.tile) if arrangement is Arrangement.ROWS else params.ranks * policy.items


def scan_strand(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], results: Storage[R], place: Place,
    carry: S, params: AxisParams, policy: ScanPolicy, kind: ScanKind,
) -> None:  # fmt: skip
    """Scans a row by the lanes of a strand, which have neighbouring elements: their loads are coalesced as they are."""
    found: Registers[E] = Registers(monoid.element, policy.items)
    last = cx.lane - place.rank + (params.ranks - 1)
    for start in dynamic_range(U32(0), params.length, params.ranks * policy.items):
        rest = params.length - start
        for i in dynamic_range(U32(0), U32(policy.items)):
            found[i] = data[place.column.first + start + minimum(i * params.ranks + place.rank, rest - 1)]
        for i in dynamic_range(U32(0), U32(policy.items)):
            offset = i * params.ranks + place.rank
            mine = monoid.lift(found[i], start + offset) if offset < rest else monoid.identity()
            following = monoid.combine(carry, scan_lanes(cx, monoid, mine, place.rank, params.ranks))
            shown = following
            if kind is ScanKind.EXCLUSIVE:
                below = cx.shuffle_up(following, U32(1))
                shown = below if place.rank > 0 else carry
            if place.works & (offset < rest):
                results[place.column.result + start + offset] = finish.finish(shown)
            carry = cx.shuffle(following, last)


@kernel
def scan_totals(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], tile: Workgroup[S], shared: Workgroup[S],
    totals: Storage[S], params: AxisParams, policy: ScanPolicy, arrangement: Arrangement,
) -> None:  # fmt: skip
    """Reduces every share to one state."""
    strip = Strip.of(cx, cx.group_id, params, arrangement)
    place, column = strip.place, strip.place.column
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            for index in dynamic_range(strip.begin, strip.end):
                carry = monoid.combine(carry, monoid.lift(data[index * params.length_stride + column.first], index))
        case _:
            for start in dynamic_range(strip.begin, strip.end, tile_of(params, policy, arrangement)):
                total = load_strip(cx, monoid, data, strip, start, tile, mine, params, policy, arrangement)
                found = scan_ranks(cx, monoid, shared, total, place, params, policy, arrangement)
                carry = monoid.combine(carry, found.total)
    if place.works & (place.rank == 0):
        totals[place.share * params.all_columns + column.number] = carry


def combine_earlier(
    cx: Invocation, monoid: Monoid[E, S], totals: Storage[S], place: Place, shared: Workgroup[S], params: AxisParams,
    policy: ScanPolicy, arrangement: Arrangement,
) -> S:  # fmt: skip
    """Combines the totals of the shares before this one in its column; each rank combines some of them."""
    each = (place.share + params.ranks - 1) // params.ranks
    first = minimum(place.rank * each, place.share)
    mine = monoid.identity()
    for i in dynamic_range(first, minimum(first + each, place.share)):
        mine = monoid.combine(mine, totals[i * params.all_columns + place.column.number])
    return scan_ranks(cx, monoid, shared, mine, place, params, policy, arrangement).total


@attrs.frozen
class Carry:
    """How a piece of a row uses the buffer of carries: the carry in is element 0."""

    begins: U32  # 1 if there is a carry in
    leaves: U32  # the index of the carry out


@kernel
def scan_shares(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], totals: Storage[S],
    tile: Workgroup[S], shared: Workgroup[S], results: Storage[R], carried: Storage[S], params: AxisParams,
    policy: ScanPolicy, arrangement: Arrangement, kind: ScanKind, alone: bool, handed: Carry | None,
) -> None:  # fmt: skip
    """Scans every share, from the combined totals of the shares before it; `alone`: a share is a whole column. A piece
    of a row is `handed` a carry, and leaves one. The last share goes first: caches may still have it."""
    strip = Strip.of(cx, cx.num_groups - 1 - cx.group_id, params, arrangement)
    place, column = strip.place, strip.place.column
    mine: Registers[S] = Registers(monoid.state, policy.items)
    carry = monoid.identity()
    if not alone:
        carry = combine_earlier(cx, monoid, totals, place, shared, params, policy, arrangement)
    if handed is not None and handed.begins != 0:
        carry = monoid.combine(carried[0], carry)
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            for index in dynamic_range(strip.begin, strip.end):
                following = monoid.combine(carry, monoid.lift(data[index * params.length_stride + column.first], index))
                shown = following if kind is ScanKind.INCLUSIVE else carry
                if place.works:
                    results[index * params.length_result + column.result] = finish.finish(shown)
                carry = following
        case Arrangement.STRANDS:
            scan_strand(cx, monoid, finish, data, results, place, carry, params, policy, kind)
        case Arrangement.ALONE:
            loaded: Registers[E] = Registers(monoid.element, policy.items)
            load_column(data, loaded, column, params, policy.items)
            for i in dynamic_range(U32(0), U32(policy.items)):
                following = monoid.combine(carry, monoid.lift(loaded[i], i))
                shown = following if kind is ScanKind.INCLUSIVE else carry
                if place.works & (i < params.length):
                    results[i * params.length_result + column.result] = finish.finish(shown)
                carry = following
        case _:
            for start in dynamic_range(strip.begin, strip.end, tile_of(params, policy, arrangement)):
                total = load_strip(cx, monoid, data, strip, start, tile, mine, params, policy, arrangement)
                found = scan_ranks(cx, monoid, shared, total, place, params, policy, arrangement)
                before = monoid.combine(carry, found.before)
                store_strip(
                    cx, monoid, finish, results, strip, start, tile, mine, before, params, kind, policy, arrangement
                )
                carry = monoid.combine(carry, found.total)
    if handed is not None and (cx.local_id == 0) & (cx.group_id == 0):  # which has the last share
        carried[handed.leaves] = carry


def scan_rows(
    monoid: Monoid[E, S], rows: int, length: int, kind: ScanKind, policy: ScanPolicy,
    finish: Finish[S, Any] | None = None,
) -> Schedule:  # fmt: skip
    """Scans every row of `data`, contiguous rows of one length, into `results`."""
    return scan_axis(monoid, Layout.rows(rows, length), kind, policy, finish)


def scan_axis(
    monoid: Monoid[E, S], layout: Layout, kind: ScanKind, policy: ScanPolicy, finish: Finish[S, Any] | None = None
) -> Schedule:
    """Scans `data`, of `layout.span` elements, along the length into packed `results`, with `finish` applied."""
    require_addressable(layout, layout.size)
    finish = finish or AsItIs(monoid.state)
    data = Buffer("data", monoid.element, layout.span, Role.INPUT)
    results = Buffer("results", finish.result, layout.size, Role.OUTPUT)
    launches = _scan(monoid, layout, kind, policy, finish, data, results) if layout.size else ()
    return Schedule((data, results), launches)


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
    handed, row = Carry(U32(first > 0), U32(leaves)), Layout.rows(1, length)
    launches = _scan(
        own, row, kind, attrs.evolve(policy, alone=False, strand=1), finish, data, results, carried, handed
    )
    return Schedule((data, results, carried), launches)


def _scan(
    monoid: Monoid[E, S], layout: Layout, kind: ScanKind, policy: ScanPolicy, finish: Finish[S, R], data: Buffer[E],
    results: Buffer[R], carried: Buffer[S] | None = None, handed: Carry | None = None,
) -> tuple[Launch, ...]:  # fmt: skip
    in_rows = layout.inner == 1 and layout.row_stride is not None
    view = attrs.evolve(Columns.of(layout, scanned=True), are_rows=in_rows)
    cut = Cut.of_scan(view, policy, dtype_of(monoid.element).itemsize)
    alone, sized = cut.shares == 1, cut.sized(policy)
    totals = unbound(monoid.state) if alone else Buffer("totals", monoid.state, view.count * cut.shares, Role.SCRATCH)
    grid, params = Grid(cut.groups(view), cut.group_size), cut.params(view, layout.inner)
    tile, shared = Workgroup(monoid.state, sized.tile), Workgroup(monoid.state, cut.group_size)
    reduce = scan_totals.launch(grid, monoid, data, tile, shared, totals, params, sized, cut.arrangement)
    scan = scan_shares.launch(
        grid, monoid, finish, data, totals, tile, shared, results, carried or totals, params, sized, cut.arrangement,
        kind, alone, handed,
    )  # fmt: skip
    return (scan,) if alone else (reduce, scan)
