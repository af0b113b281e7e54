"""A program that stays inside its arrays, and that can be stopped: by tests, where the launch does not rule it out.

What lies outside an array is not touched: a load from there gives 0, a store or an atomic does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import attrs

from ...types import ops
from ...types.layout import Type
from .. import ir
from ..span import Span
from .walk import blocks_of, statements_in, with_blocks

_LONG = 1 << 30  # statements of a workgroup: a second or so
_LONGEST_ROUND = 1 << 20  # statements: more are not told apart


def guarded(program: ir.Program, outside: Collection[int], asking: Mapping[int, int]) -> ir.Program:
    """The program with a test around each access in `outside`, and with the loops that ask whether to stop."""
    return _Guards(program, outside, asking).run() if outside or asking else program


def long_loops(program: ir.Program, rounds: Mapping[int, int]) -> dict[int, int]:
    """The loops that a workgroup may be at for seconds or for ever; for each, the statements of a round."""
    found: dict[int, int] = {}

    def cost(block: ir.Block) -> int:
        total = len(block)
        for statement in block:
            inside = sum(map(cost, blocks_of(statement)))
            if isinstance(statement, ir.For | ir.While):
                once = 1 + inside
                inside = once * rounds.get(id(statement), 0)
                if inside * program.group_size > _LONG:
                    found[id(statement)] = min(once, _LONGEST_ROUND)
            total += inside
        return total

    cost(program.body)
    return found


class _Guards:
    def __init__(self, program: ir.Program, outside: Collection[int], asking: Mapping[int, int]) -> None:
        self._program = program
        self._outside = outside
        self._asking = asking
        self._variables = list(program.variables)

    def run(self) -> ir.Program:
        body = self._block(self._program.body)
        return attrs.evolve(self._program, body=body, variables=tuple(self._variables))

    def _block(self, block: ir.Block) -> ir.Block:
        return tuple(after for statement in block for after in self._statement(statement))

    def _statement(self, statement: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(statement, ir.Access) and id(statement) in self._outside:
            yield from self._tested(statement)
            return
        made = with_blocks(statement, self._block)
        if isinstance(made, ir.For | ir.While):
            made = attrs.evolve(made, asks=self._asking.get(id(statement), 0))
        elif isinstance(made, ir.If) and any(id(inside) in self._outside for inside in statements_in((statement,))):
            made = attrs.evolve(made, overridable=None)  # what is tested inside is written as it stands
        yield made

    def _tested(self, access: ir.Access) -> Iterator[ir.Statement]:
        span, memory = access.span, access.memory
        length: ir.Expression = (
            ir.Length(memory, span) if memory.length is None else ir.Const(memory.length, Type.U32, span)
        )
        index = _plain_sum(access.index)
        if isinstance(access, ir.Load) and access.for_all:
            # all wait here, so it is no branch: from outside comes the last element
            last = ir.Apply(ops.SUB, (length, ir.Const(1, Type.U32, span)), Type.U32, span)
            yield attrs.evolve(access, index=ir.Apply(ops.MIN, (index, last), Type.U32, span))
            return
        if isinstance(index, ir.Apply):
            held = ir.Variable("place", Type.U32)
            self._variables.append(held)
            yield ir.Assign(held, index, span)
            index = ir.Read(held, span)
        otherwise: ir.Block = ()
        if not isinstance(access, ir.Store) and access.variable is not None:
            otherwise = (ir.Assign(access.variable, _zero(access.variable.type, span), span),)
        inside = ir.Apply(ops.LT, (index, length), Type.BOOL, span)
        yield ir.If(inside, (attrs.evolve(access, index=index),), otherwise, span)


def _plain_sum(index: ir.Expression) -> ir.Expression:
    """An add_nowrap that is tested is a sum like others: it must not be added up anew, in another width."""
    if isinstance(index, ir.Apply) and index.op is ops.ADD_NOWRAP:
        return attrs.evolve(index, op=ops.ADD)
    return index


def _zero(type: Type, span: Span) -> ir.Const:
    return ir.Const(False if type is Type.BOOL else 0.0 if type.is_float else 0, type, span)
