"""Which variables of a program need no declaration: set once, and read only below that in the same scope."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from .. import ir
from .walk import blocks_of, expressions_of, variable_set_by, variables_in

# Where a statement stands: the blocks around it from the outside in, each with a position in it.
_Place: TypeAlias = tuple[tuple[int, int], ...]


@attrs.frozen
class Scopes:
    """`settled`: set once, and read only below that; `counters`: loop variables known to their loop alone; `unread`:
    nobody wants them."""

    settled: frozenset[ir.Variable]
    counters: frozenset[ir.Variable]
    unread: frozenset[ir.Variable]

    @property
    def inner(self) -> frozenset[ir.Variable]:
        """Those that need no declaration at the top."""
        return self.settled | self.counters | self.unread


def scopes_of(program: ir.Program) -> Scopes:
    """Looks at every statement once."""
    survey = _Survey()
    survey.block(program.body, (), 0)
    once = {variable for variable, places in survey.set_at.items() if len(places) == 1}
    inside = {
        variable
        for variable, places in survey.set_at.items()
        if all(any(_follows(read, place) for place in places) for read in survey.read_at.get(variable, ()))
    }
    counters = survey.counters - survey.assigned
    return Scopes(
        settled=frozenset((once & inside) - survey.counters),
        counters=frozenset(counters & inside),
        unread=frozenset(set(program.variables) - set(survey.read_at) - survey.counters),
    )


def _follows(read: _Place, place: _Place) -> bool:
    """Whether something read there stands below, in the block (or deeper) where `place` is."""
    depth = len(place) - 1
    return len(read) > depth and read[:depth] == place[:depth] and (
        read[depth][0] == place[depth][0] and read[depth][1] > place[depth][1]
    )  # fmt: skip


class _Survey:
    def __init__(self) -> None:
        self.set_at: dict[ir.Variable, list[_Place]] = {}
        self.read_at: dict[ir.Variable, list[_Place]] = {}
        self.counters: set[ir.Variable] = set()  # set by a loop
        self.assigned: set[ir.Variable] = set()  # set by something else
        self._blocks = 0

    def block(self, block: ir.Block, around: _Place, start: int, number: int | None = None) -> int:
        """Goes through a block; one with the `number` of another continues it at position `start`."""
        if number is None:
            number = self._new_block()
        for position, statement in enumerate(block, start):
            self.statement(statement, (*around, (number, position)))
        return start + len(block)

    def _new_block(self) -> int:
        self._blocks += 1
        return self._blocks

    def statement(self, statement: ir.Statement, place: _Place) -> None:
        match statement:
            case ir.While():
                # Written as one block: the head, the test, the body.
                number = self._new_block()
                position = self.block(statement.head, place, 0, number)
                self.read((statement.condition,), (*place, (number, position)))
                self.block(statement.body, place, position + 1, number)
            case ir.For():
                self.read(expressions_of(statement), place)
                # The counter is set at the head of the loop's own block: what reads it must stand inside.
                number = self._new_block()
                self.set_at.setdefault(statement.variable, []).append((*place, (number, 0)))
                self.counters.add(statement.variable)
                self.block(statement.body, place, 1, number)
            case _:
                self.read(expressions_of(statement), place)
                if (variable := variable_set_by(statement)) is not None:
                    self.set_at.setdefault(variable, []).append(place)
                    self.assigned.add(variable)
                for block in blocks_of(statement):
                    self.block(block, place, 0)

    def read(self, expressions: tuple[ir.Expression, ...], place: _Place) -> None:
        for variable in (v for expression in expressions for v in variables_in(expression)):
            self.read_at.setdefault(variable, []).append(place)
