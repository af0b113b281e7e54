"""Liveness: which variables a run of statements may read before it assigns them (upward-exposed reads)."""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...kernel.passes.walk import expressions_of, leaves_loop, variable_set_by, variables_in


@attrs.define
class Flow:
    """What one walk over a block sees. A loop may run zero times: what it assigns is not sure afterwards."""

    exposed: set[ir.Variable] = attrs.field(factory=set[ir.Variable])
    assigned: set[ir.Variable] = attrs.field(factory=set[ir.Variable])  # on some path
    sure: set[ir.Variable] = attrs.field(factory=set[ir.Variable])  # on every path so far

    def block(self, block: ir.Block) -> None:
        for statement in block:
            self._statement(statement)

    def _statement(self, statement: ir.Statement) -> None:
        if not isinstance(statement, ir.While):  # its condition comes after its head
            self._read(statement)
        match statement:
            case ir.If():
                then, otherwise = self._inside(statement.then), self._inside(statement.otherwise)
                self.sure |= then & otherwise
            case ir.For():
                self._inside(statement.body, statement.variable)
            case ir.While():
                before = set(self.sure)
                self.block(statement.head)
                self._read(statement)
                self._inside(statement.body)
                if leaves_loop(statement.head):
                    self.sure = before
            case _:
                if (variable := variable_set_by(statement)) is not None:
                    self._assign(variable)

    def _inside(self, block: ir.Block, *given: ir.Variable) -> set[ir.Variable]:
        """Walks a block that may be skipped; the result is what is sure at its end."""
        before, self.sure = self.sure, set(self.sure)
        for variable in given:
            self._assign(variable)
        self.block(block)
        after, self.sure = self.sure, before
        return after

    def _read(self, statement: ir.Statement) -> None:
        for expression in expressions_of(statement):
            self.exposed.update(v for v in variables_in(expression) if v not in self.sure)

    def _assign(self, variable: ir.Variable) -> None:
        self.assigned.add(variable)
        self.sure.add(variable)


def flow_of(block: ir.Block) -> Flow:
    flow = Flow()
    flow.block(block)
    return flow


def exposed_reads(block: ir.Block) -> set[ir.Variable]:
    """The variables whose value at the start of the block may be read in it."""
    return flow_of(block).exposed
