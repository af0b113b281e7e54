"""Scope analysis: which variables a single definition dominates, so that targets can declare them where they are set.

Control flow is structured, so dominance is lexical: a statement dominates what stands below it in its own block.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from .. import ir
from .walk import blocks_of, expressions_of, variable_set_by, variables_in

# The path to a statement: (block, index in it) for each enclosing block, the outermost first.
_Path: TypeAlias = tuple[tuple[int, int], ...]


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
    survey.block(program.body, (), 0)
    once = {variable for variable, sets in survey.set_at.items() if len(sets) == 1}
    inside = {
        variable
        for variable, sets in survey.set_at.items()
        if all(any(_dominates(path, read) for path in sets) for read in survey.read_at.get(variable, ()))
    }
    counters = survey.counters - survey.assigned
    return Scopes(
        settled=frozenset((once & inside) - survey.counters),
        counters=frozenset(counters & inside),
        unread=frozenset(set(program.variables) - set(survey.read_at) - survey.counters),
    )


def _dominates(path: _Path, read: _Path) -> bool:
    """Whether a read is below a statement, in the statement's own block or nested in it."""
    depth = len(path) - 1
    return len(read) > depth and read[:depth] == path[:depth] and (
        read[depth][0] == path[depth][0] and read[depth][1] > path[depth][1]
    )  # fmt: skip


class _Survey:
    def __init__(self) -> None:
        self.set_at: dict[ir.Variable, list[_Path]] = {}
        self.read_at: dict[ir.Variable, list[_Path]] = {}
        self.counters: set[ir.Variable] = set()  # set by a For
        self.assigned: set[ir.Variable] = set()  # set by another statement
        self._blocks = 0

    def block(self, block: ir.Block, around: _Path, start: int, number: int | None = None) -> int:
        """Walks a block. With the `number` of another, it continues that one at index `start`."""
        if number is None:
            number = self._new_block()
        for position, statement in enumerate(block, start):
            self.statement(statement, (*around, (number, position)))
        return start + len(block)

    def _new_block(self) -> int:
        self._blocks += 1
        return self._blocks

    def statement(self, statement: ir.Statement, path: _Path) -> None:
        match statement:
            case ir.While():
                # Targets write the head, the test and the body as one block.
                number = self._new_block()
                position = self.block(statement.head, path, 0, number)
                self.read((statement.condition,), (*path, (number, position)))
                self.block(statement.body, path, position + 1, number)
            case ir.For():
                self.read(expressions_of(statement), path)
                # The counter is set at the top of the loop's own block, so it dominates the reads inside only.
                number = self._new_block()
                self.set_at.setdefault(statement.variable, []).append((*path, (number, 0)))
                self.counters.add(statement.variable)
                self.block(statement.body, path, 1, number)
            case _:
                self.read(expressions_of(statement), path)
                if (variable := variable_set_by(statement)) is not None:
                    self.set_at.setdefault(variable, []).append(path)
                    self.assigned.add(variable)
                for block in blocks_of(statement):
                    self.block(block, path, 0)

    def read(self, expressions: tuple[ir.Expression, ...], path: _Path) -> None:
        for variable in (v for expression in expressions for v in variables_in(expression)):
            self.read_at.setdefault(variable, []).append(path)
