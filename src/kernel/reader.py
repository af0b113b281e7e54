"""Reads a kernel: Python source in, IR out, in one walk.

The walk follows the source as Python would run it, with every name bound to a value that is either known now or an
expression of the IR. So helpers, methods and structs vanish where they are used, generics are filled in by what is
passed, `range` loops unroll and tests of known values pick their branch: there is nothing left for later passes to
inline or monomorphise. Run-time branches and loops are walked once, with the names that differ held in variables.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType

from ..types.elements import class_of
from . import access, ir
from .builder import Builder
from .control import ControlReader, Flow, Item
from .source import Source, escapes, source_of
from .span import KernelError, Span
from .values import (
    EXPRESSIONS,
    EnumValue,
    MemoryValue,
    Static,
    StructValue,
    TupleValue,
    Value,
    describe,
    lift,
)  # fmt: skip

_DEEPEST = 50


class Reader(ControlReader):
    """Statements of one function, as it is inlined at one place."""

    def __init__(
        self, builder: Builder, source: Source, names: dict[str, Value], memories: list[ir.Memory], nesting: int = 0
    ) -> None:
        super().__init__(builder, source, names)
        self.memories = memories
        self.nesting = nesting
        self.entry_depth = builder.depth
        self.result: Value = Static(None)
        self.result_slot: Value | None = None

    # -- functions -------------------------------------------------------------------------------------

    def inline(self, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value:
        if self.nesting >= _DEEPEST:
            raise KernelError(span, f"expected helpers nested less than {_DEEPEST} deep; recursion has no meaning "
                                    "on a device, e.g. use a loop")  # fmt: skip
        source = source_of(function)
        reader = Reader(self.builder, source, {}, self.memories, self.nesting + 1)
        tree = source.tree.args
        parameters = [argument.arg for argument in (*tree.posonlyargs, *tree.args, *tree.kwonlyargs)]
        for name, value in zip(parameters, arguments, strict=True):
            reader.bind(name, value, span)
        return reader.function_value()

    def function_value(self) -> Value:
        self.block(self.source.tree.body)
        return self.result if self.result_slot is None else self.result_slot

    def new_memory(self, memory: ir.Memory) -> ir.Memory:
        made = ir.Memory(f"{memory.name}_{len(self.memories)}", memory.space, memory.type, memory.length)
        self.memories.append(made)
        return made

    # -- blocks ----------------------------------------------------------------------------------------

    def block(self, items: Sequence[Item]) -> Flow:
        for position, item in enumerate(items):
            if not isinstance(item, ast.stmt):
                if item() is Flow.LEAVES:
                    return Flow.LEAVES
            elif escapes(item) and not isinstance(item, ast.Return | ast.Continue):
                # What follows a branch that may leave belongs to the paths that do not.
                return self.statement(item, items[position + 1 :])
            elif self.statement(item, ()) is Flow.LEAVES:
                return Flow.LEAVES
        return Flow.FALLS

    def statement(self, node: ast.stmt, rest: Sequence[Item]) -> Flow:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return Flow.FALLS
            case ast.Expr(value=value):
                self.read(value)
                return Flow.FALLS
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.read(value))
                return Flow.FALLS
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.read(value))
                return Flow.FALLS
            case ast.AugAssign(target=target, op=op, value=value):
                left = self.read(_as_load(target))
                self.assign(target, self.binary(node, type(op), left, self.read(value)))
                return Flow.FALLS
            case ast.If(test=test, body=body, orelse=otherwise):
                return self.branch(node, self.condition(test), [*body, *rest], [*otherwise, *rest])
            case ast.Match():
                return self.match(node, rest)
            case ast.For():
                return self.for_loop(node, rest)
            case ast.While():
                return self.while_loop(node, rest)
            case ast.Return(value=value):
                return self.leave(node, value)
            case ast.Break():
                return self.break_loop(node)
            case ast.Continue():
                return Flow.LEAVES
            case ast.Assert():
                self.fail(node, "expected no `assert` in a kernel: check on the host, before the launch")
            case ast.Raise() | ast.Try():
                self.fail(node, "expected no exceptions in a kernel: a device cannot raise, e.g. write a U32 flag")
            case ast.FunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
                self.fail(node, "expected definitions and imports outside the kernel, e.g. at the top of the module")
            case ast.Global() | ast.Nonlocal() | ast.Delete() | ast.With():
                self.fail(node, f"expected plain assignments, found `{type(node).__name__.lower()}`, e.g. a parameter")
            case ast.Assign():
                self.fail(node, "expected one target, e.g. `a = x` and then `b = x`")
            case ast.AnnAssign():
                self.fail(node, "expected a value behind the annotation, e.g. `total: U32 = U32(0)`")
            case _:
                self.fail(
                    node, f"expected a statement of the kernel language, found {type(node).__name__}, e.g. `x = a + b`"
                )

    def assign(self, target: ast.expr, value: Value) -> None:
        span = self.source.span(target)
        match target:
            case ast.Name(id=name):
                self.bind(name, value, span)
            case ast.Tuple(elts=targets):
                if not isinstance(value, TupleValue) or len(value.items) != len(targets):
                    self.fail(target, f"expected {len(targets)} values to unpack, found {describe(value)}")
                held = self.held("part", value, span)  # `a, b = b, a` reads both before it writes either
                assert isinstance(held, TupleValue)
                for inner, item in zip(targets, held.items, strict=True):
                    self.assign(inner, item)
            case ast.Subscript(value=owner, slice=index):
                self.store(target, owner, index, value)
            case ast.Attribute():
                self.fail(
                    target,
                    "expected a new object instead of a changed field: structs are frozen, e.g. `p = Pair(a, b)`",
                )
            case _:
                self.fail(target, "expected a name or an element to assign to, e.g. `data[i] = x`")

    def store(self, node: ast.expr, owner: ast.expr, index: ast.expr, value: Value) -> None:
        array = self.read(owner)
        if not isinstance(array, MemoryValue):
            self.fail(node, f"expected an array before `[`, found {describe(array)}, e.g. `data[i] = x`")
        if isinstance(index, ast.Slice):
            self.fail(index, "expected one index instead of a slice, e.g. a loop over `data[i]`")
        value = lift(value, self.source.span(node))
        cls = class_of(array.element)
        found = (
            class_of(value.element)
            if isinstance(value, StructValue)
            else value.cls
            if isinstance(value, EnumValue)
            else None
        )
        scalar = isinstance(value, EXPRESSIONS) and getattr(cls, "type", None) is value.type
        if not scalar and found is not cls:
            self.fail(node, f"expected {cls.__name__} to store, found {describe(value)}, e.g. `{cls.__name__}(x)`")
        access.store(self.builder, array, self.index(index), value, self.source.span(node))

    # -- leaving ---------------------------------------------------------------------------------------

    def leave(self, node: ast.Return, value: ast.expr | None) -> Flow:
        if any(self.loops):
            self.fail(node, "expected `return` outside run-time loops, e.g. set a variable and `break`")
        result: Value = Static(None) if value is None else self.read(value)
        if self.builder.depth == self.entry_depth:
            self.result = self.held("result", result, self.source.span(node))
            return Flow.LEAVES
        if value is None:
            return Flow.LEAVES
        span = self.source.span(node)
        result = lift(result, span)
        if self.result_slot is None:
            self.result_slot = self.new_slot("result", result, span)
        self.assign_slot(self.result_slot, result, "result", span)
        return Flow.LEAVES

    def break_loop(self, node: ast.Break) -> Flow:
        if not self.loops or not self.loops[-1]:
            self.fail(node, "expected `break` in a run-time loop; an unrolled one has no end to jump to, "
                            "e.g. `for i in dynamic_range(U32(0), n):`")  # fmt: skip
        self.builder.emit(ir.Break(self.source.span(node)))
        return Flow.LEAVES


def _as_load(target: ast.expr) -> ast.expr:
    """The target of `x += 1`, to be read."""
    match target:
        case ast.Name(id=name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Subscript(value=value, slice=index):
            return ast.copy_location(ast.Subscript(value, index, ast.Load()), target)
        case _:
            return target
