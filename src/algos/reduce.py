"""Reduction of rows over any monoid.

Invocations reduce blocks of a row in a grid-stride loop (share.py); totals are combined by shuffles, then as a tree in
workgroup memory, those of workgroups by a second launch. The order depends on lengths and policy alone, so results are
reproducible; a float sum's rounding error grows with the iterations of one invocation, not with the length.
"""

from __future__ import annotations

from typing import Any

from ..kernel.language import *
from ..types.monoids import OverStates
from ..types.params import ReduceParams, ReducePolicy
from .cut import shares_of
from .share import Block, Share, block_of, reduce_share
from .sizes import require_countable


def reduce_subgroup(cx: Invocation, monoid: Monoid[E, S], total: S) -> S:
    """A butterfly reduction over a subgroup; every lane gets the result."""
    distance = cx.subgroup_size // 2
    while distance > 0:
        total = monoid.combine(total, cx.shuffle_xor(total, distance))
        distance = distance // 2
    return total


def reduce_workgroup(cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], count: U32) -> None:
    """A tree reduction of the first `count` states of workgroup memory, into its first."""
    while count > 1:
        half = (count + 1) // 2
        if cx.local_id < count - half:
            shared[cx.local_id] = monoid.combine(shared[cx.local_id], shared[cx.local_id + half])
        cx.barrier()
        count = half


@kernel
def reduce_row(
    cx: Invocation, monoid: Monoid[E, S], block: Block[E, S], finish: Finish[S, R], data: Storage[E],
    shared: Workgroup[S], results: Storage[R], params: ReduceParams, policy: ReducePolicy,
) -> None:  # fmt: skip
    """Reduces a workgroup's share of a row to one state."""
    row = cx.group_id // params.groups_per_row
    share = cx.group_id - row * params.groups_per_row
    size = cx.group_size * policy.items
    mine = Share(
        row * params.row_stride, U32(1), params.num_elements, share * size, params.groups_per_row * size, cx.local_id,
        cx.group_size, share == params.groups_per_row - 1,
    )  # fmt: skip
    total = reduce_share(monoid, block, data, mine, policy)
    if policy.subgroups:
        total = reduce_subgroup(cx, monoid, total)
        if cx.lane == 0:
            shared[cx.subgroup_id] = total
        cx.barrier()
        reduce_workgroup(cx, monoid, shared, cx.group_size // cx.subgroup_size)
    else:
        shared[cx.local_id] = total
        cx.barrier()
        reduce_workgroup(cx, monoid, shared, cx.group_size)
    if cx.local_id == 0:
        results[cx.group_id] = finish.finish(shared[0])


def reduce_rows(
    monoid: Monoid[E, S], rows: int, length: int, policy: ReducePolicy, finish: Finish[S, Any] | None = None
) -> Schedule:
    """Reduces every row of `data`, contiguous rows of one length, to one of `results`, with `finish` applied."""
    require_countable(rows, length)
    finish = finish or AsItIs(monoid.state)
    data = Buffer("data", monoid.element, rows * length, Role.INPUT)
    results = Buffer("results", finish.result, rows, Role.OUTPUT)
    return reduce_rows_between(monoid, finish, rows, length, length, policy, data, results, "partials")


def reduce_rows_between(
    monoid: Monoid[E, S], finish: Finish[S, R], rows: int, length: int, row_stride: int, policy: ReducePolicy,
    data: Buffer[E], results: Buffer[R], partials: str,
) -> Schedule:  # fmt: skip
    """The same between given buffers; `partials` is the name of the scratch buffer between two launches."""
    shared = Workgroup(monoid.state, policy.group_size)
    groups = shares_of(length, policy.group_size * policy.items, policy.groups // max(1, rows))
    params = ReduceParams(U32(length), U32(groups), U32(row_stride))
    grid = Grid(rows * groups, policy.group_size)
    if groups == 1:
        only = reduce_row.launch(grid, monoid, block_of(monoid), finish, data, shared, results, params, policy)
        return Schedule((data, results), (only,))
    between = Buffer(partials, monoid.state, rows * groups, Role.SCRATCH)
    over_states = OverStates(monoid)
    again = reduce_row.launch(
        Grid(rows, policy.group_size), over_states, block_of(over_states), finish, between, shared, results,
        ReduceParams(U32(groups), U32(1), U32(groups)), policy,
    )  # fmt: skip
    first = reduce_row.launch(
        grid, monoid, block_of(monoid), AsItIs(monoid.state), data, shared, between, params, policy
    )
    return Schedule((data, between, results), (first, again))
