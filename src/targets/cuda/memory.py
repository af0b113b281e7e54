"""Elements of memory for Numba CUDA: of storage behind raw pointers, and of workgroup memory; relaxed atomics on both.

Workgroup memory is addressed by 32 bits, which is what the hardware takes. Numba widens an index to 64 bits before it
is scaled and added to a base; then no constant of the index can move into the instruction's own offset. No workgroup
memory is near 2**32 bytes, so nothing is lost here. An index comes in two parts, of which the first is often the same
for all turns of a loop: it is added to the base alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from llvmlite import ir
from numba.cuda import types

from .lower import I32, I64, Lowering, lowered

if TYPE_CHECKING:
    from numba.extending import CodegenContext, Intrinsic

_GLOBAL, SHARED = 1, 3  # how LLVM numbers the card's address spaces


def shared_element(
    context: CodegenContext, builder: ir.IRBuilder, memory: types.Array, args: tuple[ir.Value, ...]
) -> ir.Value:
    """A pointer to an element. The first operands are the memory and both parts of the index."""
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
    """The value of an element."""
    if not isinstance(memory, types.Array):
        return None

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        assert isinstance(memory, types.Array)
        return builder.load(shared_element(context, builder, memory, args), align=element_bytes(memory))

    return memory.dtype(memory, types.uint32, types.uint32), emit


@lowered
def store_workgroup(memory: types.Type, start: types.Type, index: types.Type, value: types.Type) -> Lowering | None:
    """Gives an element a value."""
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
