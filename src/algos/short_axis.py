"""Reductions and scans along short axes, by which there are many columns (points with a few coordinates are such rows):
each invocation loads all of one, and its place must cost one division at most."""

from __future__ import annotations

from ..kernel.language import *
from ..types.params import ColumnParams, ReducePolicy, ScanPolicy
from .columns import Column, column_at
from .cut import Columns
from .layout import Layout
from .reduce import Block, block_of


def own_column(cx: Invocation, params: ColumnParams) -> Column:
    """The column of an invocation. Surplus invocations read the last one."""
    return column_at(minimum(cx.global_id, params.all_columns - 1), params)


def load_column(data: Storage[E], found: Registers[E], column: Column, params: ColumnParams, items: int) -> None:
    """Loads a column of up to so many elements, all in flight at once; beyond its end, its last element."""
    for i in dynamic_range(U32(0), U32(items)):
        found[i] = data[minimum(i, params.length - 1) * params.length_stride + column.first]


@kernel
def reduce_short_columns(
    cx: Invocation, monoid: Monoid[E, S], block: Block[E, S], finish: Finish[S, R], data: Storage[E],
    results: Storage[R], params: ColumnParams, policy: ReducePolicy,
) -> None:  # fmt: skip
    """Reduces columns of up to `policy.items` elements."""
    column = own_column(cx, params)
    found: Registers[E] = Registers(monoid.element, policy.items)
    load_column(data, found, column, params, policy.items)
    total = block.take(monoid.identity(), found, U32(0), U32(1), params.length, policy)
    if cx.global_id < params.all_columns:
        results[column.result] = finish.finish(total)


@kernel
def scan_short_columns(
    cx: Invocation, monoid: Monoid[E, S], finish: Finish[S, R], data: Storage[E], results: Storage[R],
    params: ColumnParams, policy: ScanPolicy, kind: ScanKind,
) -> None:  # fmt: skip
    """Scans columns of up to `policy.items` elements."""
    column = own_column(cx, params)
    found: Registers[E] = Registers(monoid.element, policy.items)
    load_column(data, found, column, params, policy.items)
    before = monoid.identity()
    for i in dynamic_range(U32(0), U32(policy.items)):
        following = monoid.combine(before, monoid.lift(found[i], i))
        shown = following if kind is ScanKind.INCLUSIVE else before
        if (cx.global_id < params.all_columns) & (i < params.length):
            results[i * params.length_result + column.result] = finish.finish(shown)
        before = following


def is_short(layout: Layout, policy: ReducePolicy | ScanPolicy) -> bool:
    """Whether these kernels serve a layout."""
    return policy.alone and 0 < layout.length <= policy.items


def reduce_short_axis(
    monoid: Monoid[E, S], finish: Finish[S, R], layout: Layout, policy: ReducePolicy, data: Buffer[E],
    results: Buffer[R],
) -> Launch:  # fmt: skip
    grid, params = _launched(Columns.of(layout), 1, policy)
    return reduce_short_columns.launch(grid, monoid, block_of(monoid), finish, data, results, params, policy)


def scan_short_axis(
    monoid: Monoid[E, S], finish: Finish[S, R], layout: Layout, kind: ScanKind, policy: ScanPolicy, data: Buffer[E],
    results: Buffer[R],
) -> Launch:  # fmt: skip
    grid, params = _launched(Columns.to_scan(layout), layout.inner, policy)
    return scan_short_columns.launch(grid, monoid, finish, data, results, params, policy, kind)


def _launched(view: Columns, length_result: int, policy: ReducePolicy | ScanPolicy) -> tuple[Grid, ColumnParams]:
    params = ColumnParams(*map(U32, view.numbers(length_result)))
    return Grid(-(-view.count // policy.group_size), policy.group_size), params
