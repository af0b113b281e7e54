"""The front end: reads a kernel's Python syntax tree and emits IR in one walk, by partial evaluation.

The walk visits statements in the order in which Python would run them. Every name is bound to a compile-time value or
to an expression of the IR, so the walk itself inlines functions, instantiates generics, folds constants, unrolls loops
and splits structs into scalars: there are no passes for these. Each side of a run-time branch, and the body of a
run-time loop, is read once; a name whose value differs between paths is kept in a variable. The reader is one class in
four files, each derived from the one before: expressions.py, calls.py, control.py, and statements here. It calls
names.py, operators.py and memories.py, which emit the IR for given values and do not know syntax trees.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from inspect import currentframe
from traceback import walk_stack
from types import FunctionType

from .builder import KernelBuilder
from .captures import is_own
from .control import ControlReader, Flow, Item
from .memories import load, store
from .messages import describe
from .names import assign_slot, held, new_slot
from .source import Source, source_of
from .span import KernelError, Span
from .values import Value, first_difference, is_alike, is_tuple, lift

_NONE_YET = object()  # the result of a function of which no `return` has been read
_DEEPEST = 50  # nesting of inlined calls

# What an error message expects in place of statements that the language does not have.
_RAISING = "no exceptions in a kernel: a device cannot raise, e.g. write a U32 flag"
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_OUTSIDE = "a result in an array instead of `{}`, e.g. `out[cx.global_id] = x`"
_INSTEAD: Mapping[type[ast.stmt], str] = {
    ast.Assert: "no `assert` in a kernel: a device cannot raise, e.g. a check on the host",
    ast.Raise: _RAISING,
    ast.Try: _RAISING,
    ast.TryStar: _RAISING,
    **dict.fromkeys(_DEFINITIONS, "definitions and imports outside the kernel, e.g. at the top of the module"),
    ast.Global: _OUTSIDE.format("global"),
    ast.Nonlocal: _OUTSIDE.format("nonlocal"),
    ast.Delete: "no `del` in a kernel: a name ends with its function, e.g. another name for another value",
    ast.With: "no `with` in a kernel: there is nothing to enter and leave on a device, e.g. its statements alone",
}


def _outer_frames() -> int:
    """The number of frames on the stack that are not this package's."""
    return sum(not is_own(frame.f_globals.get("__name__")) for frame, _ in walk_stack(currentframe()))


