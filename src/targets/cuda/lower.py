"""Helpers to define Numba CUDA intrinsics: typing signature and LLVM IR emission in one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from llvmlite import ir
from numba.cuda.extending import intrinsic

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext, Intrinsic, TypingContext

# Emits an intrinsic's LLVM IR and returns the value it computes.
Emit: TypeAlias = "Callable[[CodegenContext, ir.IRBuilder, tuple[ir.Value, ...]], ir.Value]"
# The same without Numba's code generation context.
Body: TypeAlias = Callable[[ir.IRBuilder, tuple[ir.Value, ...]], ir.Value]
_NumbaEmit: TypeAlias = "Callable[[CodegenContext, ir.IRBuilder, Signature, tuple[ir.Value, ...]], ir.Value]"
# One overload of an intrinsic: its Numba signature, and what emits it.
Lowering: TypeAlias = "tuple[Signature, Emit]"

I1 = ir.IntType(1)
I32 = ir.IntType(32)
I64 = ir.IntType(64)


def lowered(define: Callable[..., Lowering | None]) -> Intrinsic:
    """Decorator: makes a Numba intrinsic of a function from operand types to an overload, or None if there is none."""

    def definition(_: TypingContext, *kinds: object) -> tuple[Signature, _NumbaEmit] | None:
        found = define(*kinds)
        if found is None:
            return None
        signature, emit = found
        return signature, lambda context, builder, _, args: emit(context, builder, args)

    taken = inspect.signature(define)
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    shown = taken.replace(parameters=[context, *taken.parameters.values()])  # Numba inspects the parameter names
    setattr(definition, "__signature__", shown)  # noqa: B010  (checkers do not know it as an attribute)
    definition.__name__ = define.__name__
    return intrinsic(definition)


def constant(value: int) -> ir.Constant:
    """A 32-bit integer constant."""
    return ir.Constant(I32, value)


def call(builder: ir.IRBuilder, name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """Calls an LLVM or NVVM intrinsic by name, and declares it in the module at its first use."""
    function = builder.module.globals.get(name)
    if not isinstance(function, ir.Function):
        function = ir.Function(builder.module, ir.FunctionType(result, [o.type for o in operands]), name)
    return builder.call(function, list(operands))


def plainly(body: Body) -> Emit:
    """Adapts a body that does not use Numba's context."""
    return lambda _, builder, args: body(builder, args)
