"""Memory access intrinsics for Numba CUDA: loads and stores of workgroup memory, and relaxed atomics.

Workgroup (shared) memory is addressed in 32 bits, as the hardware does. Numba would widen the index to 64 bits first,
which keeps a constant part of it from folding into the instruction's immediate offset. An index is given as two
summands: the first is often loop invariant, and is added to the base by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types

from .lower import I32, I64, Lowering, lowered

if TYPE_CHECKING:
    from numba.extending import CodegenContext, Intrinsic

_GLOBAL, SHARED = 1, 3  # LLVM's numbers of NVPTX address spaces


def shared_element(
    context: CodegenContext, builder: ir.IRBuilder, memory: types.Array, args: tuple[ir.Value, ...]
) -> ir.Value:
    """A pointer to an element of shared memory. The first operands are the memory and both summands of the index."""
    data = context.make_array(memory)(context, builder, value=args[0]).data
    pointer = ir.PointerType(context.get_data_type(memory.dtype), SHARED)
    base = builder.ptrtoint(builder.addrspacecast(data, pointer), I32)
    size = ir.Constant(I32, element_bytes(memory))
    address = builder.add(builder.add(base, builder.mul(args[1], size)), builder.mul(args[2], size))
    return builder.inttoptr(address, pointer)


def element_bytes(memory: types.Array) -> int:
    assert isinstance(memory.dtype, types.Integer | types.Float), memory
    return memory.dtype.bitwidth // 8


@lowered
def load_workgroup(memory: types.Type, start: types.Type, index: types.Type) -> Lowering | None:
    """Loads an element of workgroup memory."""
    if not isinstance(memory, types.Array):
        return None

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        assert isinstance(memory, types.Array)
        return builder.load(shared_element(context, builder, memory, args), align=element_bytes(memory))

    return memory.dtype(memory, types.uint32, types.uint32), emit


@lowered
def store_workgroup(memory: types.Type, start: types.Type, index: types.Type, value: types.Type) -> Lowering | None:
    """Stores an element of workgroup memory."""
    if not isinstance(memory, types.Array):
        return None

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        assert isinstance(memory, types.Array)
        builder.store(args[3], shared_element(context, builder, memory, args), align=element_bytes(memory))
        return context.get_dummy_value()

    return types.void(memory, types.uint32, types.uint32, memory.dtype), emit


# -- atomics on U32 ---------------------------------------------------------------------------------------


def element_address(
    context: CodegenContext, builder: ir.IRBuilder, memory: types.Type, args: tuple[ir.Value, ...]
) -> ir.Value:
    """A pointer to an element of shared or global memory. Operands as in shared_element."""
    if isinstance(memory, types.Array):
        return shared_element(context, builder, memory, args)
    return builder.gep(args[0], [builder.zext(builder.add(args[1], args[2]), I64)])


def _update(operation: Literal["add", "umin", "umax", "and", "or", "xor", "xchg"]) -> Intrinsic:
    """A relaxed atomic read-modify-write; returns the old value."""

    def define(memory: types.Type, start: types.Type, index: types.Type, value: types.Type) -> Lowering:
        def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            return builder.atomic_rmw(operation, element_address(context, builder, memory, args), args[3], "monotonic")

        return types.uint32(memory, types.uint32, types.uint32, types.uint32), emit

    return lowered(define)


atomic_add, atomic_min, atomic_max = _update("add"), _update("umin"), _update("umax")
atomic_and, atomic_or, atomic_xor = _update("and"), _update("or"), _update("xor")
atomic_exchange = _update("xchg")


# In inline PTX: NVVM may hoist a plain load out of a spin loop, and rejects LLVM's atomic loads and stores.


def _suffix(memory: types.Type) -> str:
    """The instruction's suffix: memory order, scope (workgroup or device), state space and type."""
    return "relaxed.cta.shared.u32" if isinstance(memory, types.Array) else "relaxed.gpu.global.u32"


def in_its_space(builder: ir.IRBuilder, memory: types.Type, address: ir.Value) -> ir.Value:
    """The address cast to its own address space, as an instruction with a state space takes it."""
    return address if isinstance(memory, types.Array) else builder.addrspacecast(address, ir.PointerType(I32, _GLOBAL))


@lowered
def atomic_load(memory: types.Type, start: types.Type, index: types.Type) -> Lowering:
    """A relaxed atomic load: never cached in a register."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(context, builder, memory, args))
        instruction = f"ld.{_suffix(memory)} $0, [$1];"
        load = ir.InlineAsm(ir.FunctionType(I32, [address.type]), instruction, "=r,l,~{memory}", side_effect=True)
        return builder.call(load, [address])

    return types.uint32(memory, types.uint32, types.uint32), emit


@lowered
def atomic_store(memory: types.Type, start: types.Type, index: types.Type, value: types.Type) -> Lowering:
    """A relaxed atomic store."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(context, builder, memory, args))
        kind = ir.FunctionType(ir.VoidType(), [address.type, I32])
        store = ir.InlineAsm(kind, f"st.{_suffix(memory)} [$0], $1;", "l,r,~{memory}", side_effect=True)
        builder.call(store, [address, args[3]])
        return context.get_dummy_value()

    return types.void(memory, types.uint32, types.uint32, types.uint32), emit
