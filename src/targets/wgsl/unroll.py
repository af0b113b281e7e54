"""Loops over registers written out, for compilers that would keep an array in memory to index it in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...kernel import ir
from ...kernel.passes.walk import replaced, rewritten, statements_in, variables_in, variables_set_in
from ...types.layout import Type

_MOST_ROUNDS = 64
_MOST_STATEMENTS = 4096  # of one loop, written out


def unrolled(program: ir.Program) -> ir.Program:
    """The program without counted loops that index registers by their variable."""
    return attrs.evolve(program, body=rewritten(program.body, _statement))


def _statement(statement: ir.Statement) -> Iterator[ir.Statement]:
    rounds = _rounds(statement) if isinstance(statement, ir.For) else None
    if not isinstance(statement, ir.For) or rounds is None or len(rounds) * _size(statement.body) > _MOST_STATEMENTS:
        yield statement
        return
    for value in rounds:
        number = ir.Const(value, Type.U32, statement.span)
        yield from replaced(statement.body, statement.variable, number)
        yield ir.Assign(statement.variable, number, statement.span)


def _rounds(loop: ir.For) -> range | None:
    """The values of a loop's variable that indexes registers, if they are known, few, and all come to pass."""
    start, stop, step = loop.start, loop.stop, loop.step
    if not (isinstance(start, ir.Const) and isinstance(stop, ir.Const) and isinstance(step, ir.Const)):
        return None
    rounds = range(int(start.value), int(stop.value), int(step.value))
    leaves = any(isinstance(statement, ir.Break) for statement in statements_in(loop.body))
    if leaves or loop.variable in variables_set_in(loop.body) or len(rounds) > _MOST_ROUNDS:
        return None
    return rounds if _indexes_registers(loop) else None


def _size(block: ir.Block) -> int:
    return sum(1 for _ in statements_in(block))


def _indexes_registers(loop: ir.For) -> bool:
    """Whether the loop's variable, or what is made of it inside, is an index of registers."""
    made = {loop.variable}
    for statement in statements_in(loop.body):
        if isinstance(statement, ir.Assign) and not made.isdisjoint(variables_in(statement.value)):
            made.add(statement.variable)
        if isinstance(statement, ir.Load | ir.Store) and statement.memory.space is ir.Space.REGISTERS:
            if not made.isdisjoint(variables_in(statement.index)):
                return True
    return False
