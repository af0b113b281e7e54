"""Scope analysis: which variables a block assigns, and which it reads where no assignment is sure; so, which variables
can be declared where they are set, as a single assignment dominates all reads. Control flow is structured, so dominance
is lexical: a statement dominates those after it in its block, and all blocks inside these."""

from __future__ import annotations

import attrs

from .. import ir
from .walk import assignments_in, blocks_of, variable_set_by, variables_read_by


@attrs.define
class Assignments:
    """Which variables a block assigns, and which it reads from outside. A loop may run zero times: what it assigns is
    not sure afterwards."""

    read: set[ir.Variable] = attrs.field(factory=set[ir.Variable])
    exposed: set[ir.Variable] = attrs.field(factory=set[ir.Variable])  # read where no assignment is sure
    assigned: set[ir.Variable] = attrs.field(factory=set[ir.Variable])  # on some path
    sure: set[ir.Variable] = attrs.field(factory=set[ir.Variable])  # on every path so far

    def block(self, block: ir.Block) -> None:
        for statement in block:
            read = variables_read_by(statement)
            self.read |= read
            self.exposed |= read - self.sure
            variable = variable_set_by(statement)
            given = set[ir.Variable]() if variable is None else {variable}
            self.assigned |= given
            ends = [self._inside(inner, given) for inner in blocks_of(statement)]
            if isinstance(statement, ir.If):
                then, otherwise = ends
                self.sure |= then & otherwise
            elif not isinstance(statement, ir.For):  # which sets its variable for its body alone
                self.sure |= given

    def _inside(self, block: ir.Block, given: set[ir.Variable]) -> set[ir.Variable]:
        """Walks a block that may be skipped; the result is what is sure at its end."""
        before, self.sure = self.sure, self.sure | given
        self.block(block)
        after, self.sure = self.sure, before
        return after


class Scopes:
    """A program's variables, by how they can be declared."""

    def __init__(self, program: ir.Program) -> None:
        found = Assignments()
        found.block(program.body)
        by_loops = {v: [isinstance(one, ir.For) for one in by] for v, by in assignments_in(program.body).items()}
        inside = {v: loops for v, loops in by_loops.items() if v not in found.exposed}
        self.settled = {v for v, loops in inside.items() if loops == [False]}  # set once, which dominates all reads
        self.counters = {v for v, loops in inside.items() if all(loops)}  # loop variables, read in their loops only
        counting = {v for v, loops in by_loops.items() if any(loops)}
        self.unread = frozenset(program.variables) - found.read - counting  # dead: set and never read
        inner = self.unread | self.settled | self.counters
        self.declared = [v for v in program.variables if v not in inner]  # at the top of the function
