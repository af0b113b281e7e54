"""Reader, part 3: control flow. Compile-time branches are taken and `range` loops unrolled; others become IR.

The IR has no jumps but `Break`. So the statements after an `if` in which one side returns or continues (`rest`) are
read as a part of the other side. Where several sides fall through, that would read them several times, and nesting is
limited too: then the jump sets a Bool variable (LeftFlag), and the statements after it are read once, in an `if not
left`.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, Flag, auto
from functools import partial, reduce
from itertools import islice
from typing import TypeAlias, cast

import attrs

from ..types import ops
from ..types.intrinsics import dynamic_range
from ..types.layout import Type
from . import ir, messages
from .builder import MOST_ITERATIONS, KernelBuilder, apply
from .calls import CallReader
from .compile_time import evaluated, require_numbers
from .memories import operand
from .messages import describe
from .names import Bound, held, names_after
from .operators import require_plain_equality
from .passes.walk import leaves_loop
from .source import Source, escapes, jumps, paths_through
from .values import Value, class_behind, enum_number, is_known, is_tuple, lift, of_object

# An item of a block: a statement, or an action between statements (an unrolled loop binds its variable).
Item: TypeAlias = "ast.stmt | Callable[[], Flow]"
Case: TypeAlias = tuple[Sequence[Enum], list[ast.stmt]]  # the members of an enum, and what is done for them


_DEEP = 16  # nesting of branches from which on the rest of a block after an early return is guarded by a LeftFlag


class Flow(Enum):
    """How control leaves a block."""

    FALLS = auto()  # on some path it falls through to the next statement
    LEAVES = auto()  # on every path by a return, break or continue


@attrs.define
class Loop:
    at_run_time: bool
    continued: list[Bound]  # the names at each `continue`


@attrs.define
class LeftFlag:
    """A Bool variable that is true once a jump has left the block that is being read."""

    variable: ir.Variable
    loops: int  # the number of loops around the block: a `continue` of a loop inside it does not leave it
    is_set: bool = False


class ControlReader(CallReader, ABC):
    """Branches and loops in one inlined function."""

    def __init__(self, builder: KernelBuilder, source: Source) -> None:
        super().__init__(builder, source)
        self.loops: list[Loop] = []  # enclosing loops, the innermost last
        self.left_flags: list[LeftFlag] = []  # of enclosing branches

    @abstractmethod
    def statement(self, node: ast.stmt, rest: Sequence[Item]) -> Flow: ...

    @abstractmethod
    def assign(self, target: ast.expr, value: Value) -> None: ...

    def block(self, items: Sequence[Item]) -> Flow:
        for position, item in enumerate(items):
            if isinstance(item, ast.stmt) and escapes(item):
                rest, paths = items[position + 1 :], paths_through(item)
                if rest and (paths > 1 or (paths and self.builder.depth >= _DEEP)):
                    return self.block_with_flag(items[position:], item)
                return self.statement(item, rest)
            flow = self.statement(item, ()) if isinstance(item, ast.stmt) else item()
            if flow is Flow.LEAVES:
                return flow
        return Flow.FALLS

    def branch(self, node: ast.stmt, condition: ir.Expression, then: Sequence[Item], otherwise: Sequence[Item]) -> Flow:
        if isinstance(condition, ir.Const):
            return self.block(then if condition.value else otherwise)
        span = self.span(node)
        condition = self.builder.hold("condition", condition, span)
        names, before = self.names, dict(self.names.values)
        with self.builder.nested() as first:
            flow_then, names_then = self.block(then), names.values
        names.values = before
        with self.builder.nested() as second:
            flow_otherwise = self.block(otherwise)
        if flow_otherwise is Flow.LEAVES:
            names.values = names_then
        elif flow_then is Flow.FALLS:
            names.join((first, names_then), (second, names.values), span)
        self.builder.emit(ir.If(condition, tuple(first), tuple(second), span))
        return Flow.LEAVES if flow_then is flow_otherwise is Flow.LEAVES else Flow.FALLS

    def block_with_flag(self, items: Sequence[Item], node: ast.stmt) -> Flow:
        """Reads a block's items, from `node` on, with a LeftFlag: after an item with a jump the next ones, up to
        another such item, are read inside `if not left`. Read as part of each path, they would be read twice after one
        branch, four times after two, and so on."""
        span, flag = self.span(node), LeftFlag(self.builder.variable("left", Type.BOOL), len(self.loops))
        self.builder.emit(ir.Assign(flag.variable, ir.Const(False, Type.BOOL, span), span))
        self.left_flags.append(flag)
        flow, part = Flow.FALLS, list[Item]()
        for number, item in enumerate(items, 1):
            part.append(partial(self.statement, item, ()) if isinstance(item, ast.stmt) else item)
            may_leave = isinstance(item, ast.stmt) and escapes(item)
            if not may_leave and number < len(items):
                continue
            if flag.is_set:
                stays = apply(ops.INVERT, (ir.Read(flag.variable, span),), span)
                flow = self.branch(node, stays, part, [lambda: Flow.LEAVES])
            else:
                flow = self.block(part)
            if flow is Flow.LEAVES:
                break
            part = []
        self.left_flags.pop()
        return flow

    def set_left_flags(self, node: ast.stmt, loops: int = 0) -> None:
        """Emits the assignments to all flags of the blocks that a jump leaves: for a `continue`, `loops` is the number
        of loops around it; a `return` leaves all blocks."""
        span = self.span(node)
        for flag in self.left_flags:
            if flag.loops >= loops:
                flag.is_set = True
                self.builder.emit(ir.Assign(flag.variable, ir.Const(True, Type.BOOL, span), span))

    def match(self, node: ast.Match, rest: Sequence[Item]) -> Flow:
        """`match` on an enum, which must name every member."""
        subject = self.read(node.subject)
        cls = class_behind(subject)
        if cls is None or not issubclass(cls, Enum) or not cls.__members__:
            self.expected(node, f"an enum to match, found {describe(subject)}, e.g. `if x == 1:` for a number")
        if issubclass(cls, Flag):  # of which one may be several members, or none
            self.expected(node, f"an enum to match, found {cls.__name__}, which is a Flag, e.g. `if x.value & 1 != 0:`")
        require_plain_equality(cls, self.span(node))
        cases: list[Case] = []
        covered: set[Enum] = set()
        for case in node.cases:
            if not covered.issuperset(members := self.members(case, cls)):  # else nothing is left for it: `case _:`
                cases.append((members, case.body))
                covered.update(members)
        missing = [member for member in cls if member not in covered]
        if missing:
            name = f"{cls.__name__}.{missing[0].name}"
            self.expected(
                node, f"a case for every member of {cls.__name__}, found none for {name}, e.g. `case {name}:`"
            )
        return self.cases(node, subject, cases, rest)

    def cases(self, node: ast.Match, subject: Value, cases: Sequence[Case], rest: Sequence[Item]) -> Flow:
        (members, body), *others = cases
        if not others or (is_known(subject) and subject in members):
            return self.block([*body, *rest])
        if is_known(subject):
            return self.cases(node, subject, others, rest)
        span, code = self.span(node), enum_number(subject)
        assert code is not None
        require_numbers([lift(member, span) for member in members], span)
        tests = [apply(ops.EQ, (code, ir.Const(m.value, Type.U32, span)), span) for m in members]
        condition = reduce(lambda found, test: apply(ops.OR, (found, test), span), tests)
        return self.branch(node, condition, [*body, *rest], [lambda: self.cases(node, subject, others, rest)])

    def members(self, case: ast.match_case, cls: type[Enum]) -> list[Enum]:
        if case.guard is not None:
            self.expected(case.pattern, "a case without a guard, e.g. an `if` inside it")
        patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
        found: list[Enum] = []
        for pattern in patterns:
            if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
                return list(cls)
            member = self.read(pattern.value) if isinstance(pattern, ast.MatchValue) else None
            if not isinstance(member, cls):
                self.expected(pattern, f"a member of {cls.__name__}, e.g. `case {messages.element_of(cls, None)}:`")
            found.append(member)
        return found

    def for_loop(self, node: ast.For, rest: Sequence[Item]) -> Flow:
        if isinstance(node.iter, ast.Call) and self.read(node.iter.func) is dynamic_range:
            self.counting_loop(node, node.iter)
            return self.block(rest)
        return self.unrolled(node, self.read(node.iter), rest)

    def unrolled(self, node: ast.For, iterable: Value, rest: Sequence[Item]) -> Flow:
        span = self.span(node)
        if is_tuple(iterable) or (is_known(iterable) and hasattr(iterable, "__iter__")):
            # at most one more than can be unrolled: the iterable may be infinite
            iterated = cast("Iterable[object]", iterable)
            items = evaluated(self.span(node.iter), lambda: list(islice(iterated, MOST_ITERATIONS + 1)))
            # evaluated before the loop: an iteration may assign the names they were read from
            values = [held(self.builder, "item", of_object(item, span), span) for item in cast("list[object]", items)]
            if len(values) <= MOST_ITERATIONS:
                self.builder.captures.call(tuple, iterable)
        else:
            example = messages.loop_over(iterable)
            self.expected(node.iter, f"something to loop over, found {describe(iterable)}, e.g. `{example}`")

        rounds = len(values)
        if isinstance(iterable, range) and iterable:  # whose `len` raises beyond sys.maxsize
            rounds = (iterable[-1] - iterable[0]) // iterable.step + 1
        with self.builder.unrolling(rounds, span):
            return self.unrolled_iterations(node, values, rest)

    def unrolled_iterations(self, node: ast.For, values: Sequence[Value], rest: Sequence[Item]) -> Flow:
        """Reads an unrolled loop's iterations, one after another."""
        if not jumps(node.body):  # a sequence of statements, in which a `return` ends the rest
            items: list[Item] = []
            for value in values:
                items += [partial(self.start_iteration, node, value), *node.body]
            return self.block([*items, *rest])
        if escapes(node):
            self.expected(node, "no `break` or `continue` beside a `return` in an unrolled loop, e.g. an `if` instead")
        self.names.lift_changed(node, self.span(node))
        for value in values:
            self.start_iteration(node, value)
            loop = Loop(at_run_time=False, continued=[])
            self.loops.append(loop)
            reaches_end = self.block(node.body) is Flow.FALLS
            self.loops.pop()
            ends = [*loop.continued, *([self.names.values] if reaches_end else [])]
            self.names.values = reduce(names_after, ends)
        return Flow.FALLS

    def start_iteration(self, node: ast.For, value: Value) -> Flow:
        self.builder.count_iteration(self.span(node))
        self.assign(node.target, value)
        return Flow.FALLS

    def counting_loop(self, node: ast.For, call: ast.Call) -> None:
        span = self.span(node)
        if not 2 <= len(call.args) <= 3 or call.keywords:
            self.expected(call, "start, stop and perhaps step, e.g. `dynamic_range(U32(0), n)`")
        if not isinstance(node.target, ast.Name):
            self.expected(node.target, "a name to count with, e.g. `for i in dynamic_range(U32(0), n):`")
        bounds = [self.builder.hold("bound", operand(self.given(one), Type.U32), span) for one in call.args]
        step = bounds[2] if len(bounds) == 3 else ir.Const(1, Type.U32, span)
        if isinstance(step, ir.Const) and step.value == 0:
            self.expected(call, "a step of at least 1, e.g. `dynamic_range(U32(0), n, U32(2))`")
        variable = self.builder.ssa_variable(node.target.id, Type.U32)
        self.names.forget_changed(node, span)
        body = self.loop_body(node, {node.target.id: ir.Read(variable, span)})
        self.builder.emit(ir.For(variable, bounds[0], bounds[1], step, body, span))

    def while_loop(self, node: ast.While, rest: Sequence[Item]) -> Flow:
        span = self.span(node)
        self.names.forget_changed(node, span)
        with self.builder.nested() as head:
            ends = apply(ops.INVERT, (self.condition(node.test),), span)
            if not isinstance(ends, ir.Const) or ends.value:
                self.builder.emit(ir.If(ends, (ir.Break(span),), (), span))
        body = (*head, *self.loop_body(node, {}))
        if not leaves_loop(body):
            self.expected(node, "a loop that ends, by its condition or a `break`, e.g. `while i < n:`")
        self.builder.emit(ir.Loop(body, span))
        return self.block(rest)

    def loop_body(self, node: ast.For | ast.While, bound: Bound) -> ir.Block:
        """Reads a run-time loop's body. Names first assigned in it are not visible after it."""
        before = dict(self.names.values)
        self.names.values.update(bound)
        self.loops.append(Loop(at_run_time=True, continued=[]))
        with self.builder.nested() as block:
            self.block(node.body)
        self.loops.pop()
        self.names.values = before
        return tuple(block)

    def break_loop(self, node: ast.Break) -> Flow:
        if not self.loops or not self.loops[-1].at_run_time:
            self.expected(node, "`break` in a run-time loop; an unrolled one has no end to jump to, "
                            "e.g. `for i in dynamic_range(U32(0), n):`")  # fmt: skip
        self.builder.emit(ir.Break(self.span(node)))
        return Flow.LEAVES
