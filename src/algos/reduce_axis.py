"""Reduction along any axes of a strided array, read in place once; results are packed in C order.

Invocations accumulate a column each, or share one as its ranks, which combine in workgroup memory or by shuffles. Where
columns are few, several workgroups share each, and a second launch combines their results. See cut.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..kernel.language import *
from ..types.elements import dtype_of
from ..types.monoids import OverStates
from ..types.params import AxisParams, ReducePolicy
from .columns import Place, load_column, place_of
from .cut import Arrangement, Columns, Cut
from .layout import Layout, require_addressable
from .reduce import Share, reduce_all, reduce_lanes, reduce_share, take_block


def reduce_ranks(
    cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], total: S, rank: U32, params: AxisParams
) -> S:
    """A tree reduction over the ranks of a column, in workgroup memory; rank 0 gets the result."""
    shared[cx.local_id] = total
    cx.barrier()
    count = params.ranks
    while count > 1:
        half = (count + 1) // 2
        if (rank < count - half) & (cx.local_id < params.lanes * params.ranks):
            other = cx.local_id + half * params.rank_step
            shared[cx.local_id] = monoid.combine(shared[cx.local_id], shared[other])
        cx.barrier()
        count = half
    return shared[cx.local_id]


def reduce_shared_column(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], shared: Workgroup[S], place: Place, params: AxisParams,
    policy: ReducePolicy, arrangement: Arrangement,
) -> S:  # fmt: skip
    """Reduces a share of a column by all its ranks."""
    stride = U32(1) if arrangement is Arrangement.ROWS else params.length_stride
    ranks = cx.group_size if arrangement is Arrangement.ROWS else params.ranks
    size = ranks * policy.items
    mine = Share(
        place.column.first, stride, params.length, place.share * size, params.shares * size, place.rank, ranks,
        place.share == params.shares - 1,
    )  # fmt: skip
    total = reduce_share(monoid, data, mine, policy)
    match arrangement:
        case Arrangement.ROWS:
            return reduce_all(cx, monoid, shared, total, policy)
        case Arrangement.STRANDS:
            return reduce_lanes(cx, monoid, total, params.ranks)
        case _:
            return reduce_ranks(cx, monoid, shared, total, place.rank, params)


def reduce_own_column(
    monoid: Monoid[E, S], data: Storage[E], place: Place, params: AxisParams, policy: ReducePolicy
) -> S:
    """Reduces a share of a column by one invocation, unrolled: totals in memory are loaded once for several rows."""
    whole = params.length - params.length % policy.items
    total = monoid.identity()
    for start in dynamic_range(place.share * policy.items, whole, params.shares * policy.items):
        for i in range(policy.items):
            element = data[(start + i) * params.length_stride + place.column.first]
            total = monoid.combine(total, monoid.lift(element, start + i))
    if place.share == params.shares - 1:
        for index in dynamic_range(whole, params.length):
            last = data[index * params.length_stride + place.column.first]
            total = monoid.combine(total, monoid.lift(last, index))
    return total


@kernel
def reduce_columns(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], shared: Workgroup[S],
    results: Storage[R], params: AxisParams, policy: ReducePolicy, arrangement: Arrangement,
) -> None:  # fmt: skip
    """Reduces a workgroup's share of its columns, to one state each."""
    place = place_of(cx, cx.group_id, params, arrangement)
    total = monoid.identity()
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:
            total = reduce_own_column(monoid, data, place, params, policy)
        case Arrangement.ALONE:
            found: Registers[E] = Registers(monoid.element, policy.items)
            load_column(data, found, place.column, params, policy.items)
            total = take_block(monoid, total, found, U32(0), U32(1), params.length, policy)
        case _:
            total = reduce_shared_column(cx, monoid, data, shared, place, params, policy, arrangement)
    if place.works & (place.rank == 0):
        results[place.share * params.length_result + place.column.result] = finish.finish(total)


def reduce_rows(
    monoid: Monoid[E, S], rows: int, length: int, policy: ReducePolicy, finish: Finish[S, Any] | None = None
) -> Schedule:
    """Reduces every row of `data`, contiguous rows of one length, by a workgroup or several."""
    return reduce_axis(monoid, Layout.rows(rows, length), attrs.evolve(policy, short=1), finish)


def reduce_axis(
    monoid: Monoid[E, S], layout: Layout, policy: ReducePolicy, finish: Finish[S, Any] | None = None
) -> Schedule:
    """Reduces `data`, of `layout.span` elements, along the length into packed `results`, with `finish` applied."""
    return reduce_axes(monoid, (layout,), (policy,), finish)


def reduce_axes(
    monoid: Monoid[E, S], layouts: Sequence[Layout], policies: Sequence[ReducePolicy],
    finish: Finish[S, Any] | None = None,
) -> Schedule:  # fmt: skip
    """Successive reductions by `layouts_to_reduce`. With more than one, the index that lift gets is meaningless."""
    *earlier, last = layouts
    as_it_is, finish = AsItIs(monoid.state), finish or AsItIs(monoid.state)
    data: Buffer[Any] = Buffer("data", monoid.element, layouts[0].span, Role.INPUT)
    results = Buffer("results", finish.result, last.results, Role.OUTPUT)
    reading: Monoid[Any, S] = monoid
    given, launches = (data, results), list[Launch]()
    for number, (layout, policy) in enumerate(zip(earlier, policies, strict=False)):
        states = Buffer(f"states_{number}", monoid.state, layout.results, Role.SCRATCH)
        launches += _reduction(reading, as_it_is, layout, policy, data, states, f"partials_{number}")
        reading, data = OverStates(monoid), states
    launches += _reduction(reading, finish, last, policies[-1], data, results, "partials")
    return Schedule(given, tuple(launches))


def _reduction(
    monoid: Monoid[E, S], finish: Finish[S, R], layout: Layout, policy: ReducePolicy, data: Buffer[E],
    results: Buffer[R], partials: str,
) -> tuple[Launch, ...]:  # fmt: skip
    require_addressable(layout, layout.results)
    if layout.results == 0:
        return ()
    in_rows = layout.row_stride is not None and layout.length >= policy.short
    view = attrs.evolve(Columns.of(layout), are_rows=in_rows)
    cut = Cut.of(view, policy, dtype_of(monoid.element).itemsize)
    if cut.shares == 1:
        return (_launch(monoid, finish, data, results, view, cut, policy),)
    left = view.partials(cut.shares)
    again = attrs.evolve(Cut.of(left, policy, dtype_of(monoid.state).itemsize), shares=1)
    between = Buffer(partials, monoid.state, layout.results * cut.shares, Role.SCRATCH)
    first = _launch(monoid, AsItIs(monoid.state), data, between, view.in_order(cut.shares), cut, policy)
    return first, _launch(OverStates(monoid), finish, between, results, left, again, policy)


def _launch(
    monoid: Monoid[E, S], finish: Finish[S, R], data: Buffer[E], results: Buffer[R], view: Columns, cut: Cut,
    policy: ReducePolicy,
) -> Launch:  # fmt: skip
    return reduce_columns.launch(
        Grid(cut.groups(view), cut.group_size), monoid, finish, data,
        Workgroup(monoid.state, cut.group_size), results, cut.params(view, 1 if view.are_rows else view.count),
        cut.sized(policy), cut.arrangement,
    )  # fmt: skip
