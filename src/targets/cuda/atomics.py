"""Relaxed atomics on U32 elements for Numba CUDA: in storage (raw pointers) and workgroup memory (arrays)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from .lower import I32, I64, Lowering
from .workgroup import shared_element

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext, TypingContext

_GLOBAL = 1  # how LLVM numbers the card's address space


def element_address(
    context: CodegenContext, builder: ir.IRBuilder, memory: types.Type, args: tuple[ir.Value, ...]
) -> ir.Value:
    """Where an element lies. The first operands are the memory and both parts of the index."""
    if isinstance(memory, types.Array):
        return shared_element(context, builder, memory, args)
    return builder.gep(args[0], [builder.zext(builder.add(args[1], args[2]), I64)])


def _update(operation: Literal["add", "umin", "umax", "and", "or", "xor", "xchg"], memory: types.Type) -> Lowering:
    def emit(context: CodegenContext, builder: ir.IRBuilder, sig: Signature, args: tuple[ir.Value, ...]) -> ir.Value:
        return builder.atomic_rmw(operation, element_address(context, builder, memory, args), args[3], "monotonic")

    return types.uint32(memory, types.uint32, types.uint32, types.uint32), emit


@intrinsic
def atomic_add(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Adds to an element; returns what it was."""
    return _update("add", memory)


@intrinsic
def atomic_min(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Lowers an element to at most the value; returns what it was."""
    return _update("umin", memory)


@intrinsic
def atomic_max(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Raises an element to at least the value; returns what it was."""
    return _update("umax", memory)


@intrinsic
def atomic_and(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Clears bits of an element; returns what it was."""
    return _update("and", memory)


@intrinsic
def atomic_or(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Sets bits of an element; returns what it was."""
    return _update("or", memory)


@intrinsic
def atomic_xor(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Flips bits of an element; returns what it was."""
    return _update("xor", memory)


@intrinsic
def atomic_exchange(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Replaces an element; returns what it was."""
    return _update("xchg", memory)


# A plain load may be kept over the turns of a loop that waits for it to change, and LLVM's atomic loads are
# not for NVVM: hence the two instructions by name.


def _suffix(memory: types.Type) -> str:
    """Who shall see the access, and which memory it goes to: a part of the instruction's name."""
    return "relaxed.cta.shared.u32" if isinstance(memory, types.Array) else "relaxed.gpu.global.u32"


def in_its_space(builder: ir.IRBuilder, memory: types.Type, address: ir.Value) -> ir.Value:
    """The address as an instruction that names its memory wants it."""
    return address if isinstance(memory, types.Array) else builder.addrspacecast(address, ir.PointerType(I32, _GLOBAL))


@intrinsic
def atomic_load(typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type) -> Lowering:
    """Reads an element anew each time."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, sig: Signature, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(context, builder, memory, args))
        instruction = f"ld.{_suffix(memory)} $0, [$1];"
        load = ir.InlineAsm(ir.FunctionType(I32, [address.type]), instruction, "=r,l,~{memory}", side_effect=True)
        return builder.call(load, [address])

    return types.uint32(memory, types.uint32, types.uint32), emit


@intrinsic
def atomic_store(
    typing: TypingContext, memory: types.Type, start: types.Type, index: types.Type, value: types.Type
) -> Lowering:
    """Writes an element for all to see."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, sig: Signature, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(context, builder, memory, args))
        kind = ir.FunctionType(ir.VoidType(), [address.type, I32])
        store = ir.InlineAsm(kind, f"st.{_suffix(memory)} [$0], $1;", "l,r,~{memory}", side_effect=True)
        builder.call(store, [address, args[3]])
        return context.get_dummy_value()

    return types.void(memory, types.uint32, types.uint32, types.uint32), emit
