"""Reads a kernel: Python source in, IR out, in one walk.

The walk follows the source as Python would run it, with every name bound to a value that is either known now or an
expression of the IR. So helpers, methods and structs vanish where they are used, generics are filled in by what is
passed, `range` loops unroll and tests of known values pick their branch: there is nothing left for later passes to
inline or monomorphise. Run-time branches and loops are walked once, with the names that differ held in variables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from types import FunctionType
from typing import TypeAlias

from ..types import ops
from ..types.elements import class_of
from ..types.intrinsics import dynamic_range
from ..types.layout import Type
from . import access, ir
from .builder import Builder, apply
from .calls import CallReader
from .source import Source, escapes, source_of
from .span import KernelError, Span
from .values import (
    EXPRESSIONS, EnumValue, MemoryValue, Static, StructValue, TupleValue, Undecided, Value, describe, lift, of_object,
    parts, rebuild, shape,
)  # fmt: skip

_DEEPEST = 50

# A block to read: statements, or steps that the reader puts between them (the binding of an unrolled loop's variable).
Item: TypeAlias = "ast.stmt | Callable[[], Flow]"


class Flow(Enum):
    """Whether a block's end is reached."""

    FALLS = auto()
    LEAVES = auto()


class Reader(CallReader):
    """Statements of one function, as it is inlined at one place."""

    def __init__(
        self, builder: Builder, source: Source, names: dict[str, Value], memories: list[ir.Memory], nesting: int = 0
    ) -> None:
        super().__init__(builder, source, names)
        self.memories = memories
        self.nesting = nesting
        self.entry_depth = builder.depth
        self.loops: list[bool] = []  # the loops around here, True for those at run time
        self.slots: dict[str, Value] = {}  # variables of the names that are assigned in several places
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

    # -- names -----------------------------------------------------------------------------------------

    def bind(self, name: str, value: Value, span: Span) -> None:
        """Gives a name a value. What is assigned in several places lives in variables, unless known now."""
        if self.source.stores.get(name, 0) > 1:
            value = lift(value, span) if name in self.slots else value
            if name in self.slots or not self.is_known(value):
                self.names[name] = self.into_slot(name, lift(value, span), span)
                return
        self.names[name] = self.held(name, value, span)

    def is_known(self, value: Value) -> bool:
        return all(isinstance(part, Static | MemoryValue) for part in parts(value))

    def held(self, name: str, value: Value, span: Span) -> Value:
        def hold(part: Value) -> Value:
            return self.builder.hold(name, part, span) if isinstance(part, EXPRESSIONS) else part

        return rebuild(value, hold)

    def into_slot(self, name: str, value: Value, span: Span) -> Value:
        slot = self.slots.get(name)
        if slot is None:
            slot = self.slots[name] = self.new_slot(name, value, span)
        self.assign_slot(slot, value, name, span)
        return slot

    def new_slot(self, name: str, value: Value, span: Span) -> Value:
        def make(part: Value) -> Value:
            if not isinstance(part, EXPRESSIONS):
                return part
            return ir.Read(self.builder.variable(name, part.type), span)

        return rebuild(value, make)

    def assign_slot(self, slot: Value, value: Value, name: str, span: Span) -> None:
        if shape(slot) != shape(value):
            hint = f"e.g. `{name} = U32(0)`" if isinstance(value, Static) else "e.g. a name of its own"
            raise KernelError(span, f"expected {describe(slot)} for {name!r} as before, found {describe(value)}, {hint}")
        # All of the new value is read before any of it is written: `a = Pair(a.high, a.low)` must swap.
        several = sum(1 for _ in parts(value)) > 1
        for part, held in zip(parts(slot), list(parts(self.held(name, value, span) if several else value)), strict=True):
            if isinstance(part, ir.Read) and isinstance(held, EXPRESSIONS):
                self.builder.emit(ir.Assign(part.variable, held, span))

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
                self.fail(node, f"expected a statement of the kernel language, found {type(node).__name__}, e.g. `x = a + b`")

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
                self.fail(target, "expected a new object instead of a changed field: structs are frozen, e.g. `p = Pair(a, b)`")
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
        found = class_of(value.element) if isinstance(value, StructValue) else value.cls if isinstance(value, EnumValue) else None
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

    # -- branches --------------------------------------------------------------------------------------

    def branch(
        self, node: ast.stmt, condition: ir.Expression, then: Sequence[Item], otherwise: Sequence[Item]
    ) -> Flow:
        if isinstance(condition, ir.Const):
            return self.block(then if condition.value else otherwise)
        span = self.source.span(node)
        condition = self.builder.hold("condition", condition, span)
        before = dict(self.names)
        with self.builder.nested() as first:
            flow_then, names_then = self.block(then), self.names
        self.names = dict(before)
        with self.builder.nested() as second:
            flow_otherwise, names_otherwise = self.block(otherwise), self.names
        self.builder.emit(ir.If(condition, tuple(first), tuple(second), span))
        if flow_then is Flow.LEAVES:
            self.names = names_otherwise
        elif flow_otherwise is Flow.LEAVES:
            self.names = names_then
        else:
            self.names = _joined(names_then, names_otherwise)
        return Flow.LEAVES if flow_then is flow_otherwise is Flow.LEAVES else Flow.FALLS

    def match(self, node: ast.Match, rest: Sequence[Item]) -> Flow:
        """`match` on an enum, which must name every member."""
        subject = self.read(node.subject)
        cls = subject.cls if isinstance(subject, EnumValue) else type(subject.value) if isinstance(subject, Static) else None
        if cls is None or not issubclass(cls, Enum):
            self.fail(node, f"expected an enum to match, found {describe(subject)}, e.g. `match order:`")
        cases = [(self.members(case, cls), case.body) for case in node.cases]
        covered = {member for members, _ in cases for member in members}
        missing = [member for member in cls if member not in covered]
        if missing:
            name = f"{cls.__name__}.{missing[0].name}"
            self.fail(node, f"expected a case for every member of {cls.__name__}, found none for {name}, e.g. `case {name}:`")
        return self.cases(node, subject, cases, rest)

    def cases(
        self, node: ast.Match, subject: Value, cases: Sequence[tuple[Sequence[Enum], list[ast.stmt]]], rest: Sequence[Item]
    ) -> Flow:
        (members, body), *others = cases
        if isinstance(subject, Static):
            return self.block([*body, *rest]) if subject.value in members else self.cases(node, subject, others, rest)
        if not others:
            return self.block([*body, *rest])
        span = self.source.span(node)
        assert isinstance(subject, EnumValue)
        tests = [apply(ops.EQ, (subject.code, ir.Const(m.value, Type.U32, span)), span) for m in members]
        condition = tests[0]
        for test in tests[1:]:
            condition = apply(ops.OR, (condition, test), span)

        return self.branch(node, condition, [*body, *rest], [lambda: self.cases(node, subject, others, rest)])

    def members(self, case: ast.match_case, cls: type[Enum]) -> list[Enum]:
        if case.guard is not None:
            self.fail(case.pattern, "expected a case without a guard, e.g. an `if` inside it")
        patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
        found: list[Enum] = []
        for pattern in patterns:
            if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
                return list(cls)
            member = self.read(pattern.value) if isinstance(pattern, ast.MatchValue) else None
            if not isinstance(member, Static) or not isinstance(member.value, cls):
                self.fail(pattern, f"expected a member of {cls.__name__}, e.g. `case {cls.__name__}.{next(iter(cls)).name}:`")
            found.append(member.value)
        return found

    def merged(
        self, node: ast.AST, condition: ir.Expression, then: tuple[list[ir.Statement], Value],
        otherwise: tuple[list[ir.Statement], Value],
    ) -> Value:  # fmt: skip
        """The value of `a if c else b`, by select where both are pure."""
        span = self.source.span(node)
        (first, a), (second, b) = then, otherwise
        if isinstance(a, EXPRESSIONS) and isinstance(b, Static):
            b = self.literal(b.value, a.type, node)
        if isinstance(b, EXPRESSIONS) and isinstance(a, Static):
            a = self.literal(a.value, b.type, node)
        if shape(a) != shape(b):
            self.fail(node, f"expected one type on both sides, found {describe(a)} and {describe(b)}, e.g. `U32(1)` for both")
        if first or second:
            slot = self.new_slot("choice", a, span)
            with self.builder.nested() as assign_a:
                self.assign_slot(slot, a, "choice", span)
            with self.builder.nested() as assign_b:
                self.assign_slot(slot, b, "choice", span)
            self.builder.emit(ir.If(condition, (*first, *assign_a), (*second, *assign_b), span))
            return slot
        condition = self.builder.hold("condition", condition, span) if isinstance(a, StructValue) else condition
        chosen = iter(list(parts(b)))

        def pick(part: Value) -> Value:
            other = next(chosen)
            if isinstance(part, EXPRESSIONS) and isinstance(other, EXPRESSIONS):
                return apply(ops.SELECT, (condition, part, other), span)
            return part

        return rebuild(a, pick)

    # -- loops -----------------------------------------------------------------------------------------

    def for_loop(self, node: ast.For, rest: Sequence[Item]) -> Flow:
        if node.orelse:
            self.fail(node, "expected a loop without `else`, e.g. set a variable before `break`")
        if isinstance(node.iter, ast.Call):
            callee = self.read(node.iter.func)
            if isinstance(callee, Static) and callee.value is dynamic_range:
                return self.counting_loop(node, node.iter)
            if isinstance(callee, Static) and callee.value is range:
                for argument in node.iter.args:
                    if not isinstance(value := self.read(argument), Static):
                        self.fail(argument, f"expected compile-time ints in `range`, found {describe(value)}, "
                                            "e.g. `for i in dynamic_range(U32(0), n):`")  # fmt: skip
        return self.unrolled(node, self.read(node.iter), rest)

    def unrolled(self, node: ast.For, iterable: Value, rest: Sequence[Item]) -> Flow:
        span = self.source.span(node)
        if isinstance(iterable, TupleValue):
            values: list[Value] = list(iterable.items)
        elif isinstance(iterable, Static) and isinstance(iterable.value, Iterable):
            values = [of_object(item, span) for item in iterable.value]
        else:
            self.fail(node.iter, f"expected something to loop over, found {describe(iterable)}, e.g. `range(8)`")

        def step(value: Value) -> Callable[[], Flow]:
            def bind() -> Flow:
                self.assign(node.target, value)
                return Flow.FALLS

            return bind

        if escapes(node):  # each round is what follows the one before, for the paths that have not returned
            if any(isinstance(inner, ast.Continue) for inner in ast.walk(node)):
                self.fail(node, "expected `continue` or `return` in one unrolled loop, not both, e.g. an `if` around the rest")
            items: list[Item] = []
            for value in values:
                items += [step(value), *node.body]
            return self.block([*items, *rest])
        for value in values:
            step(value)()
            self.loops.append(False)
            self.block(node.body)
            self.loops.pop()
        return Flow.FALLS

    def counting_loop(self, node: ast.For, call: ast.Call) -> Flow:
        span = self.source.span(node)
        if not 2 <= len(call.args) <= 3 or call.keywords:
            self.fail(call, "expected start, stop and perhaps step, e.g. `dynamic_range(U32(0), n)`")
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "expected a name to count with, e.g. `for i in dynamic_range(U32(0), n):`")
        bounds = [self.builder.hold("bound", self.operand(argument, Type.U32), span) for argument in call.args]
        step = bounds[2] if len(bounds) == 3 else ir.Const(1, Type.U32, span)
        if isinstance(step, ir.Const) and step.value == 0:
            self.fail(call, "expected a step of at least 1, e.g. `dynamic_range(U32(0), n, U32(2))`")
        variable = self.builder.variable(node.target.id, Type.U32, fixed=True)
        body = self.loop_body(node, {node.target.id: ir.Read(variable, span)})
        self.builder.emit(ir.For(variable, bounds[0], bounds[1], step, body, span))
        return Flow.FALLS

    def while_loop(self, node: ast.While, rest: Sequence[Item]) -> Flow:
        span = self.source.span(node)
        if node.orelse:
            self.fail(node, "expected a loop without `else`, e.g. set a variable before `break`")
        with self.builder.nested() as head:
            condition = self.condition(node.test)
        body = self.loop_body(node, {})
        self.builder.emit(ir.While(tuple(head), condition, body, span))
        return self.block(rest)

    def loop_body(self, node: ast.For | ast.While, bound: dict[str, Value]) -> ir.Block:
        """A run-time loop's body: names it makes end with it; compile-time values may not change in it."""
        before = dict(self.names)
        self.names.update(bound)
        self.loops.append(True)
        with self.builder.nested() as block:
            self.block(node.body)
        self.loops.pop()
        for name, value in before.items():
            if name not in bound and self.names.get(name, value) is not value:
                self.fail(node, f"expected {name!r} to be a run-time value, for the loop changes it, e.g. `{name} = U32(0)`")
        self.names = before
        return tuple(block)


def _as_load(target: ast.expr) -> ast.expr:
    """The target of `x += 1`, to be read."""
    match target:
        case ast.Name(id=name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Subscript(value=value, slice=index):
            return ast.copy_location(ast.Subscript(value, index, ast.Load()), target)
        case _:
            return target


def _joined(then: dict[str, Value], otherwise: dict[str, Value]) -> dict[str, Value]:
    """The names after a branch: those that both paths have set."""
    names: dict[str, Value] = {}
    for name in then.keys() & otherwise.keys():
        a, b = then[name], otherwise[name]
        if a is b or a == b:
            names[name] = a
        else:
            names[name] = Undecided(f"expected one value of {name!r} behind the branch; its compile-time value differs "
                                    f"between the paths, e.g. `{name} = U32(0)` before it")  # fmt: skip
    return names
