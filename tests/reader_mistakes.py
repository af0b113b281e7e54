"""Kernels that the reader must refuse. The line it must name ends with the mark `# <-`.

They are wrong on purpose, and several also to the type checkers, which therefore do not look at this file.
"""
# mypy: ignore-errors

from __future__ import annotations

import dataclasses
import math
from enum import Enum, Flag, IntEnum
from functools import cached_property, wraps
from typing import NamedTuple, NewType, assert_never

import attrs
import numpy as np

import gpusort
from gpusort.kernel.kernel import kernel
from gpusort.types.indices import SortOrder, Stage
from gpusort.types.intrinsics import add_nowrap, bitcast, count_ones, dynamic_range, minimum, select
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, U8, U32, U64, Bool


HUGE = 10**400
TABLE = np.arange(4, dtype=np.uint32)


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
def shifts_by_a_wide_number(cx, data: Storage[U32], p: Params):
    wide = U64(p.n)
    data[0] = U32(wide << wide)  # <-


@kernel
def inverts_a_float(cx, data: Storage[U32], p: Params):
    data[0] = bitcast(U32, ~F32(p.n))  # <-


@kernel
def mixes_types(cx, data: Storage[U32], p: Params):
    data[0] = p.n + U64(1)  # <-


@kernel
def literal_too_large(cx, data: Storage[U32], p: Params):
    data[0] = p.n + 4294967296  # <-


@kernel
def int_beyond_floats(cx, data: Storage[U32], p: Params):
    data[0] = U32(F32(HUGE))  # <-


@kernel
def more_rounds_than_python_counts(cx, data: Storage[U32], p: Params):
    for _ in range(HUGE):  # <-
        data[0] = p.n


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
def sum_beyond_its_type(cx, data: Storage[U32], p: Params):
    data[0] = add_nowrap(U32(4294967295), U32(1))  # <-


@kernel
def zeros_of_two_signs(cx, data: Storage[U32], p: Params):
    if p.n > 1:
        zero = 0.0
    else:
        zero = -0.0
    data[0] = bitcast(U32, F32(zero))  # <-


@kernel
def nothing_or_zero(cx, data: Storage[U32], p: Params):
    if p.n > 1:
        x = ()
    else:
        x = 0
    data[0] = U32(x)  # <-


@attrs.frozen
class Scaled:
    x: U32
    by: float


@kernel
def structs_that_differ_at_compile_time(cx, data: Storage[U32], p: Params):
    scaled = Scaled(p.n, 0.5)
    if p.n > 1:
        scaled = Scaled(p.n, 2.0)  # <-
    data[0] = scaled.x


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
    for i in dynamic_range(U32(0), p.n):
        count = count + 1  # <-
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


@kernel
def reads_the_counter_behind_its_loop(cx, data: Storage[U32], p: Params):
    i = U32(7)
    for i in dynamic_range(U32(0), p.n):
        data[i] = i
    data[0] = i  # <-


@kernel
def python_int_set_before_break(cx, data: Storage[U32], p: Params):
    found = 0
    for i in dynamic_range(U32(0), p.n):
        if data[i] == 1:
            found = 1
            break
    data[0] = U32(found)  # <-


@kernel
def python_int_set_before_continue(cx, data: Storage[U32], p: Params):
    found = 0
    for i in range(4):
        if data[i] == 1:
            found = 1
            continue
        data[i] = p.n
    data[0] = U32(found)  # <-


@kernel
def breaks_beside_a_return(cx, data: Storage[U32], p: Params):
    for i in range(4):  # <-
        if data[i] == 1:
            return
        if data[i] == 2:
            break


@kernel
def identity_of_scalars(cx, data: Storage[U32], p: Params):
    data[0] = U32(p.n is data[1])  # <-


def returns_sometimes(x):  # <-
    if x > 1:
        return U32(1)


@kernel
def falls_off_a_helper(cx, data: Storage[U32], p: Params):
    data[0] = returns_sometimes(p.n)


def returns_two_types(x):
    if x > 1:
        return U32(1)
    return F32(1.0)  # <-


@kernel
def helper_of_two_types(cx, data: Storage[U32], p: Params):
    data[0] = returns_two_types(p.n)


