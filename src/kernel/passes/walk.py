"""Traversal and rewriting of the IR: the children of each node, stated once for all passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from ...types.ops import AtomicOp
from .. import ir

# The fields of each statement that hold expressions, and those that hold blocks.
_EXPRESSIONS: Mapping[type[ir.Statement], tuple[str, ...]] = {
    ir.Assign: ("value",), ir.Load: ("index",), ir.Store: ("index", "value"), ir.Atomic: ("index", "value"),
    ir.Subgroup: ("operands",), ir.If: ("condition",), ir.For: ("start", "stop", "step"),
}  # fmt: skip
_BLOCKS: Mapping[type[ir.Statement], tuple[str, ...]] = {
    ir.If: ("then", "otherwise"), ir.For: ("body",), ir.Loop: ("body",),
}  # fmt: skip


def blocks_of(statement: ir.Statement) -> tuple[ir.Block, ...]:
    return tuple([getattr(statement, name) for name in _BLOCKS.get(type(statement), ())])


def expressions_of(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions that a statement evaluates itself, without those of nested blocks."""
    if isinstance(statement, ir.Subgroup):
        return statement.operands
    parts = [getattr(statement, name) for name in _EXPRESSIONS.get(type(statement), ())]
    return tuple([part for part in parts if part is not None])  # an atomic load has no value


def variable_set_by(statement: ir.Statement) -> ir.Variable | None:
    """The variable that a statement itself sets."""
    return getattr(statement, "variable", None)


def statements_in(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a block and of all blocks nested in it, in pre-order."""
    ahead = [iter(block)]
    while ahead:
        for statement in ahead[-1]:
            yield statement
            inner = blocks_of(statement)
            if inner:
                ahead += map(iter, reversed(inner))
                break
        else:
            ahead.pop()


def variables_set_in(block: ir.Block) -> frozenset[ir.Variable]:
    return frozenset(assignments_in(block))


def assignments_in(block: ir.Block) -> dict[ir.Variable, list[ir.Statement]]:
    """The variables that a block sets, each with the statements that set it."""
    found: dict[ir.Variable, list[ir.Statement]] = {}
    for statement in statements_in(block):
        if (variable := variable_set_by(statement)) is not None:
            found.setdefault(variable, []).append(statement)
    return found


def memories_in(block: ir.Block) -> dict[ir.Memory, None]:
    """The memories that a block accesses or whose lengths it reads, in order of first use."""
    found: dict[ir.Memory, None] = {}
    for statement in statements_in(block):
        for expression in expressions_of(statement):
            for node in nodes_in(expression):
                if isinstance(node, ir.Length):
                    found[node.memory] = None
        if isinstance(statement, ir.Access):
            found[statement.memory] = None
    return found


@lru_cache(maxsize=512)
def writers_in(program: ir.Program) -> Mapping[ir.Memory, ir.Store | ir.Atomic]:
    """The memories that a program writes, each with the first statement that does."""
    found: dict[ir.Memory, ir.Store | ir.Atomic] = {}
    for statement in statements_in(program.body):
        if isinstance(statement, ir.Store) or (isinstance(statement, ir.Atomic) and statement.op is not AtomicOp.LOAD):
            found.setdefault(statement.memory, statement)
    return found


def leaves_loop(block: ir.Block) -> bool:
    """Whether a loop's body has a Break of that loop."""
    return any(
        isinstance(s, ir.Break) or (isinstance(s, ir.If) and (leaves_loop(s.then) or leaves_loop(s.otherwise)))
        for s in block
    )


def nodes_in(expression: ir.Expression) -> Sequence[ir.Expression]:
    """An expression and all its subexpressions, each before its operands."""
    found = [expression]
    for node in found:  # the list grows as it is walked
        if isinstance(node, ir.Apply):
            found += node.operands
    return found


def variables_in(expression: ir.Expression) -> Sequence[ir.Variable]:
    return [node.variable for node in nodes_in(expression) if isinstance(node, ir.Read)]


def variables_read_by(statement: ir.Statement) -> set[ir.Variable]:
    """The variables that a statement itself reads."""
    return {variable for expression in expressions_of(statement) for variable in variables_in(expression)}


def with_blocks(statement: ir.Statement, change: Callable[[ir.Block], ir.Block]) -> ir.Statement:
    return _changed(statement, _BLOCKS, change)


def with_expressions(statement: ir.Statement, change: Callable[[ir.Expression], ir.Expression]) -> ir.Statement:
    def changed(part: ir.Expression | tuple[ir.Expression, ...] | None) -> object:
        return tuple(map(change, part)) if isinstance(part, tuple) else part and change(part)

    return _changed(statement, _EXPRESSIONS, changed)


def _changed(
    statement: ir.Statement, fields: Mapping[type[ir.Statement], tuple[str, ...]], change: Callable[[Any], object]
) -> ir.Statement:
    parts: dict[str, Any] = {name: change(getattr(statement, name)) for name in fields.get(type(statement), ())}
    return attrs.evolve(statement, **parts) if parts else statement


def rewritten(block: ir.Block, change: Callable[[ir.Statement], Iterable[ir.Statement]]) -> ir.Block:
    """A block with every statement replaced by `change` of it, in post-order."""
    return tuple(
        after for statement in block for after in change(with_blocks(statement, lambda inner: rewritten(inner, change)))
    )


def replaced(block: ir.Block, variable: ir.Variable, value: ir.Const) -> ir.Block:
    """A block with a constant substituted for a variable's reads."""

    def expression(node: ir.Expression) -> ir.Expression:
        if isinstance(node, ir.Apply):
            return attrs.evolve(node, operands=tuple(map(expression, node.operands)))
        return value if isinstance(node, ir.Read) and node.variable is variable else node

    return rewritten(block, lambda statement: (with_expressions(statement, expression),))
