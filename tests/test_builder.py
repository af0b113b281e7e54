"""What the builder makes of operations with a constant, how programs are printed, and how large things may be."""

from __future__ import annotations

import re
from textwrap import dedent

import attrs
import pytest

from gpusort.algos.sizes import countable_rows
from gpusort.kernel import builder as builder_module
from gpusort.kernel import ir
from gpusort.kernel.builder import KernelBuilder, apply, folded
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.listing import listing
from gpusort.kernel.passes.safe import long_loops
from gpusort.kernel.passes.walk import expressions_of, nodes_in, statements_in
from gpusort.kernel.span import KernelError, Span
from gpusort.kernel.specialise import specialise
from gpusort.types import ops
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.layout import Type
from gpusort.types.memory import Storage
from gpusort.types.ops import Op
from gpusort.types.scalars import U32

HERE = Span(__file__, 1)
TYPES = (Type.BOOL, Type.U32, Type.I32, Type.U64, Type.I64)
ONES = {of: True if of is Type.BOOL else -1 if of.bounds[0] else of.bounds[1] for of in TYPES}
_ONES = "all bits set"
NEUTRAL: dict[Op, int | str] = {ops.ADD: 0, ops.OR: 0, ops.XOR: 0, ops.MUL: 1, ops.AND: _ONES}
NEUTRAL_ON_THE_RIGHT = {ops.SUB: 0, ops.SHL: 0, ops.SHR: 0, ops.FLOORDIV: 1}
ABSORBING: dict[Op, int | str] = {ops.AND: 0, ops.MUL: 0, ops.OR: _ONES}


def constant(value: int | str, of: Type) -> ir.Const:
    return ir.Const(ONES[of] if isinstance(value, str) else of.dtype.type(value).item(), of, HERE)


def other_operand(op: Op, of: Type) -> Type:
    return Type.U32 if op in (ops.SHL, ops.SHR) else of


def are_operands(op: Op, of: Type) -> bool:
    return op.rule((of, other_operand(op, of))) is not None


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_what_changes_nothing_is_left_out(of: Type) -> None:
    x = ir.Read(ir.Variable("x", of), HERE)
    for op, value in {**NEUTRAL, **NEUTRAL_ON_THE_RIGHT}.items():
        if are_operands(op, of):
            known = constant(value, other_operand(op, of))
            assert apply(op, (x, known), HERE) is x, op
    for op, value in NEUTRAL.items():
        if are_operands(op, of):
            assert apply(op, (constant(value, of), x), HERE) is x, op


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_what_decides_alone_is_all_there_is(of: Type) -> None:
    x = ir.Read(ir.Variable("x", of), HERE)
    for op, value in ABSORBING.items():
        if are_operands(op, of):
            known = constant(value, of)
            assert apply(op, (x, known), HERE) is known, op
            assert apply(op, (known, x), HERE) is known, op


@pytest.mark.parametrize("of", TYPES[1:], ids=str)
def test_what_changes_something_stays(of: Type) -> None:
    x, highest = ir.Read(ir.Variable("x", of), HERE), ir.Const(of.bounds[1] - 1, of, HERE)
    for op in (*NEUTRAL, *NEUTRAL_ON_THE_RIGHT):
        if are_operands(op, of) and op not in (ops.SHL, ops.SHR):
            for operands in ((x, highest), (highest, x)):
                assert apply(op, operands, HERE) == ir.Apply(op, operands, of, HERE), op
    for value in (0, 1):
        left = constant(value, of)
        for op in (ops.SUB, ops.SHL, ops.SHR, ops.FLOORDIV):
            if op.rule((of, of)) is not None and are_operands(op, of):
                assert apply(op, (left, x), HERE) == ir.Apply(op, (left, x), of, HERE), op


@pytest.mark.parametrize("of", [Type.F32, Type.F64], ids=str)
def test_of_floats_nothing_is_left_out(of: Type) -> None:
    """-0.0 + 0 is not -0.0, and NaN * 0 not 0."""
    x = ir.Read(ir.Variable("x", of), HERE)
    for op, value in ((ops.ADD, 0.0), (ops.SUB, 0.0), (ops.MUL, 1.0), (ops.MUL, 0.0)):
        operands = (x, ir.Const(value, of, HERE))
        assert apply(op, operands, HERE) == ir.Apply(op, operands, of, HERE)


def test_a_division_by_zero_that_a_lowering_makes_is_what_it_is_at_run_time() -> None:
    """The reader refuses those that kernels have."""
    zero, read = constant(0, Type.U32), ir.Read(ir.Variable("x", Type.U32), HERE)
    for value in (constant(7, Type.U32), read):
        assert folded(ops.FLOORDIV, (value, zero), Type.U32, HERE) is value
        assert folded(ops.MOD, (value, zero), Type.U32, HERE) is zero


@kernel
def with_blocks(cx: Invocation, data: Storage[U32]) -> None:
    left = data[0]
    while left > data[1]:
        for i in dynamic_range(U32(0), left):
            if i == 3:
                data[i] = left
            else:
                break
        left = left - 1