def doubled(helper):
    @wraps(helper)
    def around(x):
        return helper(x) * 2

    return around


@doubled
def plus_one(x):
    return x + 1


@kernel
def decorated_helper(cx, data: Storage[U32], p: Params):
    data[0] = plus_one(p.n)  # <-


@attrs.frozen
class Converted:
    value: U32 = attrs.field(converter=lambda x: x + 1)


@kernel
def converting_struct(cx, data: Storage[U32], p: Params):
    data[0] = Converted(p.n).value  # <-


@kernel
def too_many_operands(cx, data: Storage[U32], p: Params):
    data[0] = minimum(p.n, p.n, p.n)  # <-


@kernel
def tuple_too_short(cx, data: Storage[U32], p: Params):
    data[0] = (p.n, p.n)[2]  # <-


@kernel
def known_values_that_do_not_fit(cx, data: Storage[U32], p: Params):
    data[0] = U32(1 // 0)  # <-


@kernel
def run_time_value_over_zero(cx, data: Storage[U32], p: Params):
    data[0] = p.n // 0  # <-


@kernel
def narrow_literal_too_large(cx, data: Storage[U32], p: Params):
    data[0] = U32(U8(300))  # <-


@kernel
def bitcast_to_itself(cx, data: Storage[U32], p: Params):
    data[0] = bitcast(U32, p.n)  # <-


@kernel
def no_registers(cx, data: Storage[U32], p: Params):
    mine: Registers[U32] = Registers(U32, 0)  # <-


@kernel
def registers_of_ints(cx, data: Storage[U32], p: Params):
    mine = Registers(int, 4)  # <-


@kernel
def shuffles_an_array(cx, data: Storage[U32], p: Params):
    data[0] = cx.shuffle(data, p.n)  # <-


@kernel
def unpacks_too_much(cx, data: Storage[U32], p: Params):
    a, b = p.n, p.n, p.n  # <-


@kernel
def negates_unsigned(cx, data: Storage[U32], p: Params):
    data[0] = -p.n  # <-


@kernel
def selects_by_a_number(cx, data: Storage[U32], p: Params):
    data[0] = select(p.n, p.n, p.n)  # <-


@kernel
def converts_a_float(cx, data: Storage[U32], p: Params):
    data[0] = U32(F32(p.n))  # <-


@kernel
def stores_a_number_for_a_pair(cx, data: Storage[U32], p: Params):
    pairs: Registers[Pair] = Registers(Pair, 4)
    pairs[0] = p.n  # <-


@kernel
def stores_a_number_for_a_stage(cx, data: Storage[U32], p: Params):
    stages: Registers[Stage] = Registers(Stage, 4)
    stages[0] = p.n  # <-


@kernel
def number_for_an_order(cx, data: Storage[U32], p: Params):
    data[0] = Params(p.n, p.n, p.stage).n  # <-


@attrs.frozen
class Plan:
    passes: int


@kernel
def number_for_a_python_int(cx, data: Storage[U32], p: Params):
    data[0] = U32(Plan(p.n).passes)  # <-


@kernel
def loads_with_a_value(cx, data: Storage[U32], p: Params):
    data[0] = data.atomic_load(0, p.n)  # <-


@kernel
def adds_without_a_value(cx, data: Storage[U32], p: Params):
    data.atomic_add(0)  # <-


@kernel
def python_int_of_a_scalar(cx, data: Storage[U32], p: Params):
    data[0] = U32(int(p.n))  # <-


@kernel
def python_float_of_a_scalar(cx, data: Storage[U32], p: Params):
    data[0] = U32(float(p.n))  # <-


@kernel
def python_bool_of_a_scalar(cx, data: Storage[U32], p: Params):
    data[0] = U32(bool(p.n))  # <-


@kernel
def abs_of_a_scalar(cx, data: Storage[U32], p: Params):
    data[0] = abs(p.n)  # <-


@kernel
def len_of_an_array(cx, data: Storage[U32], p: Params):
    data[0] = U32(len(data))  # <-


@kernel
def misspells_an_id(cx, data: Storage[U32], p: Params):
    data[cx.locl_id] = p.n  # <-


@kernel
def number_in_an_arm(cx, data: Storage[U32], p: Params):
    data[0] = p.n if p.n > 1 else 0  # <-


@kernel
def looks_a_scalar_up(cx, data: Storage[U32], p: Params):
    data[0] = (1, 2)[p.n]  # <-


@kernel
def makes_a_newtype_of_typing(cx, data: Storage[U32], p: Params):
    data[0] = Meters(p.n)  # <-


Meters = NewType("Meters", U32)


@kernel
def math_on_scalars(cx, data: Storage[U32], p: Params):
    data[0] = U32(math.sqrt(p.n))  # <-


@kernel
def built_in_without_source(cx, data: Storage[U32], p: Params):
    data[0] = round(p.n)  # <-


@kernel
def defines_a_helper(cx, data: Storage[U32], p: Params):
    def doubled(x: U32) -> U32:  # <-
        return x + x

    data[0] = doubled(p.n)


# -- what is ordinary in Python ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Plain:
    low: U32


class Named(NamedTuple):
    low: U32


@attrs.frozen
class Cached:
    low: U32

    @cached_property
    def doubled(self) -> U32:
        return self.low + self.low


def gives_several(x):
    yield x  # <-


@kernel
def makes_a_dataclass(cx, data: Storage[U32], p: Params):
    data[0] = Plain(p.n).low  # <-


@kernel
def makes_a_named_tuple(cx, data: Storage[U32], p: Params):
    data[0] = Named(p.n).low  # <-


@kernel
def evolves(cx, data: Storage[U32], p: Params):
    data[0] = attrs.evolve(p, n=U32(1)).n  # <-


@kernel
def takes_a_struct_apart_by_attrs(cx, data: Storage[U32], p: Params):
    data[0] = attrs.astuple(p)[0]  # <-


@kernel
def starred_name(cx, data: Storage[U32], p: Params):
    first, *rest = p.n, p.n, p.n  # <-
    data[0] = first


@kernel
def enumerates(cx, data: Storage[U32], p: Params):
    for i, x in enumerate((1, 2)):  # <-
        data[i] = U32(x)


@kernel
def numpy_on_scalars(cx, data: Storage[U32], p: Params):
    data[0] = np.minimum(p.n, p.n)  # <-


@kernel
def minimum_of_floats(cx, data: Storage[U32], p: Params):
    data[0] = bitcast(U32, minimum(F32(p.n), F32(1.0)))  # <-


@kernel
def numpy_scalar(cx, data: Storage[U32], p: Params):
    data[0] = p.n + np.uint32(1)  # <-


@kernel
def number_of_a_table_of_numpys(cx, data: Storage[U32], p: Params):
    data[0] = p.n + TABLE[1]  # <-


@kernel
def loops_over_an_array(cx, data: Storage[U32], p: Params):
    for x in data:  # <-
        data[0] = x


@kernel
def loops_over_a_generator(cx, data: Storage[U32], p: Params):
    for x in gives_several(p.n):
        data[0] = x


@kernel
def counts_from_the_end(cx, data: Storage[U32], p: Params):
    data[0] = data[-1]  # <-


@kernel
def two_indices(cx, data: Storage[U32], p: Params):
    data[0] = data[p.n, p.n]  # <-


@kernel
def imaginary(cx, data: Storage[U32], p: Params):
    data[0] = U32(1j)  # <-


@kernel
def size_of_an_array(cx, data: Storage[U32], p: Params):
    data[0] = data.size  # <-


@kernel
def property_that_is_kept(cx, data: Storage[U32], p: Params):
    data[0] = Cached(p.n).doubled  # <-


@kernel
def workgroup_memory_in_the_body(cx, data: Storage[U32], p: Params):
    tile = Workgroup(U32, 4)  # <-


@kernel
def storage_in_the_body(cx, data: Storage[U32], p: Params):
    more = Storage(U32, 4)  # <-


@kernel
def never_ends(cx, data: Storage[U32], p: Params):
    while True:  # <-
        data[0] += 1


@kernel
def tries_several(cx, data: Storage[U32], p: Params):
    try:  # <-
        data[0] = p.n
    except* ValueError:
        pass


@kernel
def declares_a_global(cx, data: Storage[U32], p: Params):
    global HUGE  # <-
    HUGE = 1


@kernel
def deletes(cx, data: Storage[U32], p: Params):
    x = p.n
    del x  # <-


@kernel
def names_a_wide_number(cx, data: Storage[U32], p: Params):
    data[0] = U32(U8(p.n) == p.n)  # <-


@kernel
def equates_with_too_much(cx, data: Storage[U32], p: Params):
    data[0] = U32(U8(p.n) == 256)  # <-


@kernel
def large_power(cx, data: Storage[U32], p: Params):
    data[0] = U32(2 ** 10**9)  # <-


@kernel
def large_shift(cx, data: Storage[U32], p: Params):
    data[0] = U32((1 << 10**9) & 1)  # <-


@kernel
def large_product(cx, data: Storage[U32], p: Params):
    x = 3
    for _ in range(100):
        x = x * x  # <-
    data[0] = U32(x % 7)


@kernel
def large_text(cx, data: Storage[U32], p: Params):
    data[0] = U32(len("a" * 10**10))  # <-


@kernel
def large_factorial(cx, data: Storage[U32], p: Params):
    data[0] = U32(math.factorial(10**7) % 7)  # <-


@kernel
def sums_a_large_range(cx, data: Storage[U32], p: Params):
    data[0] = U32(sum(range(10**12)) % 7)  # <-


@kernel
def many_registers(cx, data: Storage[U32], p: Params):
    enough = Registers(Bool, 2048)
    more = Registers(U32, 2049)  # <-
    enough[0] = p.n == 1
    more[0] = p.n


@kernel
def adds_a_struct(cx, data: Storage[U32], p: Params):
    data[0] = p.n + p.stage  # <-


@kernel
def asks_for_no_class(cx, data: Storage[U32], p: Params):
    data[0] = U32(isinstance(p.n))  # <-


@kernel
def connects_a_number(cx, data: Storage[U32], p: Params):
    data[0] = U32(p.n > 1 and 5)  # <-


@kernel
def connects_nothing(cx, data: Storage[U32], p: Params):
    x = p.n > 1 and (p.n < 7 or None)  # <-


@attrs.frozen(order=True)
class Ordered:
    low: U32
    high: U32 = attrs.field(factory=lambda: U32(4))


@kernel
def compares_by_a_tuple(cx, data: Storage[U32], p: Params):
    data[0] = U32(Ordered(p.n, p.n) < Ordered(p.n, p.n))  # <-


@kernel
def asks_a_factory(cx, data: Storage[U32], p: Params):
    data[0] = Ordered(p.n).high  # <-


@kernel
def identity_of_structs(cx, data: Storage[U32], p: Params):
    data[0] = U32(p.stage is p.stage)  # <-


@kernel
def indexes_by_another_number(cx, data: Storage[U32], p: Params):
    data[U64(p.n)] = p.n  # <-


@kernel
def chooses_an_array(cx, data: Storage[U32], p: Params):
    mine: Registers[U32] = Registers(U32, 4)
    either = mine if p.n > 1 else data  # <-


@kernel
def makes_a_bool_of_a_number(cx, data: Storage[U32], p: Params):
    data[0] = U32(Bool(5))  # <-


@kernel
def never_comes_here(cx, data: Storage[U32], p: Params):
    if p.order is SortOrder.ASCENDING:
        data[0] = p.n
    else:
        assert_never(p.order)  # <-


@kernel
def subtracts_from_the_number_of_an_enum(cx, data: Storage[U32], p: Params):
    sign = 1 - 2 * p.order.value  # <-


@kernel
def negates_the_number_of_an_enum(cx, data: Storage[U32], p: Params):
    sign = -p.order.value  # <-


@kernel
def exceeds_the_number_of_an_enum(cx, data: Storage[U32], p: Params):
    data[0] = p.n + p.order.value * (1 << 32)  # <-


class Sign(Enum):
    PLUS = 1
    MINUS = -1


@kernel
def chooses_a_negative_member(cx, data: Storage[U32], p: Params):
    sign = Sign.PLUS if p.n > 1 else Sign.MINUS  # <-


@kernel
def equates_with_a_negative_member(cx, data: Storage[U32], p: Params):
    data[0] = U32(p.order == Sign.MINUS)  # <-


@attrs.frozen
class Signed:
    size: U32
    sign: Sign


@kernel
def calls_an_enum_of_no_members(cx, data: Storage[U32], p: Params):
    data[0] = U32(Enum(p.n) == p.order)  # <-


@kernel
def asks_for_the_name_of_a_member(cx, data: Storage[U32], p: Params):
    data[0] = U32(p.order.name == "ASCENDING")  # <-


@kernel
def matches_a_negative_member(cx, data: Storage[U32], p: Params):
    numbers = Registers(Signed, 1)
    match numbers[0].sign:  # <-
        case Sign.MINUS:
            data[0] = p.n
        case Sign.PLUS:
            pass


@kernel
def holds_a_negative_member(cx, data: Storage[U32], p: Params):
    data[0] = Signed(p.n, Sign.MINUS).size  # <-


@kernel
def takes_numbers_of_enums_for_scalars(cx, data: Storage[U32], p: Params):
    number = p.order.value if p.n > 1 else p.order.value
    data[0] = U32(number - 5 < 0)  # <-


@kernel
def adds_to_a_number_that_changed(cx, data: Storage[U32], p: Params):
    number = p.order.value
    for i in dynamic_range(U32(0), p.n):
        number = p.order.value
    data[0] = U32(U64(number + 1) >> 32)  # <-


def one_of(a, b, flag):
    if flag:
        return a
    return b  # <-


@kernel
def gives_two_arrays(cx, data: Storage[U32], p: Params):
    tile: Registers[U32] = Registers(U32, 4)
    one_of(data, tile, p.n > 1)[0] = p.n


@attrs.frozen
class Tripled:
    x: U32
    times: int = 3


@kernel
def chooses_a_choice(cx, data: Storage[U32], p: Params):
    data[0] = (Tripled(p.n) if p.n > 1 else Tripled(p.n, 5)).x  # <-


@kernel
def swaps_arrays_in_a_loop(cx, data: Storage[U32], p: Params):
    a, b = Registers(U32, 4), Registers(U32, 4)
    for i in dynamic_range(U32(0), p.n):
        b[0] = a[0] + i  # <-
        a, b = b, a


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@attrs.frozen
class Leveled(Pair):
    level: Level

    def sum(self):
        return super().sum()  # <-


@kernel
def takes_an_enum_for_its_number(cx, data: Storage[U32], p: Params):
    data[0] = p.n + Leveled(p.n, p.n, Level.HIGH).level  # <-


@kernel
def converts_an_enum(cx, data: Storage[U32], p: Params):
    data[0] = U32(Leveled(p.n, p.n, Level.HIGH).level)  # <-


class Marks(Flag):
    FIRST = 1
    LAST = 2


@attrs.frozen
class Marked:
    marks: Marks
    x: U32


@kernel
def matches_flags(cx, data: Storage[U32], p: Params):
    match Marked(Marks.FIRST, p.n).marks:  # <-
        case Marks.FIRST:
            data[0] = p.n
        case Marks.LAST:
            data[1] = p.n


@kernel
def multiplies_flags(cx, data: Storage[U32], p: Params):
    marked = Marked(Marks.FIRST, p.n) if p.n > 1 else Marked(Marks.FIRST | Marks.LAST, p.n)
    data[0] = p.n + marked.marks.value * 2  # <-


@kernel
def keeps_a_bool_by_plus(cx, data: Storage[U32], p: Params):
    data[0] = U32(+(p.n > 1))  # <-


@kernel
def calls_super(cx, data: Storage[U32], p: Params):
    data[0] = Leveled(p.n, p.n, Level.HIGH).sum()


@kernel
def inverts_what_python_negates(cx, data: Storage[U32], p: Params):
    data[0] = U32(~(not p.n > 1))  # <-


@kernel
def inverts_an_equality_of_enums(cx, data: Storage[U32], p: Params):
    data[0] = U32(~(p.order == SortOrder.ASCENDING))  # <-


@kernel
def inverts_an_identity(cx, data: Storage[U32], p: Params):
    data[0] = U32(~(SortOrder.ASCENDING is p.order))  # <-


@attrs.frozen
class Vector:
    x: U32

    def __rmul__(self, times):
        return Vector(self.x * times)


@kernel
def multiplies_a_scalar_by_a_struct(cx, data: Storage[U32], p: Params):
    data[0] = (p.n * Vector(p.n)).x  # <-


def squared(method):
    @wraps(method)
    def around(*operands):
        return method(*operands) * method(*operands)

    return around


@attrs.frozen
class Odd:
    """With methods that Python would call another way than they are read."""

    x: U32

    @property
    @squared
    def area(self):
        return self.x

    @squared
    def __add__(self, other):
        return self.x + other.x

    def __sub__(self):
        return self.x

    @property
    def failing(self):
        return self.x // 0


@kernel
def reads_a_decorated_property(cx, data: Storage[U32], p: Params):
    data[0] = Odd(p.n).area  # <-


@kernel
def adds_by_a_decorated_method(cx, data: Storage[U32], p: Params):
    data[0] = Odd(p.n) + Odd(p.n)  # <-


@kernel
def subtracts_by_a_method_of_one_operand(cx, data: Storage[U32], p: Params):
    data[0] = Odd(p.n) - Odd(p.n)  # <-


@kernel
def names_an_argument_of_a_scalar(cx, data: Storage[U32], p: Params):
    data[0] = U32(p.n, base=16)  # <-


@kernel
def takes_an_array_for_a_condition(cx, data: Storage[U32], p: Params):
    if TABLE:  # <-
        data[0] = p.n


@kernel
def connects_an_array(cx, data: Storage[U32], p: Params):
    if TABLE and p.n > 1:  # <-
        data[0] = p.n


@kernel
def calls_an_array(cx, data: Storage[U32], p: Params):
    data[0] = p.n + TABLE(1)  # <-


@kernel
def loops_over_a_class(cx, data: Storage[U32], p: Params):
    for x in list:  # <-
        data[0] = x


class Failing:
    @property
    def width(self):
        raise OSError("no width")

    def __getattr__(self, name):
        raise OSError(f"no {name}")


FAILING = Failing()


@kernel
def asks_a_property_that_fails(cx, data: Storage[U32], p: Params):
    data[0] = p.n + FAILING.width  # <-


@kernel
def asks_for_an_attribute_in_vain(cx, data: Storage[U32], p: Params):
    data[0] = p.n + FAILING.height  # <-


class Alike(Enum):
    ONE = 1
    OTHER = 2

    def __eq__(self, other):
        return True


@attrs.frozen
class Likeness:
    kind: Alike
    x: U32


@kernel
def equates_what_are_all_equal(cx, data: Storage[U32], p: Params):
    data[0] = U32(Likeness(Alike.ONE, p.n).kind == Alike.OTHER)  # <-


@kernel
def matches_what_are_all_equal(cx, data: Storage[U32], p: Params):
    match Likeness(Alike.ONE, p.n).kind:  # <-
        case Alike.ONE:
            data[0] = p.n
        case Alike.OTHER:
            data[1] = p.n


@kernel
def sorts_as_the_host_does(cx, data: Storage[U32], p: Params):
    data[0] = gpusort.sort(data)  # <-


@kernel
def looks_up_a_key(cx, data: Storage[U32], p: Params):
    data[0] = gpusort.key_for("uint32").to_word(p.n)  # <-


COUNTS = {"two": 2}


@kernel
def looks_up_what_is_not_there(cx, data: Storage[U32], p: Params):
    data[0] = p.n + COUNTS["three"]  # <-


@kernel
def forgets_to_call_the_barrier(cx, data: Storage[U32], p: Params):
    cx.barrier  # <-


@kernel
def compares_for_nothing(cx, data: Storage[U32], p: Params):
    data[0] == p.n  # <-


@kernel
def makes_a_scalar_as_the_host_does(cx, data: Storage[U32], p: Params):
    data[0] = U32.of_item(3)  # <-


@kernel
def literal_that_python_does_not_write(cx, data: Storage[U32], p: Params):
    data[0] = p.n + BEYOND_TEXT  # <-


BEYOND_TEXT = 1 << 15000
