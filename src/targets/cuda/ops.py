"""What Numba CUDA lacks, as intrinsics of our own: the CUDA target's lowering of operations.

Each is a few LLVM instructions, so it compiles to PTX on any machine, with a card or without. Numba would
do some of them itself, but widens to 64 bits on the way, branches around a division by zero, or lets NVVM
fuse a product into the sum behind it, which rounds differently from the definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from .lower import I1, I32, I64, Lowering, call, constant, plainly

if TYPE_CHECKING:
    from numba.extending import TypingContext

# -- integers ---------------------------------------------------------------------------------------------


def _not_zero(builder: ir.IRBuilder, divisor: ir.Value) -> ir.Value:
    """The divisor; one for zero, so that x // 0 is x, and x % 0 is 0, as WebGPU has it."""
    is_zero = builder.icmp_unsigned("==", divisor, ir.Constant(divisor.type, 0))
    return builder.or_(divisor, builder.zext(is_zero, divisor.type))


@intrinsic
def divide(typing: TypingContext, a: types.Type, b: types.Type) -> Lowering:
    """The quotient of two unsigned integers."""
    return a(a, a), plainly(lambda builder, args: builder.udiv(args[0], _not_zero(builder, args[1])))


@intrinsic
def remainder(typing: TypingContext, a: types.Type, b: types.Type) -> Lowering:
    """What division leaves of an unsigned integer."""
    return a(a, a), plainly(lambda builder, args: builder.urem(args[0], _not_zero(builder, args[1])))


def _amount(builder: ir.IRBuilder, a: types.Integer, amount: ir.Value) -> ir.Value:
    """How far to shift: modulo the width, and as wide as what is shifted."""
    within = builder.and_(amount, constant(a.bitwidth - 1))
    return builder.zext(within, I64) if a.bitwidth > 32 else within


@intrinsic
def shift_left(typing: TypingContext, a: types.Integer, amount: types.Type) -> Lowering:
    """The bits moved up by the amount modulo the width."""
    return a(a, types.uint32), plainly(lambda builder, args: builder.shl(args[0], _amount(builder, a, args[1])))


@intrinsic
def shift_right(typing: TypingContext, a: types.Integer, amount: types.Type) -> Lowering:
    """The bits moved down by the amount modulo the width; a signed integer keeps its sign."""

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        shift = builder.ashr if a.signed else builder.lshr
        return shift(args[0], _amount(builder, a, args[1]))

    return a(a, types.uint32), plainly(emit)


_PRMT = "prmt.b32 $0, $1, 0, $2;"  # selects a byte of the word, or of the zero behind it
_REST_ZERO = (0x4440, 0x5550)  # two ways to say that the upper bytes are of the zero


@intrinsic
def byte(typing: TypingContext, word: types.Type, place: types.Type, form: types.Type) -> Lowering | None:
    """One byte of a word, the lowest at place 0, by an instruction of its own, in one of two forms."""
    if not isinstance(form, types.IntegerLiteral):
        return None
    rest = ir.Constant(I32, _REST_ZERO[int(form.literal_value)])
    assembly = ir.InlineAsm(ir.FunctionType(I32, [I32, I32]), _PRMT, "=r,r,r", side_effect=True)

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        return builder.call(assembly, [args[0], builder.or_(args[1], rest)])

    return types.uint32(types.uint32, types.uint32, form), plainly(emit)


def _extreme(a: types.Integer, comparison: Literal["<", ">"]) -> Lowering:
    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        compare = builder.icmp_signed if a.signed else builder.icmp_unsigned
        return builder.select(compare(comparison, args[0], args[1]), args[0], args[1])

    return a(a, a), plainly(emit)


@intrinsic
def minimum(typing: TypingContext, a: types.Integer, b: types.Type) -> Lowering:
    """The lesser of two integers."""
    return _extreme(a, "<")


@intrinsic
def maximum(typing: TypingContext, a: types.Integer, b: types.Type) -> Lowering:
    """The greater of two integers."""
    return _extreme(a, ">")


@intrinsic
def choose(typing: TypingContext, condition: types.Type, a: types.Type, b: types.Type) -> Lowering:
    """One of two values without a branch."""
    kind = types.boolean if isinstance(a, types.Boolean) else a
    return kind(types.boolean, kind, kind), plainly(lambda builder, args: builder.select(args[0], args[1], args[2]))


def _counting(name: str, a: types.Integer, *flags: ir.Value) -> Lowering:
    """A count of bits, as a U32 whatever the width."""

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        count = call(builder, f"llvm.{name}.i{a.bitwidth}", ir.IntType(a.bitwidth), (args[0], *flags))
        return builder.trunc(count, I32) if a.bitwidth > 32 else count

    return types.uint32(a), plainly(emit)


_ZERO_HAS_A_COUNT = ir.Constant(I1, 0)


@intrinsic
def count_ones(typing: TypingContext, a: types.Integer) -> Lowering:
    """How many bits are set."""
    return _counting("ctpop", a)


@intrinsic
def leading_zeros(typing: TypingContext, a: types.Integer) -> Lowering:
    """How many zeros stand above the highest set bit; the width for 0."""
    return _counting("ctlz", a, _ZERO_HAS_A_COUNT)


@intrinsic
def trailing_zeros(typing: TypingContext, a: types.Integer) -> Lowering:
    """How many zeros stand below the lowest set bit; the width for 0."""
    return _counting("cttz", a, _ZERO_HAS_A_COUNT)


# -- floats -----------------------------------------------------------------------------------------------


@intrinsic
def multiply_rounded(typing: TypingContext, a: types.Float, b: types.Type) -> Lowering:
    """A product of floats, rounded before anything is done with it: never part of a fused multiply-add."""
    name, kind = ("llvm.nvvm.mul.rn.f", ir.FloatType()) if a.bitwidth == 32 else ("llvm.nvvm.mul.rn.d", ir.DoubleType())
    return a(a, a), plainly(lambda builder, args: call(builder, name, kind, args))


def _reinterpretation(to: types.Type, kind: ir.Type, source: types.Type) -> Lowering:
    return to(source), plainly(lambda builder, args: builder.bitcast(args[0], kind))


@intrinsic
def bits_u4(typing: TypingContext, a: types.Type) -> Lowering:
    """The same 32 bits as a U32."""
    return _reinterpretation(types.uint32, I32, a)


@intrinsic
def bits_i4(typing: TypingContext, a: types.Type) -> Lowering:
    """The same 32 bits as an I32."""
    return _reinterpretation(types.int32, I32, a)


@intrinsic
def bits_f4(typing: TypingContext, a: types.Type) -> Lowering:
    """The same 32 bits as an F32."""
    return _reinterpretation(types.float32, ir.FloatType(), a)


@intrinsic
def bits_u8(typing: TypingContext, a: types.Type) -> Lowering:
    """The same 64 bits as a U64."""
    return _reinterpretation(types.uint64, I64, a)


@intrinsic
def bits_i8(typing: TypingContext, a: types.Type) -> Lowering:
    """The same 64 bits as an I64."""
    return _reinterpretation(types.int64, I64, a)


@intrinsic
def bits_f8(typing: TypingContext, a: types.Type) -> Lowering:
    """The same 64 bits as an F64."""
    return _reinterpretation(types.float64, ir.DoubleType(), a)
