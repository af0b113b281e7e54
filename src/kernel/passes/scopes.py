"""Scope analysis: which variables can be declared where they are set, as a single assignment dominates all reads.
Control flow is structured, so dominance is lexical: a statement dominates those after it in its block, and all blocks
inside these."""

from __future__ import annotations

from collections.abc import Set

from .. import ir
from .walk import assignments_in, blocks_of, expressions_of, variable_set_by, variables_in


class Scopes:
    """A program's variables, by how they can be declared."""

    def __init__(self, program: ir.Program) -> None:
        self._read: set[ir.Variable] = set()
        self._read_outside: set[ir.Variable] = set()  # where no statement that sets them dominates
        self._block(program.body, set())
        by_loops = {v: [isinstance(one, ir.For) for one in by] for v, by in assignments_in(program.body).items()}
        inside = {v: loops for v, loops in by_loops.items() if v not in self._read_outside}
        self.settled = {v for v, loops in inside.items() if loops == [False]}  # set once, which dominates all reads
        self.counters = {v for v, loops in inside.items() if all(loops)}  # loop variables, read in their loops only
        counting = {v for v, loops in by_loops.items() if any(loops)}
        self.unread = frozenset(program.variables) - self._read - counting  # dead: set and never read

    @property
    def inner(self) -> frozenset[ir.Variable]:
        """The variables that need no declaration at the top of the function."""
        return self.unread | self.settled | self.counters

    def _block(self, block: ir.Block, visible: Set[ir.Variable | None]) -> None:
        """`visible` are the variables set further up, in this block or around it."""
        for statement in block:
            read = {variable for expression in expressions_of(statement) for variable in variables_in(expression)}
            self._read |= read
            self._read_outside |= read - visible
            inside = visible | {variable_set_by(statement)}
            for inner in blocks_of(statement):
                self._block(inner, inside)
            if not isinstance(statement, ir.For):  # which sets its variable for its body alone
                visible = inside
