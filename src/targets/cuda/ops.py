"""What Numba CUDA lacks, as intrinsics of our own: the CUDA target's lowering of operations.

Each is a few LLVM instructions, so it compiles to PTX on any machine, with a card or without. Numba would
do some of them itself, but widens to 64 bits on the way, branches around a division by zero, or lets NVVM
fuse a product into the sum behind it, which rounds differently from the definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types

from .lower import I1, I32, I64, Lowering, call, constant, lowered, plainly

if TYPE_CHECKING:
    from numba.extending import Intrinsic

# -- integers ---------------------------------------------------------------------------------------------


def _not_zero(builder: ir.IRBuilder, divisor: ir.Value) -> ir.Value:
    """The divisor; one for zero, so that x // 0 is x, and x % 0 is 0, as WebGPU has it."""
    is_zero = builder.icmp_unsigned("==", divisor, ir.Constant(divisor.type, 0))
    return builder.or_(divisor, builder.zext(is_zero, divisor.type))


@lowered
def divide(a: types.Type, b: types.Type) -> Lowering:
    """The quotient of two unsigned integers."""
    return a(a, a), plainly(lambda builder, args: builder.udiv(args[0], _not_zero(builder, args[1])))


@lowered
def remainder(a: types.Type, b: types.Type) -> Lowering:
    """What division leaves of an unsigned integer."""
    return a(a, a), plainly(lambda builder, args: builder.urem(args[0], _not_zero(builder, args[1])))


def _amount(builder: ir.IRBuilder, a: types.Integer, amount: ir.Value) -> ir.Value:
    """How far to shift: modulo the width, and as wide as what is shifted."""
    within = builder.and_(amount, constant(a.bitwidth - 1))
    return builder.zext(within, I64) if a.bitwidth > 32 else within


@lowered
def shift_left(a: types.Integer, amount: types.Type) -> Lowering:
    """The bits moved up by the amount modulo the width."""
    return a(a, types.uint32), plainly(lambda builder, args: builder.shl(args[0], _amount(builder, a, args[1])))


@lowered
def shift_right(a: types.Integer, amount: types.Type) -> Lowering:
    """The bits moved down by the amount modulo the width; a signed integer keeps its sign."""

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        shift = builder.ashr if a.signed else builder.lshr
        return shift(args[0], _amount(builder, a, args[1]))

    return a(a, types.uint32), plainly(emit)


_PRMT = "prmt.b32 $0, $1, 0, $2;"  # selects a byte of the word, or of the zero behind it
_REST_ZERO = (0x4440, 0x5550)  # two ways to say that the upper bytes are of the zero


@lowered
def byte(word: types.Type, place: types.Type, form: types.Type) -> Lowering | None:
    """One byte of a word, the lowest at place 0, by an instruction of its own, in one of two forms."""
    if not isinstance(form, types.IntegerLiteral):
        return None
    rest = ir.Constant(I32, _REST_ZERO[int(form.literal_value)])
    assembly = ir.InlineAsm(ir.FunctionType(I32, [I32, I32]), _PRMT, "=r,r,r", side_effect=True)

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        return builder.call(assembly, [args[0], builder.or_(args[1], rest)])

    return types.uint32(types.uint32, types.uint32, form), plainly(emit)


def _extreme(comparison: Literal["<", ">"]) -> Intrinsic:
    """The lesser or the greater of two integers."""

    def define(a: types.Integer, b: types.Type) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            compare = builder.icmp_signed if a.signed else builder.icmp_unsigned
            return builder.select(compare(comparison, args[0], args[1]), args[0], args[1])

        return a(a, a), plainly(body)

    return lowered(define)


minimum, maximum = _extreme("<"), _extreme(">")


@lowered
def choose(condition: types.Type, a: types.Type, b: types.Type) -> Lowering:
    """One of two values without a branch."""
    kind = types.boolean if isinstance(a, types.Boolean) else a
    return kind(types.boolean, kind, kind), plainly(lambda builder, args: builder.select(args[0], args[1], args[2]))


def _counting(name: str, *flags: ir.Value) -> Intrinsic:
    """A count of bits, as a U32 whatever the width."""

    def define(a: types.Integer) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            count = call(builder, f"llvm.{name}.i{a.bitwidth}", ir.IntType(a.bitwidth), (args[0], *flags))
            return builder.trunc(count, I32) if a.bitwidth > 32 else count

        return types.uint32(a), plainly(body)

    return lowered(define)


_ZERO_HAS_A_COUNT = ir.Constant(I1, 0)  # the width: of 0 all bits are zeros
count_ones = _counting("ctpop")
leading_zeros, trailing_zeros = _counting("ctlz", _ZERO_HAS_A_COUNT), _counting("cttz", _ZERO_HAS_A_COUNT)


# -- floats -----------------------------------------------------------------------------------------------


@lowered
def multiply_rounded(a: types.Float, b: types.Type) -> Lowering:
    """A product of floats, rounded before anything is done with it: never part of a fused multiply-add."""
    name, kind = ("llvm.nvvm.mul.rn.f", ir.FloatType()) if a.bitwidth == 32 else ("llvm.nvvm.mul.rn.d", ir.DoubleType())
    return a(a, a), plainly(lambda builder, args: call(builder, name, kind, args))


def _bits_as(to: types.Type, kind: ir.Type) -> Intrinsic:
    """The same bits as another type."""

    def define(a: types.Type) -> Lowering:
        return to(a), plainly(lambda builder, args: builder.bitcast(args[0], kind))

    return lowered(define)


bits_u4, bits_i4 = _bits_as(types.uint32, I32), _bits_as(types.int32, I32)
bits_u8, bits_i8 = _bits_as(types.uint64, I64), _bits_as(types.int64, I64)
bits_f4, bits_f8 = _bits_as(types.float32, ir.FloatType()), _bits_as(types.float64, ir.DoubleType())
