"""Which values and which control flow are the same for all invocations of a workgroup.

A barrier or a subgroup operation must be reached by all invocations or by none. Whether it is can be seen in
the source when every condition around it is uniform: made of constants, arguments, lengths and the numbers of
the workgroup. What is loaded, and what differs by lane or local id, is not (nor is what depends on it). A
target that runs a workgroup as loops over its invocations needs to know; WGSL demands it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from .. import ir
from ..span import KernelError, Span
from .walk import expressions_of

_UNIFORM_BUILTINS = frozenset(
    {ir.Builtin.GROUP_ID, ir.Builtin.GROUP_SIZE, ir.Builtin.NUM_GROUPS, ir.Builtin.SUBGROUP_SIZE}
)
_Loop: TypeAlias = ir.For | ir.While


@attrs.frozen
class Uniformity:
    """What was found out about a program: the variables whose value may differ between invocations."""

    varying: frozenset[ir.Variable]

    def of(self, expression: ir.Expression) -> bool:
        """Whether the value is the same for all invocations of a workgroup."""
        return _is_uniform(expression, self.varying)


def check_uniform(program: ir.Program) -> Uniformity:
    """The program's uniformity. Raises KernelError where some may miss a barrier or a subgroup operation."""
    analysis = _Analysis()
    while analysis.run(program.body):
        pass  # what one round found to vary may make more vary, above it in a loop
    for statement, cause in analysis.divergent:
        raise KernelError(statement.span, _complaint(statement, cause))
    return Uniformity(frozenset(analysis.varying))


def variables_in(expression: ir.Expression) -> Iterator[ir.Variable]:
    """The variables an expression reads."""
    match expression:
        case ir.Read():
            yield expression.variable
        case ir.Apply():
            for operand in expression.operands:
                yield from variables_in(operand)
        case _:
            pass


def _is_uniform(expression: ir.Expression, varying: set[ir.Variable] | frozenset[ir.Variable]) -> bool:
    match expression:
        case ir.Read():
            return expression.variable not in varying
        case ir.Identity():
            return expression.builtin in _UNIFORM_BUILTINS
        case ir.Apply():
            return all(_is_uniform(operand, varying) for operand in expression.operands)
        case ir.Const() | ir.Argument() | ir.Length():
            return True


class _Analysis:
    """One walk over the program, repeated until it finds nothing new. `cause` is where control came apart."""

    def __init__(self) -> None:
        self.varying: set[ir.Variable] = set()
        self.broken: dict[int, Span] = {}  # loops left by some invocations earlier than by others, by id
        self.divergent: list[tuple[ir.Barrier | ir.Subgroup, Span]] = []
        self._loops: list[_Loop] = []

    def run(self, body: ir.Block) -> bool:
        """Whether this round found something new."""
        before = len(self.varying) + len(self.broken)
        self.divergent.clear()
        self._block(body, None)
        return len(self.varying) + len(self.broken) > before

    def _block(self, block: ir.Block, cause: Span | None) -> None:
        for statement in block:
            self._statement(statement, cause)

    def _statement(self, statement: ir.Statement, cause: Span | None) -> None:
        match statement:
            case ir.Assign():
                if cause is not None or not _is_uniform(statement.value, self.varying):
                    self.varying.add(statement.variable)
            case ir.Load():
                if not statement.for_all:
                    self.varying.add(statement.variable)
                elif not _is_uniform(statement.index, self.varying):
                    raise KernelError(statement.span, "expected an index that is the same for all, e.g. `0`")
            case ir.Atomic():
                if statement.variable is not None:
                    self.varying.add(statement.variable)
            case ir.Subgroup():
                self.varying.add(statement.variable)
                if cause is not None:
                    self.divergent.append((statement, cause))
            case ir.Barrier():
                if cause is not None:
                    self.divergent.append((statement, cause))
            case ir.If():
                inside = self._branch(statement, cause)
                self._block(statement.then, inside)
                self._block(statement.otherwise, inside)
            case ir.For() | ir.While():
                self._loop(statement, cause)
            case ir.Break():
                if cause is not None and self._loops:
                    self.broken.setdefault(id(self._loops[-1]), cause)
            case ir.Store():
                pass

    def _loop(self, loop: _Loop, cause: Span | None) -> None:
        inside = self._branch(loop, cause)
        if inside is None:
            inside = self.broken.get(id(loop))
        if isinstance(loop, ir.For) and inside is not None:
            self.varying.add(loop.variable)
        self._loops.append(loop)
        if isinstance(loop, ir.While):
            self._block(loop.head, inside)
        self._block(loop.body, inside)
        self._loops.pop()

    def _branch(self, statement: ir.If | _Loop, cause: Span | None) -> Span | None:
        """Where control came apart for what is inside: further out, or here."""
        if cause is not None:
            return cause
        if all(_is_uniform(expression, self.varying) for expression in expressions_of(statement)):
            return None
        return statement.span


def _complaint(statement: ir.Barrier | ir.Subgroup, cause: Span) -> str:
    what = "barrier" if isinstance(statement, ir.Barrier) else f"subgroup operation ({statement.op.value})"
    where = f"line {cause.line}" if cause.file == statement.span.file else str(cause)
    return (
        f"expected a {what} that all invocations of the workgroup reach, "
        f"but the condition in {where} may differ between them (`{cause.text}`), "
        f"e.g. take the {what} out of it and leave only the guarded work inside"
    )
