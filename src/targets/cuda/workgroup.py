"""Elements of workgroup memory, addressed by 32 bits, which is what the hardware takes.

Numba widens an index to 64 bits before it is scaled and added to a base; then no constant of the index can move into
the instruction's own offset. No workgroup memory is near 2**32 bytes, so nothing is lost here. An index comes in two
parts, of which the first is often the same for all turns of a loop: it is added to the base alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir
from numba.cuda import types

from .lower import I32, Lowering, lowered

if TYPE_CHECKING:
    from numba.extending import CodegenContext

SHARED = 3  # how LLVM numbers the card's address space


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
