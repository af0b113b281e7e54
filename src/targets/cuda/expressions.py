"""A kernel's expressions as LLVM IR: intrinsics, conversions, literals, variables and elements of memories."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from typing import TypeAlias

import attrs
from llvmlite import ir

from .kinds import (
    BOOLEAN,
    INT32,
    SCALARS,
    Boolean,
    Float,
    Integer,
    Kind,
    Number,
    Pointer,
    Private,
    Scalar,
    Shared,
)  # fmt: skip
from .lower import I64, Intrinsic, call
from .table import INTRINSICS

# Where a hardware register is read, by what a kernel's source calls it.
_REGISTERS = {"cuda.threadIdx.x": "tid.x", "cuda.blockIdx.x": "ctaid.x", "cuda.gridDim.x": "nctaid.x"}
_LIBRARY = {"math.sqrt": "__nv_sqrt", "math.exp": "__nv_exp", "math.log": "__nv_log"}  # of NVIDIA's libdevice
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


class Untranslatable(Exception):
    """A kernel's source has what this compiler does not know, or operands of other types than it takes."""


@attrs.frozen
class Slot:
    """A variable: its type, and where it lies on the stack."""

    kind: Scalar
    pointer: ir.Value


@attrs.frozen
class Memory:
    """An array that a kernel's source names, and a pointer to its first element."""

    kind: Pointer | Shared | Private
    pointer: ir.Value


Typed: TypeAlias = tuple[Kind, ir.Value]


class Expressions:
    """Emits expressions where the builder stands."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder
        self.slots: dict[str, Slot] = {}
        self.fixed: dict[str, tuple[Scalar, ir.Value]] = {}  # variables that are assigned once
        self.memories: dict[str, Memory] = {}

    def value(self, node: ast.expr) -> tuple[Scalar, ir.Value]:
        """A scalar, and its type."""
        match node:
            case ast.Name(name) if name in self.fixed:
                return self.fixed[name]
            case ast.Name(name) if name in self.slots:
                slot = self.slots[name]
                return slot.kind, self.builder.load(slot.pointer)
            case ast.Constant(bool() as truth):
                return BOOLEAN, ir.Constant(BOOLEAN.llvm, int(truth))
            case ast.Subscript(ast.Name(name), index):
                memory = self.memories[name]
                return memory.kind.element, self.builder.load(self.element(memory, index))
            case ast.Attribute() if (name := ast.unparse(node)) in _REGISTERS:
                return INT32, call(self.builder, f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[name]}", INT32.llvm, ())
            case ast.Call(ast.Name(name), [given]) if name in SCALARS:
                return SCALARS[name], self._converted(given, SCALARS[name])
            case ast.Call(ast.Attribute() as function, [given]) if (name := ast.unparse(function)) in _LIBRARY:
                kind, value = self.value(given)
                suffix = "f" if kind == SCALARS["f4"] else ""
                return kind, call(self.builder, _LIBRARY[name] + suffix, kind.llvm, (value,))
            case ast.Call(ast.Name()):
                result, found = self.called(node)
                if found is not None and isinstance(result, Integer | Float | Boolean):
                    return result, found
            case _:
                pass
        raise Untranslatable(ast.unparse(node))

    def called(self, node: ast.Call) -> tuple[Kind, ir.Value | None]:
        """What an intrinsic returns; None from one that only stores."""
        operands = [self._operand(argument) for argument in node.args]
        kinds = [kind for kind, _ in operands]
        intrinsic = intrinsics().get(ast.unparse(node.func))
        lowering = intrinsic.lowering(kinds) if intrinsic is not None else None
        if lowering is None:
            raise Untranslatable(f"{ast.unparse(node)}: of {kinds}")
        values = tuple(value for _, value in operands if value is not None)
        return lowering.result, lowering.emit(self.builder, values)

    def _operand(self, node: ast.expr) -> tuple[Kind, ir.Value | None]:
        match node:
            case ast.Name(name) if name in self.memories:
                memory = self.memories[name]
                return memory.kind, memory.pointer
            case ast.Constant(int() as value) if not isinstance(value, bool):
                return Number(value), None
            case _:
                return self.value(node)

    def element(self, memory: Memory, index: ast.expr) -> ir.Value:
        """A pointer to an element."""
        kind, value = self.value(index)
        if not isinstance(kind, Integer):
            raise Untranslatable(f"an index of {kind}")
        wide = self.builder.sext(value, I64) if kind.signed else self.builder.zext(value, I64)
        return self.builder.gep(memory.pointer, [wide])

    def _converted(self, node: ast.expr, to: Scalar) -> ir.Value:
        """`u4(7)`, `f4(-inf)`, or the conversion of another scalar."""
        match node:
            case ast.UnaryOp(ast.USub(), operand) if (number := _number(operand)) is not None:
                return ir.Constant(to.llvm, -number)
            case _ if (number := _number(node)) is not None:
                return ir.Constant(to.llvm, number)
            case _:
                return self._cast(*self.value(node), to)

    def _cast(self, kind: Scalar, value: ir.Value, to: Scalar) -> ir.Value:
        builder, llvm = self.builder, to.llvm
        match kind, to:
            case (Integer(), Integer()):
                if kind.bitwidth > to.bitwidth:
                    return builder.trunc(value, llvm)
                return builder.sext(value, llvm) if kind.signed else builder.zext(value, llvm)
            case (Integer(), Float()):
                return builder.sitofp(value, llvm) if kind.signed else builder.uitofp(value, llvm)
            case (Float(), Integer()):
                return builder.fptosi(value, llvm) if to.signed else builder.fptoui(value, llvm)
            case (Float(), Float()):
                return builder.fptrunc(value, llvm) if kind.bitwidth > to.bitwidth else builder.fpext(value, llvm)
            case _ if kind == to:
                return value
            case _:
                raise Untranslatable(f"{kind} as {to}")


def _number(node: ast.expr) -> int | float | None:
    match node:
        case ast.Constant(int() | float() as value):
            return value
        case ast.Name(name):
            return _NUMBERS.get(name)
        case _:
            return None


@cache
def intrinsics() -> dict[str, Intrinsic]:
    """All that a kernel's source may call, by name."""
    package = __name__.rpartition(".")[0]
    found: dict[str, Intrinsic] = {}
    for module, names in INTRINSICS.items():
        defined = vars(import_module(f"{package}.{module}"))
        found |= {name: defined[name] for name in names}
    return found
