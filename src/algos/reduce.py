"""Reduction over any monoid, once for all targets.

Every invocation keeps a few running totals in registers and steps through its row in the stride of the grid; then
they combine pairwise, in registers, over the subgroup and over workgroup memory. A second launch of the same kernel
combines what the workgroups left. The order depends on the lengths and the policy alone, so a result is reproducible;
the error of a float sum grows with the steps of one total, not with the length.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid, Resumed
from ..types.params import ReduceParams, ReducePolicy
from ..types.scalars import U32
from .sizes import require_countable

E = TypeVar("E")
S = TypeVar("S")


def reduce_registers(monoid: Monoid[E, S], totals: Registers[S], policy: ReducePolicy) -> S:
    """Combines an invocation's totals in pairs."""
    for width in policy.halvings:
        half = (width + 1) // 2
        for i in range(width - half):
            totals[i] = monoid.combine(totals[i], totals[i + half])
    return totals[0]


def reduce_subgroup(cx: Invocation, monoid: Monoid[E, S], total: S) -> S:
    """Combines the totals of a subgroup's lanes; every lane holds the result."""
    distance = cx.subgroup_size // 2
    while distance > 0:
        total = monoid.combine(total, cx.shuffle_xor(total, distance))
        distance = distance // 2
    return total


def reduce_workgroup(cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], count: U32) -> None:
    """Combines the first `count` states of workgroup memory into its first."""
    while count > 1:
        half = (count + 1) // 2
        if cx.local_id < count - half:
            shared[cx.local_id] = monoid.combine(shared[cx.local_id], shared[cx.local_id + half])
        cx.barrier()
        count = half


@kernel
def reduce_row(
    cx: Invocation, monoid: Monoid[E, S], data: Storage[E], shared: Workgroup[S], results: Storage[S],
    params: ReduceParams, policy: ReducePolicy,
) -> None:  # fmt: skip
    """Each workgroup combines its share of a row into one state."""
    row = cx.group_id // params.groups_per_row
    share = cx.group_id - row * params.groups_per_row
    first = row * params.num_elements
    block = cx.group_size * policy.items
    whole = params.num_elements - params.num_elements % block  # up to here, blocks are full and need no test

    totals: Registers[S] = Registers(monoid.state, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        totals[i] = monoid.identity()
    for start in dynamic_range(share * block, whole, params.groups_per_row * block):
        for i in dynamic_range(U32(0), U32(policy.items)):
            index = start + i * cx.group_size + cx.local_id
            totals[i] = monoid.combine(totals[i], monoid.lift(data[first + index], index))
    if share == params.groups_per_row - 1:
        for index in dynamic_range(whole + cx.local_id, params.num_elements, cx.group_size):
            totals[0] = monoid.combine(totals[0], monoid.lift(data[first + index], index))

    total = reduce_registers(monoid, totals, policy)
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
        results[cx.group_id] = shared[0]


def reduce_rows(
    monoid: Monoid[E, S], rows: int, length: int, policy: ReducePolicy, states: Buffer[S] | None = None
) -> Schedule:
    """Reduces every row of `data`, a buffer of rows of one length, to one state in `states`, or else in `results`."""
    require_countable(rows, length)
    data = Buffer("data", monoid.element, rows * length, Role.INPUT)
    results = states or Buffer("results", monoid.state, rows, Role.OUTPUT)
    shared = Workgroup(monoid.state, policy.group_size)

    def launch(source: Monoid[E, S], over: Buffer[E], into: Buffer[S], count: int, groups_per_row: int) -> Launch:
        return reduce_row.launch(
            Grid(rows * groups_per_row, policy.group_size), source, over, shared, into,
            ReduceParams(U32(count), U32(groups_per_row)), policy,
        )  # fmt: skip

    blocks = max(1, length // (policy.group_size * policy.items))
    groups = min(blocks, max(1, policy.groups // max(1, rows)))
    if groups == 1:
        return Schedule((data, results), (launch(monoid, data, results, length, 1),))
    partials = Buffer("partials", monoid.state, rows * groups, Role.SCRATCH)
    again = reduce_row.launch(
        Grid(rows, policy.group_size), Resumed(monoid), partials, shared, results,
        ReduceParams(U32(groups), U32(1)), policy,
    )  # fmt: skip
    return Schedule((data, partials, results), (launch(monoid, data, partials, length, groups), again))