def test_a_block_is_indented_by_one_step() -> None:
    data = Buffer("data", U32, 9, Role.INOUT)
    program = specialise(with_blocks.launch(Grid(1, 4), data)).program
    assert re.sub(r"^ *\d+  ", "", listing(program), flags=re.MULTILINE) == dedent("""\
        kernel with_blocks, 4 invocations a workgroup
               storage data: U32[]
               variable data_at: U32
               variable left: U32
               variable data_at_2: U32
               variable bound: U32
               variable i: U32
               variable condition: Bool
        data_at = data[0]
        left = data_at
        loop:
            data_at_2 = data[1]
            if invert((left > data_at_2)):
                break
            bound = left
            for i in range(0, bound, 1):
                condition = (i == 3)
                if condition:
                    data[i] = left
                else:
                    break
            left = (left - 1)
        """)


@attrs.frozen
class Couple:
    a: U32
    b: U32


@kernel
def moving(cx: Invocation, pairs: Storage[Couple], numbers: Storage[U32]) -> None:
    pairs[cx.local_id + 1] = pairs[cx.local_id + 2]
    numbers[cx.local_id + 1] = numbers[cx.local_id + 2]


def test_an_index_is_computed_once_for_all_units_of_an_element() -> None:
    """And in its place, where the element is one unit."""
    pairs, numbers = Buffer("pairs", Couple, 9, Role.INOUT), Buffer("numbers", U32, 9, Role.INOUT)
    text = listing(specialise(moving.launch(Grid(1, 4), pairs, numbers)).program)
    assert re.findall(r"^ *\d+  (.*)$", text, re.MULTILINE) == [
        "index = (local_id + 2)",
        "pairs_at = pairs[(index * 2)]",
        "pairs_at_2 = pairs[((index * 2) + 1)]",
        "index_2 = (local_id + 1)",
        "pairs[(index_2 * 2)] = pairs_at",
        "pairs[((index_2 * 2) + 1)] = pairs_at_2",
        "numbers_at = numbers[(local_id + 2)]",
        "numbers[(local_id + 1)] = numbers_at",
    ]


# -- how large things may be ------------------------------------------------------------------------------


def test_a_kernel_has_as_many_statements_and_rounds_as_the_limits_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_STATEMENTS", "MOST_ITERATIONS"):
        monkeypatch.setattr(builder_module, limit, 5)
    x = ir.Variable("x", Type.U32)
    made, statement = KernelBuilder(), ir.Assign(x, ir.Read(x, HERE), HERE)
    for _ in range(5):
        made.emit(statement)
        made.count_iteration(HERE)
    with made.unrolling(5, HERE):
        pass
    with pytest.raises(KernelError, match="expected a kernel of at most"):
        made.emit(statement)
    with pytest.raises(KernelError, match="expected a kernel of at most"):
        made.count_iteration(HERE)
    with pytest.raises(KernelError, match="expected"), made.unrolling(6, HERE):
        pass


def test_rows_are_as_many_as_kernels_count() -> None:
    largest = (1 << 32) - 1
    found = [countable_rows(length) for length in (0, 1, 2, 3, 1 << 31, largest, largest + 1)]
    assert found == [largest, largest, largest // 2, largest // 3, 1, 1, 0]


@pytest.mark.parametrize(
    ("rounds", "cost"), [(3, 2 + 2 * 3), (1 << 18, 2 + (1 << 19)), (1 << 19, 1 << 20), (1 << 30, 1 << 20)]
)
def test_a_loop_polls_by_what_an_iteration_costs_up_to_a_million_statements(rounds: int, cost: int) -> None:
    """So that one whose iterations take long polls in each."""
    x = ir.Variable("x", Type.U32)
    once = ir.Assign(x, ir.Read(x, HERE), HERE)
    start, stop, step = (ir.Const(value, Type.U32, HERE) for value in (0, 9, 1))
    inner = ir.For(ir.Variable("i", Type.U32), start, stop, step, (once,), HERE)
    outer = ir.For(ir.Variable("j", Type.U32), start, stop, step, (inner,), HERE)
    program = ir.Program("loops", 1, (), (), (x, inner.variable, outer.variable), (outer,), HERE)
    found = long_loops(program, {id(inner): rounds, id(outer): 1 << 31})
    assert found[id(outer)] == cost


@attrs.frozen
class Two:
    a: U32
    b: U32


@attrs.frozen
class Three:
    a: Two
    b: U32


@kernel
def moves_pairs(cx: Invocation, data: Storage[Two]) -> None:
    data[cx.global_id % 7] = data[cx.local_id % 5]


@kernel
def moves_threes(cx: Invocation, data: Storage[Three]) -> None:
    data[cx.global_id % 7] = data[cx.local_id % 5]


def test_the_index_of_an_element_of_several_units_is_computed_once() -> None:
    for program in (
        specialise(moves_pairs.launch(Grid(1, 8), Buffer("data", Two, 8, Role.INOUT))).program,
        specialise(moves_threes.launch(Grid(1, 8), Buffer("data", Three, 8, Role.INOUT))).program,
    ):
        read = [one for statement in statements_in(program.body) for one in expressions_of(statement)]
        computed = [node for one in read for node in nodes_in(one) if isinstance(node, ir.Apply) and node.op is ops.MOD]
        assert len(computed) == 2
