"""Loops over registers written out, for compilers that would keep an array in memory to index it in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from .. import ir
from .uniform import variables_in
from .walk import statements_in

_MOST_ROUNDS = 64
_MOST_STATEMENTS = 4096  # of one loop, written out


def unrolled(program: ir.Program) -> ir.Program:
    """The program without counted loops that index registers by their variable."""
    return attrs.evolve(program, body=_block(program.body))


def _block(block: ir.Block) -> ir.Block:
    return tuple(after for statement in block for after in _statement(statement))


def _statement(statement: ir.Statement) -> Iterator[ir.Statement]:
    match statement:
        case ir.If():
            then, otherwise = _block(statement.then), _block(statement.otherwise)
            yield attrs.evolve(statement, then=then, otherwise=otherwise)
        case ir.While():
            yield attrs.evolve(statement, head=_block(statement.head), body=_block(statement.body))
        case ir.For():
            loop = attrs.evolve(statement, body=_block(statement.body))
            rounds = _rounds(loop)
            if rounds is None or not _indexes_registers(loop) or len(rounds) * _size(loop.body) > _MOST_STATEMENTS:
                yield loop
                return
            for value in rounds:
                yield ir.Assign(loop.variable, ir.Const(value, loop.variable.type, loop.span), loop.span)
                yield from loop.body
        case _:
            yield statement


def _rounds(loop: ir.For) -> range | None:
    """The values of the loop's variable, if they are known, few, and all come to pass."""
    start, stop, step = loop.start, loop.stop, loop.step
    if not (isinstance(start, ir.Const) and isinstance(stop, ir.Const) and isinstance(step, ir.Const)):
        return None
    rounds = range(int(start.value), int(stop.value), int(step.value))
    leaves = any(isinstance(statement, ir.Break) for statement in statements_in(loop.body))
    return None if leaves or len(rounds) > _MOST_ROUNDS else rounds


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
