"""Memory access intrinsics: loads and stores of workgroup memory, and relaxed atomics.

Workgroup (shared) memory is addressed in 32 bits, as the hardware does: in 64 bits a constant part of an
index would not fold into the instruction's immediate offset. An index is given as two
summands: the first is often loop invariant, and is added to the base by itself.
"""

from __future__ import annotations

from typing import Literal

from llvmlite import ir

from .kinds import NOTHING, UINT32, Kind, Shared
from .lower import I32, I64, Intrinsic, Lowering, lowered

_GLOBAL, SHARED = 1, 3  # LLVM's numbers of NVPTX address spaces


def shared_element(builder: ir.IRBuilder, memory: Shared, args: tuple[ir.Value, ...]) -> ir.Value:
    """A pointer to an element of shared memory. The first operands are the memory and both summands of the index."""
    base, size = builder.ptrtoint(args[0], I32), ir.Constant(I32, memory.element.bytes)
    address = builder.add(builder.add(base, builder.mul(args[1], size)), builder.mul(args[2], size))
    return builder.inttoptr(address, args[0].type)


@lowered
def load_workgroup(memory: Kind, start: Kind, index: Kind) -> Lowering | None:
    """Loads an element of workgroup memory."""
    if not isinstance(memory, Shared):
        return None

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        return builder.load(shared_element(builder, memory, args), align=memory.element.bytes)

    return Lowering(memory.element, (memory, UINT32, UINT32), emit)


@lowered
def store_workgroup(memory: Kind, start: Kind, index: Kind, value: Kind) -> Lowering | None:
    """Stores an element of workgroup memory."""
    if not isinstance(memory, Shared):
        return None

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> None:
        builder.store(args[3], shared_element(builder, memory, args), align=memory.element.bytes)

    return Lowering(NOTHING, (memory, UINT32, UINT32, memory.element), emit)


# -- atomics on U32 ---------------------------------------------------------------------------------------


def element_address(builder: ir.IRBuilder, memory: Kind, args: tuple[ir.Value, ...]) -> ir.Value:
    """A pointer to an element of shared or global memory. Operands as in shared_element."""
    if isinstance(memory, Shared):
        return shared_element(builder, memory, args)
    return builder.gep(args[0], [builder.zext(builder.add(args[1], args[2]), I64)])


def _update(operation: Literal["add", "umin", "umax", "and", "or", "xor", "xchg"]) -> Intrinsic:
    """A relaxed atomic read-modify-write; returns the old value."""

    def define(memory: Kind, start: Kind, index: Kind, value: Kind) -> Lowering:
        def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            return builder.atomic_rmw(operation, element_address(builder, memory, args), args[3], "monotonic")

        return Lowering(UINT32, (memory, UINT32, UINT32, UINT32), emit)

    return lowered(define)


atomic_add, atomic_min, atomic_max = _update("add"), _update("umin"), _update("umax")
atomic_and, atomic_or, atomic_xor = _update("and"), _update("or"), _update("xor")
atomic_exchange = _update("xchg")


# In inline PTX: NVVM may hoist a plain load out of a spin loop, and rejects LLVM's atomic loads and stores.


def _suffix(memory: Kind) -> str:
    """The instruction's suffix: memory order, scope (workgroup or device), state space and type."""
    return "relaxed.cta.shared.u32" if isinstance(memory, Shared) else "relaxed.gpu.global.u32"


def in_its_space(builder: ir.IRBuilder, memory: Kind, address: ir.Value) -> ir.Value:
    """The address cast to its own address space, as an instruction with a state space takes it."""
    return address if isinstance(memory, Shared) else builder.addrspacecast(address, ir.PointerType(I32, _GLOBAL))


@lowered
def atomic_load(memory: Kind, start: Kind, index: Kind) -> Lowering:
    """A relaxed atomic load: never cached in a register."""

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        address = in_its_space(builder, memory, element_address(builder, memory, args))
        instruction = f"ld.{_suffix(memory)} $0, [$1];"
        load = ir.InlineAsm(ir.FunctionType(I32, [address.type]), instruction, "=r,l,~{memory}", side_effect=True)
        return builder.call(load, [address])

    return Lowering(UINT32, (memory, UINT32, UINT32), emit)


@lowered
def atomic_store(memory: Kind, start: Kind, index: Kind, value: Kind) -> Lowering:
    """A relaxed atomic store."""

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> None:
        address = in_its_space(builder, memory, element_address(builder, memory, args))
        kind = ir.FunctionType(ir.VoidType(), [address.type, I32])
        store = ir.InlineAsm(kind, f"st.{_suffix(memory)} [$0], $1;", "l,r,~{memory}", side_effect=True)
        builder.call(store, [address, args[3]])

    return Lowering(NOTHING, (memory, UINT32, UINT32, UINT32), emit)
