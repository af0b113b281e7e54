"""What the text of a kernel calls, for Numba: memory on the stack, bit counts, bit casts, real atomics.

The CPU target compiles these texts itself; that Numba makes the same of them is a second opinion. Each is a Numba
intrinsic: a function that, from the types of its operands, gives its signature and an emitter of a few instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from llvmlite import ir as llvm
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext, TypingContext

Values: TypeAlias = tuple[llvm.Value, ...]
Emitter: TypeAlias = "Callable[[CodegenContext, llvm.IRBuilder, Signature, Values], llvm.Value]"
Typed: TypeAlias = "tuple[Signature, Emitter]"


@intrinsic(prefer_literal=True)
def stack(typing: TypingContext, element: types.Type, count: types.Type) -> Typed | None:
    """`stack(u4, 256)`: an uninitialised array on the stack, made once a call. Nothing aliases it."""
    if not isinstance(count, types.IntegerLiteral) or not isinstance(element, types.NumberClass):
        return None
    length, pointer = count.literal_value, types.CPointer(element.instance_type)

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values) -> llvm.Value:
        item = context.get_data_type(pointer.dtype)
        with builder.goto_entry_block():
            array = builder.alloca(llvm.ArrayType(item, length))
            array.align = 64
        return builder.bitcast(array, item.as_pointer())

    return pointer(element, count), emit


@intrinsic
def select(typing: TypingContext, condition: types.Type, then: types.Type, otherwise: types.Type) -> Typed:
    """One of two values without a branch, so that loops around it vectorise."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values) -> llvm.Value:
        return builder.select(arguments[0], arguments[1], arguments[2])

    return then(types.boolean, then, then), emit


def _division(
    divide: Callable[[llvm.IRBuilder, llvm.Value, llvm.Value], llvm.Value],
) -> Callable[[TypingContext, types.Integer, types.Type], Typed]:
    """A division of unsigned integers that takes zero as one: x // 0 is x, and x % 0 is 0, as WebGPU has it."""

    def typed(typing: TypingContext, a: types.Integer, b: types.Type) -> Typed:
        def emit(
            context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values
        ) -> llvm.Value:
            value, divisor = arguments
            is_zero = builder.icmp_unsigned("==", divisor, llvm.Constant(divisor.type, 0))
            return divide(builder, value, builder.or_(divisor, builder.zext(is_zero, divisor.type)))

        return a(a, a), emit

    return typed


def _bits(target: types.Type) -> Callable[[TypingContext, types.Type], Typed]:
    """The bits of a number as another type of its size."""

    def typed(typing: TypingContext, value: types.Type) -> Typed:
        def emit(
            context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values
        ) -> llvm.Value:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(value), emit

    return typed


def _count(count: Callable[[llvm.IRBuilder, llvm.Value], llvm.Value]) -> Callable[..., Typed]:
    """A count of bits; always a u4."""

    def typed(typing: TypingContext, value: types.Integer) -> Typed:
        def emit(
            context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values
        ) -> llvm.Value:
            found = count(builder, arguments[0])
            return builder.trunc(found, llvm.IntType(32)) if value.bitwidth > 32 else found

        return types.uint32(value), emit

    return typed


def _defined_at_zero() -> llvm.Constant:
    """The second operand of ctlz and cttz: zero is a value like others, its count the width."""
    return llvm.Constant(llvm.IntType(1), 0)


def _element(
    context: CodegenContext,
    builder: llvm.IRBuilder,
    array: tuple[types.Array, llvm.Value],
    index: tuple[types.Type, llvm.Value],
) -> llvm.Value:
    """The address of an element. Indices are unsigned, so they widen with zeros."""
    data = context.make_array(array[0])(context, builder, array[1]).data
    wide = context.cast(builder, index[1], index[0], types.uintp)
    return builder.gep(data, [wide], inbounds=True)


_Update: TypeAlias = Literal["add", "umin", "umax", "and", "or", "xor", "xchg"]


def _update(operation: _Update) -> Callable[..., Typed]:
    """A relaxed read-modify-write of a U32 in storage; the result is what was there before."""

    def typed(typing: TypingContext, array: types.Array, index: types.Type, value: types.Type) -> Typed:
        def emit(
            context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values
        ) -> llvm.Value:
            element = _element(context, builder, (array, arguments[0]), (index, arguments[1]))
            return builder.atomic_rmw(operation, element, arguments[2], "monotonic")

        return types.uint32(array, index, types.uint32), emit

    return typed


@intrinsic
def atomic_load(typing: TypingContext, array: types.Array, index: types.Type) -> Typed:
    """A relaxed read of a U32 in storage."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values) -> llvm.Value:
        element = _element(context, builder, (array, arguments[0]), (index, arguments[1]))
        return builder.load_atomic(element, "monotonic", 4)

    return types.uint32(array, index), emit


@intrinsic
def atomic_store(typing: TypingContext, array: types.Array, index: types.Type, value: types.Type) -> Typed:
    """A relaxed write of a U32 in storage."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values) -> llvm.Value:
        element = _element(context, builder, (array, arguments[0]), (index, arguments[1]))
        builder.store_atomic(arguments[2], element, "monotonic", 4)
        return context.get_dummy_value()

    return types.void(array, index, types.uint32), emit


@intrinsic
def stopped(typing: TypingContext, address: types.Type) -> Typed:
    """Whether another thread has written something to an eight-byte place by now."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, arguments: Values) -> llvm.Value:
        place = builder.inttoptr(arguments[0], llvm.IntType(64).as_pointer())
        found = builder.load_atomic(place, "monotonic", 8)
        return builder.icmp_unsigned("!=", found, llvm.Constant(llvm.IntType(64), 0))

    return types.boolean(types.int64), emit


bits_u4 = intrinsic(_bits(types.uint32))
bits_u8 = intrinsic(_bits(types.uint64))
bits_i4 = intrinsic(_bits(types.int32))
bits_i8 = intrinsic(_bits(types.int64))
bits_f4 = intrinsic(_bits(types.float32))
bits_f8 = intrinsic(_bits(types.float64))

divide = intrinsic(_division(lambda builder, a, b: builder.udiv(a, b)))
remainder = intrinsic(_division(lambda builder, a, b: builder.urem(a, b)))

count_ones = intrinsic(_count(lambda builder, value: builder.ctpop(value)))
leading_zeros = intrinsic(_count(lambda builder, value: builder.ctlz(value, _defined_at_zero())))
trailing_zeros = intrinsic(_count(lambda builder, value: builder.cttz(value, _defined_at_zero())))

atomic_add = intrinsic(_update("add"))
atomic_min = intrinsic(_update("umin"))
atomic_max = intrinsic(_update("umax"))
atomic_and = intrinsic(_update("and"))
atomic_or = intrinsic(_update("or"))
atomic_xor = intrinsic(_update("xor"))
atomic_exchange = intrinsic(_update("xchg"))
