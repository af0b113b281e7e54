"""What the CUDA target's intrinsics share: their types, and calls of LLVM's and NVVM's own intrinsics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from llvmlite import ir

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext

# Writes an intrinsic's instructions and gives back the value they compute.
Emit: TypeAlias = "Callable[[CodegenContext, ir.IRBuilder, Signature, tuple[ir.Value, ...]], ir.Value]"
# The same for what needs to know no types: only where to write, and the operands.
Body: TypeAlias = Callable[[ir.IRBuilder, tuple[ir.Value, ...]], ir.Value]
# What an intrinsic is to Numba: the types it takes and gives, and how it is written.
Lowering: TypeAlias = "tuple[Signature, Emit]"

I1 = ir.IntType(1)
I32 = ir.IntType(32)
I64 = ir.IntType(64)


def constant(value: int) -> ir.Constant:
    """A U32."""
    return ir.Constant(I32, value)


def call(builder: ir.IRBuilder, name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """A call of a function that the compiler behind us knows by name, declared where it is not yet."""
    function = builder.module.globals.get(name)
    if not isinstance(function, ir.Function):
        function = ir.Function(builder.module, ir.FunctionType(result, [o.type for o in operands]), name)
    return builder.call(function, list(operands))


def plainly(body: Body) -> Emit:
    """A body as Numba calls it."""

    def emit(context: CodegenContext, builder: ir.IRBuilder, sig: Signature, args: tuple[ir.Value, ...]) -> ir.Value:
        return body(builder, args)

    return emit