class Reader(ControlReader):
    """Reader, part 4: the statements of one inlined function."""

    def __init__(self, builder: KernelBuilder, source: Source, nesting: int = 0) -> None:
        super().__init__(builder, source)
        self.nesting = nesting
        self.entry_depth = builder.depth
        self.result: Value = _NONE_YET  # the return value; a slot, if there are several `return` statements

    def inline(self, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value:
        """Inlines a call: reads the function's body with arguments bound to its parameters; gives the return value."""
        if self.nesting >= _DEEPEST:
            raise KernelError(span, f"expected helpers nested less than {_DEEPEST} deep; recursion has no meaning "
                                    "on a device, e.g. use a loop")  # fmt: skip
        self.builder.count_iteration(span)
        self.builder.captures.function(function)
        reader = Reader(self.builder, source_of(function), self.nesting + 1)
        for name, value in zip(reader.source.parameters, arguments, strict=True):
            reader.names.bind(name, value, span)
        return reader.function_value()

    def function_value(self) -> Value:
        """Reads the whole body; its return value."""
        try:
            flow = self.block(self.source.tree.body)
        except RecursionError:
            if _outer_frames() > sys.getrecursionlimit() // 2:  # not the kernel's fault: the caller is nested too deep
                raise
            self.expected(
                self.source.tree,
                f"fewer calls, branches and operators inside each other than {self.source.tree.name!r} has, "
                "e.g. a loop instead of recursion",
            )
        if self.result is _NONE_YET:
            return None
        if flow is Flow.FALLS and self.result is not None:
            self.expected(
                self.source.tree, f"{self.source.tree.name!r} to return on every path, e.g. `return U32(0)` at its end"
            )
        return self.result

    def statement(self, node: ast.stmt, rest: Sequence[Item]) -> Flow:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(target=ast.Name(), value=None):
                pass
            case ast.Expr(value=value):
                self.read(value)  # first, for what it has to say itself
                if not isinstance(value, ast.Call):
                    self.expected(node, "a statement that does something, e.g. `cx.barrier()`, or `x = a + b`")
            case ast.Assign(targets=targets, value=value):
                found = self.read(value)
                if len(targets) > 1:  # evaluated before the first assignment, which may change its operands
                    found = held(self.builder, "value", found, self.span(node))
                for target in targets:
                    self.assign(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.read(value))
            case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
                array, index = self.place(target, self.read(target.value), target.slice, "data[i] = x")
                left = load(self.builder, array, index, self.span(target))
                store(self.builder, array, index, self.binary(node, op, left, value), self.span(target))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                self.assign(target, self.binary(node, op, self.name(target, name), value))
            case ast.AugAssign(target=target):
                self.assign(target, None)  # raises, as a plain assignment to it would
            case ast.If(test=test, body=body, orelse=otherwise):
                return self.branch(node, self.condition(test), [*body, *rest], [*otherwise, *rest])
            case ast.Match():
                return self.match(node, rest)
            case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
                self.expected(node, "a loop without `else`, e.g. set a variable before `break`")
            case ast.For():
                return self.for_loop(node, rest)
            case ast.While():
                return self.while_loop(node, rest)
            case ast.Return(value=value):
                return self.return_statement(node, value)
            case ast.Break():
                return self.break_loop(node)
            case ast.Continue():
                self.loops[-1].continued.append(dict(self.names.values))
                self.set_left_flags(node, len(self.loops))
                return Flow.LEAVES
            case _:
                unknown = f"a statement of the kernel language, found {type(node).__name__}, e.g. `x = a + b`"
                self.expected(node, _INSTEAD.get(type(node), unknown))
        return Flow.FALLS

    def assign(self, target: ast.expr, value: Value) -> None:
        span = self.span(target)
        match target:
            case ast.Name(id=name):
                self.names.bind(name, value, span)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if any(isinstance(inner, ast.Starred) for inner in targets):
                    self.expected(target, "a name for each value instead of `*`, e.g. `a, b, c = p`")
                if not is_tuple(value) or len(value) != len(targets):
                    self.expected(
                        target, f"{len(targets)} values to unpack, found {describe(value)}, e.g. `a, b = p.a, p.b`"
                    )
                # `a, b = b, a` reads both before it writes either
                items = [held(self.builder, "part", item, span) for item in value]
                for inner, item in zip(targets, items, strict=True):
                    self.assign(inner, item)
            case ast.Subscript():
                array, index = self.place(target, self.read(target.value), target.slice, "data[i] = x")
                store(self.builder, array, index, value, span)
            case ast.Attribute():
                self.expected(
                    target, "a new object instead of a changed field: structs are frozen, e.g. `p = Pair(a, b)`"
                )
            case _:
                self.expected(target, "a name or an element to assign to, e.g. `data[i] = x`")

    def return_statement(self, node: ast.Return, value: ast.expr | None) -> Flow:
        if any(loop.at_run_time for loop in self.loops):
            self.expected(node, "`return` outside run-time loops, e.g. set a variable and `break`")
        span, name = self.span(node), self.source.tree.name.strip("_") or "result"  # the variable's name
        result = None if value is None else self.read(value)
        if self.builder.depth == self.entry_depth:
            self.result = held(self.builder, name, result, span)
            return Flow.LEAVES
        result = lift(result, span)
        if self.result is _NONE_YET:
            self.result = new_slot(self.builder, name, result, span)
        if not is_alike(self.result, result):
            before, found = map(describe, first_difference(self.result, result))
            self.expected(node, f"{before} from every `return`, found {found}, e.g. `return U32(1)`")
        assign_slot(self.builder, self.result, result, "result", span)
        self.set_left_flags(node)
        return Flow.LEAVES
