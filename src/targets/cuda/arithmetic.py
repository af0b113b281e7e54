"""Arithmetic, comparisons and conversions as intrinsics.

Both operands have one type, and so has the result of all but comparisons. Integers wrap.
"""

from __future__ import annotations

from typing import Literal

from llvmlite import ir

from .kinds import BOOLEAN, INT32, INT64, UINT8, UINT16, UINT32, UINT64, Boolean, Float, Integer, Kind
from .lower import I64, Intrinsic, Lowering, lowered


def _widened(builder: ir.IRBuilder, kind: Kind, value: ir.Value) -> ir.Value:
    """An integer extended to 64 bits, which NVVM narrows again where the range allows."""
    if not isinstance(kind, Integer):
        return value
    return builder.sext(value, I64) if kind.signed else builder.zext(value, I64)


def _narrowed(builder: ir.IRBuilder, kind: Kind, value: ir.Value) -> ir.Value:
    return builder.trunc(value, ir.IntType(kind.bitwidth)) if isinstance(kind, Integer) else value


def _operation(integers: str, floats: str = "") -> Intrinsic:
    """An LLVM instruction of two operands: its name for integers and booleans, and for floats."""

    def define(a: Kind, b: Kind) -> Lowering:
        name = floats if isinstance(a, Float) else integers

        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            value: ir.Value = getattr(builder, name)(*(_widened(builder, a, value) for value in args))
            return _narrowed(builder, a, value)

        return Lowering(a, (a, a), body)

    return lowered(define)


add, subtract = _operation("add", "fadd"), _operation("sub", "fsub")
multiply, quotient = _operation("mul", "fmul"), _operation("udiv", "fdiv")  # unchecked, and may be fused
bits_and, bits_or, bits_xor = _operation("and_"), _operation("or_"), _operation("xor")


@lowered
def negative(a: Kind) -> Lowering:
    """The negated number. As -0.0 - x for floats: NVVM's LLVM is too old for `fneg`."""

    def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        if isinstance(a, Float):
            return builder.fsub(ir.Constant(args[0].type, -0.0), args[0])
        return builder.neg(args[0])

    return Lowering(a, (a,), body)


@lowered
def bits_not(a: Kind) -> Lowering:
    """Bitwise not; logical not of a BOOLEAN."""
    return Lowering(a, (a,), lambda builder, args: builder.not_(args[0]))


def _comparison(relation: Literal["<", "<=", "==", "!=", ">=", ">"]) -> Intrinsic:
    """A comparison. With NaN only `!=` is true (IEEE 754)."""

    def define(a: Kind, b: Kind) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            left, right = args
            if isinstance(a, Float):
                unlike = relation == "!="
                return (builder.fcmp_unordered if unlike else builder.fcmp_ordered)(relation, left, right)
            is_signed = isinstance(a, Integer) and a.signed
            return (builder.icmp_signed if is_signed else builder.icmp_unsigned)(relation, left, right)

        return Lowering(BOOLEAN, (a, a), body)

    return lowered(define)


equal, unequal = _comparison("=="), _comparison("!=")
less, less_equal = _comparison("<"), _comparison("<=")
greater, greater_equal = _comparison(">"), _comparison(">=")


def _conversion(to: Integer) -> Intrinsic:
    """A conversion of an integer to another width or signedness, or of a BOOLEAN to 0 or 1."""

    def define(a: Kind) -> Lowering | None:
        if not isinstance(a, Integer | Boolean):
            return None
        width, is_signed = (a.bitwidth, a.signed) if isinstance(a, Integer) else (1, False)
        kind = ir.IntType(to.bitwidth)

        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            if width > to.bitwidth:
                return builder.trunc(args[0], kind)
            return builder.sext(args[0], kind) if is_signed else builder.zext(args[0], kind)

        return Lowering(to, (a,), body)

    return lowered(define)


as_u1, as_u2, as_u4, as_u8 = map(_conversion, (UINT8, UINT16, UINT32, UINT64))
as_i4, as_i8 = map(_conversion, (INT32, INT64))
