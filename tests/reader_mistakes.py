"""Kernels that the reader must refuse. The line it must name ends with the mark `# <-`.

They are wrong on purpose, and several also to the type checkers, which therefore do not look at this file.
"""
# mypy: ignore-errors
# pyright: basic, reportGeneralTypeIssues=false
# ruff: noqa

from __future__ import annotations

from enum import Enum

import attrs

from gpusort.kernel.kernel import kernel
from gpusort.types.indices import SortOrder, Stage
from gpusort.types.intrinsics import bitcast, count_ones, dynamic_range, minimum
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, U8, U32, U64, Bool


@attrs.frozen
class Params:
    n: U32
    order: SortOrder
    stage: Stage


@attrs.frozen
class Pair:
    low: U32
    high: U32


def recursive(x: U32) -> U32:
    return recursive(x)  # <-


@kernel
def calls_itself(cx, data: Storage[U32], p: Params):
    data[0] = recursive(p.n)


@kernel
def mixes_types(cx, data: Storage[U32], p: Params):
    data[0] = p.n + U64(1)  # <-


@kernel
def literal_too_large(cx, data: Storage[U32], p: Params):
    data[0] = p.n + 4294967296  # <-


@kernel
def float_beside_integer(cx, data: Storage[U32], p: Params):
    data[0] = p.n + 0.5  # <-


@kernel
def indexes_by_a_stage(cx, data: Storage[U32], p: Params):
    data[p.stage] = p.n  # <-


@kernel
def stores_a_float(cx, data: Storage[U32], p: Params):
    data[0] = F32(1.0)  # <-


@kernel
def stores_a_python_int(cx, data: Storage[U32], p: Params):
    data[0] = 1  # <-


@kernel
def slices(cx, data: Storage[U32], p: Params):
    data[0] = data[1:2]  # <-


@kernel
def chained_comparison(cx, data: Storage[U32], p: Params):
    if 1 < p.n < 5:  # <-
        data[0] = p.n


@kernel
def membership(cx, data: Storage[U32], p: Params):
    if p.n in (1, 2):  # <-
        data[0] = p.n


@kernel
def number_as_condition(cx, data: Storage[U32], p: Params):
    if p.n:  # <-
        data[0] = p.n


@kernel
def not_of_a_number(cx, data: Storage[U32], p: Params):
    if not p.n:  # <-
        data[0] = p.n


@kernel
def power(cx, data: Storage[U32], p: Params):
    data[0] = p.n**2  # <-


@kernel
def true_division(cx, data: Storage[U32], p: Params):
    data[0] = p.n / p.n  # <-


@kernel
def division_by_zero(cx, data: Storage[U32], p: Params):
    data[0] = U32(1) // U32(0)  # <-


@kernel
def range_of_a_scalar(cx, data: Storage[U32], p: Params):
    for i in range(p.n):  # <-
        data[i] = p.n


@kernel
def break_of_an_unrolled_loop(cx, data: Storage[U32], p: Params):
    for i in range(4):
        if data[i] == 0:
            break  # <-


@kernel
def returns_from_a_loop(cx, data: Storage[U32], p: Params):
    for i in dynamic_range(U32(0), p.n):
        if data[i] == 0:
            return  # <-


@kernel
def for_else(cx, data: Storage[U32], p: Params):
    for i in dynamic_range(U32(0), p.n):  # <-
        data[i] = p.n
    else:
        data[0] = p.n


@kernel
def counts_in_a_python_int(cx, data: Storage[U32], p: Params):
    count = 0
    for i in dynamic_range(U32(0), p.n):  # <-
        count = count + 1
    data[0] = U32(count)


@kernel
def unset_on_a_path(cx, data: Storage[U32], p: Params):
    if p.n > 1:
        x = p.n
    data[0] = x  # <-


@kernel
def changes_its_type(cx, data: Storage[U32], p: Params):
    x = p.n
    x = U64(p.n)  # <-
    data[0] = U32(x)


@kernel
def changes_a_field(cx, data: Storage[U32], p: Params):
    p.n = U32(1)  # <-


@kernel
def forgets_a_case(cx, data: Storage[U32], p: Params):
    match p.order:  # <-
        case SortOrder.ASCENDING:
            data[0] = p.n


@kernel
def matches_a_number(cx, data: Storage[U32], p: Params):
    match p.n:  # <-
        case 1:
            data[0] = p.n


@kernel
def guards_a_case(cx, data: Storage[U32], p: Params):
    match p.order:
        case SortOrder.ASCENDING if p.n > 1:  # <-
            data[0] = p.n
        case _:
            pass


@kernel
def asserts(cx, data: Storage[U32], p: Params):
    assert p.n > 1  # <-


@kernel
def raises(cx, data: Storage[U32], p: Params):
    raise ValueError  # <-


@kernel
def prints(cx, data: Storage[U32], p: Params):
    print(p.n)  # <-


@kernel
def makes_a_list(cx, data: Storage[U32], p: Params):
    items = [p.n, p.n]  # <-


@kernel
def uses_a_lambda(cx, data: Storage[U32], p: Params):
    double = lambda x: x + x  # <-


@kernel
def formats(cx, data: Storage[U32], p: Params):
    text = f"{p.n}"  # <-


@kernel
def walrus(cx, data: Storage[U32], p: Params):
    if (x := p.n) > 1:  # <-
        data[0] = x


@kernel
def unknown_name(cx, data: Storage[U32], p: Params):
    data[0] = nowhere  # <-


@kernel
def unknown_field(cx, data: Storage[U32], p: Params):
    data[0] = p.length  # <-


@kernel
def unknown_method_of_cx(cx, data: Storage[U32], p: Params):
    cx.wait()  # <-


@kernel
def barrier_with_an_argument(cx, data: Storage[U32], p: Params):
    cx.barrier(1)  # <-


@kernel
def too_few_arguments(cx, data: Storage[U32], p: Params):
    data[0] = Pair(p.n).low  # <-


@kernel
def wrong_field_type(cx, data: Storage[U32], p: Params):
    data[0] = Pair(p.n, U64(1)).low  # <-


@kernel
def builtin_on_scalars(cx, data: Storage[U32], p: Params):
    data[0] = min(p.n, U32(3))  # <-


@kernel
def two_targets(cx, data: Storage[U32], p: Params):
    a = b = p.n  # <-


@kernel
def imports(cx, data: Storage[U32], p: Params):
    import math  # <-


@kernel
def with_block(cx, data: Storage[U32], p: Params):
    with p:  # <-
        pass


@kernel
def narrow_arithmetic(cx, data: Storage[U32], p: Params):
    data[0] = U32(U8(p.n) + U8(p.n))  # <-


@kernel
def atomic_on_registers(cx, data: Storage[U32], p: Params):
    mine: Registers[U32] = Registers(U32, 4)
    mine.atomic_add(0, U32(1))  # <-


@kernel
def registers_of_run_time_length(cx, data: Storage[U32], p: Params):
    mine: Registers[U32] = Registers(U32, p.n)  # <-


@kernel
def bitcasts_to_another_size(cx, data: Storage[U32], p: Params):
    data[0] = U32(bitcast(U64, p.n))  # <-


@kernel
def different_arms(cx, data: Storage[U32], p: Params):
    x = p.n if p.n > 1 else U64(1)  # <-


@kernel
def loops_over_a_scalar(cx, data: Storage[U32], p: Params):
    for i in p.n:  # <-
        pass


@kernel
def step_of_zero(cx, data: Storage[U32], p: Params):
    for i in dynamic_range(U32(0), p.n, U32(0)):  # <-
        pass
