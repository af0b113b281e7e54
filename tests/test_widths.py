"""How many bits a program's integers may need: no fewer than they do, for digits are matched by so many ballots."""

from __future__ import annotations

import attrs
import pytest

from gpusort.kernel import ir
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.passes.widths import Widths
from gpusort.kernel.span import Span
from gpusort.kernel.specialise import specialise
from gpusort.types import ops
from gpusort.types.invocation import Invocation
from gpusort.types.layout import Type
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32

HERE = Span(__file__, 1)
LANES = 32
WORD = ir.BuiltinValue(ir.Builtin.GROUP_ID, HERE)  # of any 32 bits


@kernel
def nothing_but_a_store(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = U32(0)


PROGRAM = specialise(nothing_but_a_store.launch(Grid(1, 4), Buffer("data", U32, 4, Role.INOUT))).program


def number(value: int) -> ir.Expression:
    return ir.Const(value, Type.U32, HERE)


def apply(op: ops.Op, *operands: ir.Expression, type: Type = Type.U32) -> ir.Expression:
    return ir.Apply(op, operands, type, HERE)


def of_bits(count: int) -> ir.Expression:
    """Any number of so many bits."""
    return apply(ops.AND, WORD, number((1 << count) - 1))


def width(expression: ir.Expression, *body: ir.Statement) -> int:
    return Widths(attrs.evolve(PROGRAM, body=body), LANES).of(expression)


@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 5, 8, 9, 16, 17, 255, 256, 257])
def test_a_remainder_is_as_wide_as_the_greatest_there_is(divisor: int) -> None:
    assert width(apply(ops.MOD, WORD, number(divisor))) == len(f"{divisor - 1:b}".lstrip("0"))
    assert width(apply(ops.MOD, WORD, of_bits(3))) == 32


@pytest.mark.parametrize(
    ("expression", "bits"),
    [
        (WORD, 32), (number(0), 0), (number(5), 3), (number(8), 4), (of_bits(7), 7),
        (apply(ops.OR, of_bits(3), of_bits(8)), 8), (apply(ops.XOR, of_bits(8), of_bits(3)), 8),
        (apply(ops.MAX, of_bits(3), of_bits(8)), 8), (apply(ops.MIN, of_bits(3), WORD), 3),
        (apply(ops.SELECT, apply(ops.LT, WORD, number(3), type=Type.BOOL), of_bits(5), of_bits(9)), 9),
        (apply(ops.LT, WORD, number(3), type=Type.BOOL), 1), (apply(ops.CAST, of_bits(7), type=Type.U64), 7),
        (apply(ops.CAST, apply(ops.CAST, of_bits(7), type=Type.I32), type=Type.U64), 64),
        (apply(ops.SHR, of_bits(8), number(3)), 5), (apply(ops.SHR, of_bits(2), number(3)), 0),
        (apply(ops.SHR, of_bits(8), number(35)), 5), (apply(ops.SHR, of_bits(8), WORD), 32),
        (apply(ops.FLOORDIV, of_bits(8), number(3)), 8), (apply(ops.ADD, of_bits(8), of_bits(8)), 32),
        (ir.BuiltinValue(ir.Builtin.LANE, HERE), 6),
        *((apply(op, apply(ops.CAST, WORD, type=Type.U64)), 7) for op in ops.BIT_COUNTS),  # up to 64 bits
    ],
)  # fmt: skip
def test_a_width_is_that_of_the_greatest_number_there_may_be(expression: ir.Expression, bits: int) -> None:
    assert width(expression) == bits


def test_a_variable_is_as_wide_as_the_widest_that_it_is_set_to() -> None:
    variable, other = ir.Variable("some", Type.U32), ir.Variable("other", Type.U32)
    read = ir.Read(variable, HERE)
    set_to = [ir.Assign(variable, value, HERE) for value in (number(3), of_bits(9), apply(ops.SHR, read, number(1)))]
    assert width(read, *set_to) == 9
    assert width(ir.Read(other, HERE), *set_to) == 0
    summed = ir.Assign(variable, apply(ops.ADD, read, number(1)), HERE)
    assert width(read, *set_to, summed) == 32
    ballot = ir.Subgroup(variable, ops.SubgroupOp.BALLOT, (apply(ops.LT, WORD, number(3), type=Type.BOOL),), HERE)
    assert width(read, ballot) == LANES
