"""Sums, comparisons and conversions as intrinsics: the plain operators, without Numba's choice among all it knows.

Numba's own operators are there for arrays, sets and strings too; to find the right one takes longer than to write what
it does. Here both operands are of one type, and so is the result of all but comparisons. Integers wrap round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types

from .lower import I64, Lowering, lowered, plainly

if TYPE_CHECKING:
    from numba.extending import Intrinsic


def _widened(builder: ir.IRBuilder, kind: types.Type, value: ir.Value) -> ir.Value:
    """An integer in 64 bits, as Numba computes too. NVVM narrows that again, with what it then knows of the value."""
    if not isinstance(kind, types.Integer):
        return value
    return builder.sext(value, I64) if kind.signed else builder.zext(value, I64)


def _narrowed(builder: ir.IRBuilder, kind: types.Type, value: ir.Value) -> ir.Value:
    return builder.trunc(value, ir.IntType(kind.bitwidth)) if isinstance(kind, types.Integer) else value


def _operation(integers: str, floats: str = "") -> Intrinsic:
    """One of LLVM's instructions of two operands: by its name for integers and booleans, and for floats."""

    def define(a: types.Type, b: types.Type) -> Lowering:
        name = floats if isinstance(a, types.Float) else integers

        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            value: ir.Value = getattr(builder, name)(*(_widened(builder, a, value) for value in args))
            return _narrowed(builder, a, value)

        return a(a, a), plainly(body)

    return lowered(define)


add, subtract = _operation("add", "fadd"), _operation("sub", "fsub")
multiply, quotient = _operation("mul", "fmul"), _operation("udiv", "fdiv")  # products and quotients as they come
bits_and, bits_or, bits_xor = _operation("and_"), _operation("or_"), _operation("xor")


@lowered
def negative(a: types.Type) -> Lowering:
    """A number with the other sign. NVVM does not know LLVM's newer instruction for that of a float."""

    def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        if isinstance(a, types.Float):
            return builder.fsub(ir.Constant(args[0].type, -0.0), args[0])
        return builder.neg(args[0])

    return a(a), plainly(body)


@lowered
def bits_not(a: types.Type) -> Lowering:
    """All bits flipped; of a boolean, the other one."""
    return a(a), plainly(lambda builder, args: builder.not_(args[0]))


def _comparison(relation: Literal["<", "<=", "==", "!=", ">=", ">"]) -> Intrinsic:
    """Of two numbers. A float that is no number is unlike all, itself too."""

    def define(a: types.Type, b: types.Type) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            left, right = args
            if isinstance(a, types.Float):
                unlike = relation == "!="
                return (builder.fcmp_unordered if unlike else builder.fcmp_ordered)(relation, left, right)
            is_signed = isinstance(a, types.Integer) and a.signed
            return (builder.icmp_signed if is_signed else builder.icmp_unsigned)(relation, left, right)

        return types.boolean(a, a), plainly(body)

    return lowered(define)


equal, unequal = _comparison("=="), _comparison("!=")
less, less_equal = _comparison("<"), _comparison("<=")
greater, greater_equal = _comparison(">"), _comparison(">=")


def _conversion(to: types.Integer) -> Intrinsic:
    """An integer as one of another width or sign, or a boolean as 0 or 1."""

    def define(a: types.Type) -> Lowering | None:
        if not isinstance(a, types.Integer | types.Boolean):
            return None
        width, is_signed = (a.bitwidth, a.signed) if isinstance(a, types.Integer) else (1, False)
        kind = ir.IntType(to.bitwidth)

        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            if width > to.bitwidth:
                return builder.trunc(args[0], kind)
            return builder.sext(args[0], kind) if is_signed else builder.zext(args[0], kind)

        return to(a), plainly(body)

    return lowered(define)


as_u1, as_u2, as_u4, as_u8 = map(_conversion, (types.uint8, types.uint16, types.uint32, types.uint64))
as_i4, as_i8 = map(_conversion, (types.int32, types.int64))
