"""Relaxed atomics on U32 elements for Numba CUDA: in storage (raw pointers) and workgroup memory (arrays)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types

from .lower import I32, I64, Lowering, lowered
from .workgroup import shared_element

if TYPE_CHECKING:
    from numba.extending import CodegenContext, Intrinsic

_GLOBAL = 1  # how LLVM numbers the card's address space


def element_address(
    context: CodegenContext, builder: ir.IRBuilder, memory: types.Type, args: tuple[ir.Value, ...]
) -> ir.Value:
    """Where an element lies. The first operands are the memory and both parts of the index."""
    if isinstance(memory, types.Array):
        return shared_element(context, builder, memory, args)
    return builder.gep(args[0], [builder.zext(builder.add(args[1], args[2]), I64)])


def _update(operation: Literal["add", "umin", "umax", "and", "or", "xor", "xchg"]) -> Intrinsic:
    """Changes an element by a value; returns what it was."""

    def define(memory: types.Type, start: types.Type, index: types.Type, value: types.Type) -> Lowering:
        def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            return builder.atomic_rmw(operation, element_address(context, builder, memory, args), args[3], "monotonic")

        return types.uint32(memory, types.uint32, types.uint32, types.uint32), emit

    return lowered(define)


atomic_add, atomic_min, atomic_max = _update("add"), _update("umin"), _update("umax")
atomic_and, atomic_or, atomic_xor = _update("and"), _update("or"), _update("xor")
atomic_exchange = _update("xchg")


# A plain load may be kept over the turns of a loop that waits for it to change, and LLVM's atomic loads are
# not for NVVM: hence the two instructions by name.


def _suffix(memory: types.Type) -> str:
    """Who shall see the access, and which memory it goes to: a part of the instruction's name."""
    return "relaxed.cta.shared.u32" if isinstance(memory, types.Array) else "relaxed.gpu.global.u32"


def in_its_space(builder: ir.IRBuilder, memory: types.Type, address: ir.Value) -> ir.Value:
    """The address as an instruction that names its memory wants it."""
    return address if isinstance(memory, types.Array) else builder.addrspacecast(address, ir.PointerType(I32, _GLOBAL))


@lowered
def atomic_load(memory: types.Type, start: types.Type, index: types.Type) -> Lowering:
    """Reads an element anew each time."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(context, builder, memory, args))
        instruction = f"ld.{_suffix(memory)} $0, [$1];"
        load = ir.InlineAsm(ir.FunctionType(I32, [address.type]), instruction, "=r,l,~{memory}", side_effect=True)
        return builder.call(load, [address])

    return types.uint32(memory, types.uint32, types.uint32), emit


@lowered
def atomic_store(memory: types.Type, start: types.Type, index: types.Type, value: types.Type) -> Lowering:
    """Writes an element for all to see."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(context, builder, memory, args))
        kind = ir.FunctionType(ir.VoidType(), [address.type, I32])
        store = ir.InlineAsm(kind, f"st.{_suffix(memory)} [$0], $1;", "l,r,~{memory}", side_effect=True)
        builder.call(store, [address, args[3]])
        return context.get_dummy_value()

    return types.void(memory, types.uint32, types.uint32, types.uint32), emit
