"""Uniformity (divergence) analysis: which values and which control flow are the same for a whole workgroup. A barrier
or subgroup operation must be reached by all invocations or by none, so every condition around it must be uniform: made
of constants, parameters, lengths and the workgroup's own numbers. What is loaded varies, as do the lane and the local
id, and all that depends on these by data or control flow. WGSL demands this; targets that run a workgroup as loops over
its invocations need it to split the body at barriers. Computed as a fixed point."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from .. import ir
from ..span import KernelError, Span
from .walk import blocks_of, expressions_of, nodes_in, variable_set_by

_UNIFORM_BUILTINS = frozenset(
    {ir.Builtin.GROUP_ID, ir.Builtin.GROUP_SIZE, ir.Builtin.NUM_GROUPS, ir.Builtin.SUBGROUP_SIZE}
)


@attrs.frozen
class Uniformity:
    """The result for a program: the variables whose values may differ between invocations."""

    varying: frozenset[ir.Variable]

    def of(self, expression: ir.Expression) -> bool:
        """Whether an expression is the same for all invocations of a workgroup."""
        return _is_uniform(expression, self.varying)


def check_uniform(program: ir.Program) -> Uniformity:
    """Analyses a program. Raises KernelError for a barrier or subgroup operation in divergent control flow."""
    analysis = _Analysis()
    while analysis.run(program.body):
        pass  # to a fixed point: a varying variable may make others vary earlier in a loop
    for statement, cause in analysis.divergent:
        raise KernelError(statement.span, _complaint(statement, cause))
    return Uniformity(frozenset(analysis.varying))


def _is_uniform(expression: ir.Expression, varying: Collection[ir.Variable]) -> bool:
    for node in nodes_in(expression):
        if isinstance(node, ir.Read) and node.variable in varying:
            return False
        if isinstance(node, ir.Identity) and node.builtin not in _UNIFORM_BUILTINS:
            return False
    return True


class _Analysis:
    """A walk over the program, to be repeated until it finds nothing new. `cause` is where control flow diverged."""

    def __init__(self) -> None:
        self.varying: set[ir.Variable] = set()
        self.broken: dict[int, Span] = {}  # loops with a divergent break, by id
        self.divergent: list[tuple[ir.Barrier | ir.Subgroup, Span]] = []
        self._loops: list[int] = []  # enclosing loops, by id

    def run(self, body: ir.Block) -> bool:
        """One walk. Whether it found something new."""
        before = len(self.varying) + len(self.broken)
        self.divergent.clear()
        self._block(body, None)
        return len(self.varying) + len(self.broken) > before

    def _block(self, block: ir.Block, cause: Span | None) -> None:
        for statement in block:
            self._statement(statement, cause)

    def _statement(self, statement: ir.Statement, cause: Span | None) -> None:
        variable = variable_set_by(statement)
        if variable is not None and not self._sets_uniformly(statement, cause):
            self.varying.add(variable)
        match statement:
            case ir.Barrier() | ir.Subgroup() if cause is not None:
                self.divergent.append((statement, cause))
            case ir.Break() if cause is not None and self._loops:
                self.broken.setdefault(self._loops[-1], cause)
            case ir.If() | ir.For() | ir.While():
                inside = self._cause_inside(statement, cause)
                loops = [] if isinstance(statement, ir.If) else [id(statement)]
                self._loops += loops
                for block in blocks_of(statement):
                    self._block(block, inside)
                del self._loops[len(self._loops) - len(loops) :]
            case _:
                pass

    def _sets_uniformly(self, statement: ir.Statement, cause: Span | None) -> bool:
        """Whether the variable that a statement sets is uniform afterwards."""
        match statement:
            case ir.Assign():
                return cause is None and _is_uniform(statement.value, self.varying)
            case ir.Load() if statement.uniform:
                if not _is_uniform(statement.index, self.varying):
                    raise KernelError(statement.span, "expected an index that is the same for all, e.g. `0`")
                return True
            case ir.For():
                return self._cause_inside(statement, cause) is None
            case _:
                return False

    def _cause_inside(self, statement: ir.If | ir.For | ir.While, cause: Span | None) -> Span | None:
        """Where control flow diverged for the blocks inside: further out, here, or by an earlier iteration's break."""
        if cause is not None:
            return cause
        if all(_is_uniform(expression, self.varying) for expression in expressions_of(statement)):
            return self.broken.get(id(statement))
        return statement.span


def _complaint(statement: ir.Barrier | ir.Subgroup, cause: Span) -> str:
    what = "barrier" if isinstance(statement, ir.Barrier) else f"subgroup operation ({statement.op.value})"
    where = f"line {cause.line}" if cause.file == statement.span.file else str(cause)
    return (
        f"expected a {what} that all invocations of the workgroup reach, "
        f"but the condition in {where} may differ between them (`{cause.text}`), "
        f"e.g. take the {what} out of it and leave only the guarded work inside"
    )
