"""What the CUDA target's intrinsics share: their types, and calls of LLVM's and NVVM's own intrinsics."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from llvmlite import ir
from numba.cuda.extending import intrinsic

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext, Intrinsic, TypingContext

# Writes an intrinsic's instructions and gives back the value they compute.
Emit: TypeAlias = "Callable[[CodegenContext, ir.IRBuilder, tuple[ir.Value, ...]], ir.Value]"
# The same for what needs nothing of Numba's: only where to write, and the operands.
Body: TypeAlias = Callable[[ir.IRBuilder, tuple[ir.Value, ...]], ir.Value]
_NumbaEmit: TypeAlias = "Callable[[CodegenContext, ir.IRBuilder, Signature, tuple[ir.Value, ...]], ir.Value]"
# What an intrinsic is for operands of some types: the types it takes and gives, and how it is written.
Lowering: TypeAlias = "tuple[Signature, Emit]"

I1 = ir.IntType(1)
I32 = ir.IntType(32)
I64 = ir.IntType(64)


def lowered(define: Callable[..., Lowering | None]) -> Intrinsic:
    """An intrinsic: a function of its operands' types, which gives None for those that it does not take."""

    def definition(_: TypingContext, *kinds: object) -> tuple[Signature, _NumbaEmit] | None:
        found = define(*kinds)
        if found is None:
            return None
        signature, emit = found
        return signature, lambda context, builder, _, args: emit(context, builder, args)

    taken = inspect.signature(define)
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    shown = taken.replace(parameters=[context, *taken.parameters.values()])  # as Numba wants to see it
    setattr(definition, "__signature__", shown)  # noqa: B010  (checkers do not know it as an attribute)
    definition.__name__ = define.__name__
    return intrinsic(definition)


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
    """A body that needs nothing of Numba's."""
    return lambda _, builder, args: body(builder, args)
