"""Helpers to define intrinsics: the types of operands and result, and the LLVM IR, in one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs
from llvmlite import ir

from .kinds import Kind

# Emits an intrinsic's LLVM IR and returns the value it computes, None if it computes none.
Emit: TypeAlias = Callable[[ir.IRBuilder, tuple[ir.Value, ...]], "ir.Value | None"]

I1 = ir.IntType(1)
I32 = ir.IntType(32)
I64 = ir.IntType(64)


@attrs.frozen
class Lowering:
    """An intrinsic for certain types of operands. Literals are none of the values that `emit` gets."""

    result: Kind
    operands: tuple[Kind, ...]
    emit: Emit


@attrs.frozen
class Intrinsic:
    """What a kernel's source calls by its name."""

    define: Callable[..., Lowering | None]

    def lowering(self, kinds: Sequence[Kind]) -> Lowering | None:
        """For operands of these types; None if it takes others."""
        found = self.define(*kinds)
        return found if found is not None and found.operands == tuple(kinds) else None


def lowered(define: Callable[..., Lowering | None]) -> Intrinsic:
    """Decorator: makes an intrinsic of a function from operand types to how it is lowered, or None if it is not."""
    return Intrinsic(define)


def constant(value: int) -> ir.Constant:
    """A 32-bit integer constant."""
    return ir.Constant(I32, value)


def call(builder: ir.IRBuilder, name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """Calls an LLVM or NVVM intrinsic by name, and declares it in the module at its first use."""
    function = builder.module.globals.get(name)
    if not isinstance(function, ir.Function):
        function = ir.Function(builder.module, ir.FunctionType(result, [o.type for o in operands]), name)
    return builder.call(function, list(operands))
