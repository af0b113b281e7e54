"""Scope analysis: which variables can be declared where they are set, as a single assignment dominates all reads.
Control flow is structured, so dominance is lexical: a statement dominates those after it in its block, and all blocks
inside these."""

from __future__ import annotations

from collections import Counter

from .. import ir
from .walk import blocks_of, expressions_of, variable_set_by, variables_in


class Scopes:
    """A program's variables, by how they can be declared."""

    def __init__(self, program: ir.Program) -> None:
        self._times_set: Counter[ir.Variable] = Counter()
        self._counters: set[ir.Variable] = set()  # set by a For
        self._assigned: set[ir.Variable] = set()  # set by another statement
        self._read: set[ir.Variable] = set()
        self._read_outside: set[ir.Variable] = set()  # where no statement that sets them dominates
        self._block(program.body, set())
        inside = self._times_set.keys() - self._read_outside
        once = {variable for variable in inside if self._times_set[variable] == 1}
        self.settled = once - self._counters  # set once, by a statement that dominates all reads
        self.counters = (self._counters - self._assigned) & inside  # loop variables, read in their loops only
        self.unread = frozenset(program.variables) - self._read - self._counters  # dead: set and never read

    @property
    def inner(self) -> frozenset[ir.Variable]:
        """The variables that need no declaration at the top of the function."""
        return self.unread | self.settled | self.counters

    def _block(self, block: ir.Block, visible: set[ir.Variable]) -> None:
        """`visible` are the variables set further up, in this block or around it."""
        for statement in block:
            match statement:
                case ir.While():  # targets write the head, the test and the body as one block
                    within = set(visible)
                    self._block(statement.head, within)
                    self._reads(statement, within)
                    self._block(statement.body, within)
                case ir.For():
                    self._reads(statement, visible)
                    within = set(visible)
                    self._sets(statement.variable, self._counters, within)  # at the top of the loop's own block
                    self._block(statement.body, within)
                case _:
                    self._reads(statement, visible)
                    if (variable := variable_set_by(statement)) is not None:
                        self._sets(variable, self._assigned, visible)
                    for inner in blocks_of(statement):
                        self._block(inner, set(visible))

    def _sets(self, variable: ir.Variable, by: set[ir.Variable], visible: set[ir.Variable]) -> None:
        self._times_set[variable] += 1
        by.add(variable)
        visible.add(variable)

    def _reads(self, statement: ir.Statement, visible: set[ir.Variable]) -> None:
        read = {variable for expression in expressions_of(statement) for variable in variables_in(expression)}
        self._read |= read
        self._read_outside |= read - visible
