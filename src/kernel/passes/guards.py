"""Inserts bounds checks around accesses, and marks loops that must poll whether to stop.

Out of bounds, a load gives 0 and a store or an atomic does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import attrs

from ...types import ops
from ...types.layout import Type
from .. import ir
from ..span import Span
from .walk import blocks_of, statements_in, with_blocks

_LONG = 1 << 30  # statements that a workgroup runs in about a second
_MOST_COST = 1 << 20  # cap on a loop's poll_cost


def guarded(program: ir.Program, unproven: Collection[int], polling: Mapping[int, int]) -> ir.Program:
    """The program with a bounds check around each access in `unproven`, and with poll_cost set on loops in `polling`.

    Statements are given by their `id`.
    """
    if not unproven and not polling:
        return program
    variables = list(program.variables)

    def block(block_: ir.Block) -> ir.Block:
        return tuple(after for statement in block_ for after in made_of(statement))

    def made_of(statement: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(statement, ir.Access) and id(statement) in unproven:
            yield from _checked(statement, variables)
            return
        made = with_blocks(statement, block)
        if isinstance(made, ir.For | ir.While):
            made = attrs.evolve(made, poll_cost=polling.get(id(statement), 0))
        elif isinstance(made, ir.If) and any(id(inside) in unproven for inside in statements_in((statement,))):
            made = attrs.evolve(made, overridable=None)  # a target's own implementation would lack the checks
        yield made

    body = block(program.body)
    return attrs.evolve(program, body=body, variables=tuple(variables))


def long_loops(program: ir.Program, rounds: Mapping[int, int]) -> dict[int, int]:
    """The loops in which a workgroup may spend seconds or more, by `id`, with the statements of an iteration."""
    found: dict[int, int] = {}

    def cost(block: ir.Block) -> int:
        total = len(block)
        for statement in block:
            inside = sum(map(cost, blocks_of(statement)))
            if isinstance(statement, ir.For | ir.While):
                once = 1 + inside
                inside = once * rounds.get(id(statement), 0)
                if inside * program.group_size > _LONG:
                    found[id(statement)] = min(once, _MOST_COST)
            total += inside
        return total

    cost(program.body)
    return found


def _checked(access: ir.Access, variables: list[ir.Variable]) -> Iterator[ir.Statement]:
    """An access in bounds, or else what stands in for it; a new variable is added to the others."""
    span, memory = access.span, access.memory
    length: ir.Expression = (
        ir.Length(memory, span) if memory.length is None else ir.Const(memory.length, Type.U32, span)
    )
    index = _plain_sum(access.index)
    if isinstance(access, ir.Load) and access.uniform:
        # between barriers, so control flow must stay uniform: clamp to the last element instead
        last = ir.Apply(ops.SUB, (length, ir.Const(1, Type.U32, span)), Type.U32, span)
        yield attrs.evolve(access, index=ir.Apply(ops.MIN, (index, last), Type.U32, span))
        return
    if isinstance(index, ir.Apply):
        held = ir.Variable("place", Type.U32)
        variables.append(held)
        yield ir.Assign(held, index, span)
        index = ir.Read(held, span)
    otherwise: ir.Block = ()
    if not isinstance(access, ir.Store) and access.variable is not None:
        otherwise = (ir.Assign(access.variable, _zero(access.variable.type, span), span),)
    inside = ir.Apply(ops.LT, (index, length), Type.BOOL, span)
    yield ir.If(inside, (attrs.evolve(access, index=index),), otherwise, span)


def _plain_sum(index: ir.Expression) -> ir.Expression:
    """An add_nowrap as an ordinary sum: the checked value must be the one used, not a sum in the address's width."""
    if isinstance(index, ir.Apply) and index.op is ops.ADD_NOWRAP:
        return attrs.evolve(index, op=ops.ADD)
    return index


def _zero(type: Type, span: Span) -> ir.Const:
    return ir.Const(False if type is Type.BOOL else 0.0 if type.is_float else 0, type, span)
