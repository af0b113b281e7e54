"""Loop unrolling: fully unrolls counted loops that index register arrays.

GPU compilers keep an array in registers only if all its indices are constants; else it goes to memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...kernel import ir
from ...kernel.passes.walk import replaced, rewritten, statements_in, variables_in, variables_set_in
from ...types.layout import Type

_MOST_ROUNDS = 64
_MOST_STATEMENTS = 4096  # of one unrolled loop


def unrolled(program: ir.Program) -> ir.Program:
    """The program with loops over register arrays unrolled."""
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
    """The values of the variable of a loop to unroll: constant bounds, few rounds, no break. Else None."""
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
    """Whether the loop's variable, or a value derived from it in the loop, indexes a register array."""
    made = {loop.variable}
    for statement in statements_in(loop.body):
        if isinstance(statement, ir.Assign) and not made.isdisjoint(variables_in(statement.value)):
            made.add(statement.variable)
        if isinstance(statement, ir.Load | ir.Store) and statement.memory.space is ir.Space.REGISTERS:
            if not made.isdisjoint(variables_in(statement.index)):
                return True
    return False
