"""Uniformity (divergence) analysis: which values, and which control flow, are the same for all invocations of a
workgroup. A barrier or subgroup operation must be reached by all of them or by none, so every condition around it must
be uniform: computed from constants, parameters, lengths, and the group's id and size. Loaded values, the lane and the
local id vary, and so does all that depends on these by data or control flow. WGSL requires this, and targets that run a
workgroup as a loop over its invocations need it to split the body at barriers. Computed as a fixed point."""

from __future__ import annotations

from .. import ir
from ..span import Span, expected
from .walk import blocks_of, expressions_of, nodes_in, variable_set_by

_UNIFORM_BUILTINS = frozenset(
    {ir.Builtin.GROUP_ID, ir.Builtin.GROUP_SIZE, ir.Builtin.NUM_GROUPS, ir.Builtin.SUBGROUP_SIZE}
)


class Uniformity:
    """The variables of a program whose values may differ between the invocations of a workgroup. The program is walked
    until nothing is added: a variable that varies may make others vary that are set earlier in a loop."""

    def __init__(self, program: ir.Program) -> None:
        self.varying: set[ir.Variable] = set()
        self.divergent: list[tuple[ir.Barrier | ir.Subgroup, Span]] = []  # with where control flow diverged (`cause`)
        self._broken: dict[int, Span] = {}  # loops with a divergent break, by id
        known = -1
        while known < len(self.varying) + len(self._broken):
            known = len(self.varying) + len(self._broken)
            self.divergent.clear()
            self._block(program.body, None, 0)

    def of(self, expression: ir.Expression) -> bool:
        """Whether an expression is the same for all invocations of a workgroup."""
        return not any(
            (isinstance(node, ir.Read) and node.variable in self.varying)
            or (isinstance(node, ir.BuiltinValue) and node.builtin not in _UNIFORM_BUILTINS)
            for node in nodes_in(expression)
        )

    def _block(self, block: ir.Block, cause: Span | None, loop: int) -> None:
        """`loop` is the innermost one around the block, by id."""
        for statement in block:
            variable = variable_set_by(statement)
            if variable is not None and not self._sets_uniformly(statement, cause):
                self.varying.add(variable)
            match statement:
                case ir.Barrier() | ir.Subgroup() if cause is not None:
                    self.divergent.append((statement, cause))
                case ir.Break() if cause is not None:
                    self._broken.setdefault(loop, cause)
                case ir.If() | ir.For() | ir.Loop():
                    inside = self._cause_inside(statement, cause)
                    for inner in blocks_of(statement):
                        self._block(inner, inside, loop if isinstance(statement, ir.If) else id(statement))
                case _:
                    pass

    def _sets_uniformly(self, statement: ir.Statement, cause: Span | None) -> bool:
        """Whether the variable that a statement sets is uniform afterwards."""
        match statement:
            case ir.Assign():
                return cause is None and self.of(statement.value)
            case ir.Load() if statement.uniform:
                if not self.of(statement.index):
                    expected(statement.span, "an index that is the same for all, e.g. `0`")
                return True
            case ir.For():
                return self._cause_inside(statement, cause) is None
            case _:
                return False

    def _cause_inside(self, statement: ir.If | ir.For | ir.Loop, cause: Span | None) -> Span | None:
        """Where control flow diverged for the blocks inside: further out, here, or by an earlier iteration's break."""
        if cause is not None:
            return cause
        if all(map(self.of, expressions_of(statement))):
            return self._broken.get(id(statement))
        return statement.span


def check_uniform(program: ir.Program) -> Uniformity:
    """Analyses a program. Raises KernelError for a barrier or subgroup operation in divergent control flow."""
    found = Uniformity(program)
    for statement, cause in found.divergent:
        what = "barrier" if isinstance(statement, ir.Barrier) else f"subgroup operation ({statement.op.value})"
        where = f"line {cause.line}" if cause.file == statement.span.file else str(cause)
        expected(
            statement.span, f"a {what} that all invocations of the workgroup reach, but the condition in {where} "
            f"may differ between them (`{cause.text}`), e.g. take the {what} out of it and leave only the guarded "
            "work inside",
        )  # fmt: skip
    return found
