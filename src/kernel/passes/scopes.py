"""Scope analysis: which variables a single definition dominates, so that targets can declare them where they are set.
Control flow is structured, so dominance is lexical: a statement dominates what stands below it in its own block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import attrs

from .. import ir
from .walk import blocks_of, expressions_of, variable_set_by, variables_in


@attrs.frozen
class Scopes:
    """A program's variables, by how they can be declared."""

    settled: frozenset[ir.Variable]  # set once, and that dominates all reads
    counters: frozenset[ir.Variable]  # loop variables, used in their loops only
    unread: frozenset[ir.Variable]  # dead: set and never read

    @property
    def inner(self) -> frozenset[ir.Variable]:
        """Those that need no declaration at the top of the function."""
        return self.settled | self.counters | self.unread


def scopes_of(program: ir.Program) -> Scopes:
    """Analyses a program in one walk."""
    survey = _Survey()
    survey.block(program.body)
    inside = survey.times_set.keys() - survey.read_outside
    once = {variable for variable in inside if survey.times_set[variable] == 1}
    return Scopes(
        settled=frozenset(once - survey.counters),
        counters=frozenset((survey.counters - survey.assigned) & inside),
        unread=frozenset(set(program.variables) - survey.read - survey.counters),
    )


class _Survey:
    def __init__(self) -> None:
        self.times_set: Counter[ir.Variable] = Counter()
        self.read: set[ir.Variable] = set()
        self.read_outside: set[ir.Variable] = set()  # where no statement that sets them dominates
        self.counters: set[ir.Variable] = set()  # set by a For
        self.assigned: set[ir.Variable] = set()  # set by another statement
        self._visible: set[ir.Variable] = set()  # set further up, in this block or around it

    def block(self, block: ir.Block) -> None:
        for statement in block:
            match statement:
                case ir.While():
                    with self._scope():  # targets write the head, the test and the body as one block
                        self.block(statement.head)
                        self._reads(statement)
                        self.block(statement.body)
                case ir.For():
                    self._reads(statement)
                    with self._scope():  # the counter is set at the top of the loop's own block
                        self._sets(statement.variable, self.counters)
                        self.block(statement.body)
                case _:
                    self._reads(statement)
                    if (variable := variable_set_by(statement)) is not None:
                        self._sets(variable, self.assigned)
                    for inner in blocks_of(statement):
                        with self._scope():
                            self.block(inner)

    @contextmanager
    def _scope(self) -> Generator[None]:
        around, self._visible = self._visible, set(self._visible)
        yield
        self._visible = around

    def _sets(self, variable: ir.Variable, by: set[ir.Variable]) -> None:
        self.times_set[variable] += 1
        by.add(variable)
        self._visible.add(variable)

    def _reads(self, statement: ir.Statement) -> None:
        read = {variable for expression in expressions_of(statement) for variable in variables_in(expression)}
        self.read |= read
        self.read_outside |= read - self._visible
