"""Intrinsics for operations as the kernel language defines them, each a few LLVM instructions.

Divisions by zero neither trap nor branch, and no product is contracted with a sum to a fused multiply-add, which rounds
differently.
"""

from __future__ import annotations

from typing import Literal

from llvmlite import ir

from .kinds import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Float,
    Integer,
    Kind,
    Number,
)
from .lower import I1, I32, I64, Intrinsic, Lowering, call, constant, lowered

# -- integers ---------------------------------------------------------------------------------------------


def _not_zero(builder: ir.IRBuilder, divisor: ir.Value) -> ir.Value:
    """The divisor, or 1 for zero: x // 0 is x and x % 0 is 0, as in WGSL."""
    is_zero = builder.icmp_unsigned("==", divisor, ir.Constant(divisor.type, 0))
    return builder.or_(divisor, builder.zext(is_zero, divisor.type))


@lowered
def divide(a: Kind, b: Kind) -> Lowering:
    """Unsigned division."""
    return Lowering(a, (a, a), lambda builder, args: builder.udiv(args[0], _not_zero(builder, args[1])))


@lowered
def remainder(a: Kind, b: Kind) -> Lowering:
    """Unsigned remainder."""
    return Lowering(a, (a, a), lambda builder, args: builder.urem(args[0], _not_zero(builder, args[1])))


def _amount(builder: ir.IRBuilder, a: Integer, amount: ir.Value) -> ir.Value:
    """The shift amount modulo the width, in the type of the shifted value."""
    within = builder.and_(amount, constant(a.bitwidth - 1))
    return builder.zext(within, I64) if a.bitwidth > 32 else within


@lowered
def shift_left(a: Integer, amount: Kind) -> Lowering:
    """A left shift by the amount modulo the width."""
    return Lowering(a, (a, UINT32), lambda builder, args: builder.shl(args[0], _amount(builder, a, args[1])))


@lowered
def shift_right(a: Integer, amount: Kind) -> Lowering:
    """A right shift by the amount modulo the width: arithmetic if signed."""

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        shift = builder.ashr if a.signed else builder.lshr
        return shift(args[0], _amount(builder, a, args[1]))

    return Lowering(a, (a, UINT32), emit)


_PRMT = "prmt.b32 $0, $1, 0, $2;"  # byte permute: selectors 0 to 3 are bytes of the word, 4 to 7 of the zero
_REST_ZERO = (0x4440, 0x5550)  # two equivalent selectors with zeros in the upper bytes


@lowered
def byte(word: Kind, place: Kind, form: Kind) -> Lowering | None:
    """Byte `place` of a word (0 is the lowest), by byte permute. `form`, a literal 0 or 1, chooses between selectors:
    the assembler does not merge common subexpressions of different forms."""
    if not isinstance(form, Number):
        return None
    rest = ir.Constant(I32, _REST_ZERO[form.value])
    assembly = ir.InlineAsm(ir.FunctionType(I32, [I32, I32]), _PRMT, "=r,r,r", side_effect=True)

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        return builder.call(assembly, [args[0], builder.or_(args[1], rest)])

    return Lowering(UINT32, (UINT32, UINT32, form), emit)


def _extreme(comparison: Literal["<", ">"]) -> Intrinsic:
    """The minimum or maximum of two integers."""

    def define(a: Integer, b: Kind) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            compare = builder.icmp_signed if a.signed else builder.icmp_unsigned
            return builder.select(compare(comparison, args[0], args[1]), args[0], args[1])

        return Lowering(a, (a, a), body)

    return lowered(define)


minimum, maximum = _extreme("<"), _extreme(">")


@lowered
def choose(condition: Kind, a: Kind, b: Kind) -> Lowering:
    """A select without a branch."""
    return Lowering(a, (BOOLEAN, a, a), lambda builder, args: builder.select(args[0], args[1], args[2]))


def _counting(name: str, *flags: ir.Value) -> Intrinsic:
    """A bit count, as a U32 whatever the operand's width."""

    def define(a: Integer) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            count = call(builder, f"llvm.{name}.i{a.bitwidth}", ir.IntType(a.bitwidth), (args[0], *flags))
            return builder.trunc(count, I32) if a.bitwidth > 32 else count

        return Lowering(UINT32, (a,), body)

    return lowered(define)


_ZERO_HAS_A_COUNT = ir.Constant(I1, 0)  # the intrinsic's flag: the count for 0 is defined, and is the width
count_ones = _counting("ctpop")
leading_zeros, trailing_zeros = _counting("ctlz", _ZERO_HAS_A_COUNT), _counting("cttz", _ZERO_HAS_A_COUNT)


# -- floats -----------------------------------------------------------------------------------------------


@lowered
def multiply_rounded(a: Float, b: Kind) -> Lowering:
    """A float product that is rounded by itself: never contracted to a fused multiply-add."""
    name, kind = ("llvm.nvvm.mul.rn.f", ir.FloatType()) if a.bitwidth == 32 else ("llvm.nvvm.mul.rn.d", ir.DoubleType())
    return Lowering(a, (a, a), lambda builder, args: call(builder, name, kind, args))


def _bits_as(to: Kind, kind: ir.Type) -> Intrinsic:
    """A bitcast."""

    def define(a: Kind) -> Lowering:
        return Lowering(to, (a,), lambda builder, args: builder.bitcast(args[0], kind))

    return lowered(define)


bits_u4, bits_i4 = _bits_as(UINT32, I32), _bits_as(INT32, I32)
bits_u8, bits_i8 = _bits_as(UINT64, I64), _bits_as(INT64, I64)
bits_f4, bits_f8 = _bits_as(FLOAT32, ir.FloatType()), _bits_as(FLOAT64, ir.DoubleType())
