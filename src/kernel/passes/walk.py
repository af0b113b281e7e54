"""Traversal and rewriting of the IR: the children of each node, stated once for all passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from ...types.ops import AtomicOp
from .. import ir

# -- one statement ----------------------------------------------------------------------------------------


def blocks_of(statement: ir.Statement) -> tuple[ir.Block, ...]:
    """The blocks inside a statement."""
    match statement:
        case ir.If():
            return statement.then, statement.otherwise
        case ir.For():
            return (statement.body,)
        case ir.While():
            return statement.head, statement.body
        case _:
            return ()


def expressions_of(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions that a statement evaluates itself, without those of nested blocks."""
    match statement:
        case ir.Assign():
            return (statement.value,)
        case ir.Load():
            return (statement.index,)
        case ir.Store():
            return statement.index, statement.value
        case ir.Atomic():
            return (statement.index,) if statement.value is None else (statement.index, statement.value)
        case ir.Subgroup():
            return statement.operands
        case ir.If() | ir.While():
            return (statement.condition,)
        case ir.For():
            return statement.start, statement.stop, statement.step
        case ir.Barrier() | ir.Break():
            return ()


def variable_set_by(statement: ir.Statement) -> ir.Variable | None:
    """The variable that a statement itself sets."""
    match statement:
        case ir.Assign() | ir.Load() | ir.Atomic() | ir.Subgroup() | ir.For():
            return statement.variable
        case _:
            return None


# -- a block, recursively ---------------------------------------------------------------------------------


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
    """The variables that a block may set."""
    return frozenset(settings_in(block))


def settings_in(block: ir.Block) -> dict[ir.Variable, list[ir.Statement]]:
    """The statements that set each variable."""
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


def writers_in(block: ir.Block) -> dict[ir.Memory, ir.Store | ir.Atomic]:
    """The memories that a block writes, each with the first statement that does."""
    found: dict[ir.Memory, ir.Store | ir.Atomic] = {}
    for statement in statements_in(block):
        if isinstance(statement, ir.Store) or (isinstance(statement, ir.Atomic) and statement.op is not AtomicOp.LOAD):
            found.setdefault(statement.memory, statement)
    return found


def leaves_loop(block: ir.Block) -> bool:
    """Whether a loop's body has a Break of that loop."""
    return any(
        isinstance(s, ir.Break) or (isinstance(s, ir.If) and (leaves_loop(s.then) or leaves_loop(s.otherwise)))
        for s in block
    )


# -- expressions ------------------------------------------------------------------------------------------


def nodes_in(expression: ir.Expression) -> Sequence[ir.Expression]:
    """An expression and all its subexpressions, each before its operands."""
    found = [expression]
    for node in found:  # the list grows as it is walked
        if isinstance(node, ir.Apply):
            found += node.operands
    return found


def variables_in(expression: ir.Expression) -> Sequence[ir.Variable]:
    """The variables an expression reads."""
    return [node.variable for node in nodes_in(expression) if isinstance(node, ir.Read)]


# -- rewriting --------------------------------------------------------------------------------------------


def with_blocks(statement: ir.Statement, change: Callable[[ir.Block], ir.Block]) -> ir.Statement:
    """A statement with a function applied to each of its blocks."""
    match statement:
        case ir.If():
            return attrs.evolve(statement, then=change(statement.then), otherwise=change(statement.otherwise))
        case ir.For():
            return attrs.evolve(statement, body=change(statement.body))
        case ir.While():
            return attrs.evolve(statement, head=change(statement.head), body=change(statement.body))
        case _:
            return statement


def with_expressions(statement: ir.Statement, change: Callable[[ir.Expression], ir.Expression]) -> ir.Statement:
    """A statement with a function applied to each of its own expressions."""
    match statement:
        case ir.Assign():
            return attrs.evolve(statement, value=change(statement.value))
        case ir.Load():
            return attrs.evolve(statement, index=change(statement.index))
        case ir.Store():
            return attrs.evolve(statement, index=change(statement.index), value=change(statement.value))
        case ir.Atomic():
            value = None if statement.value is None else change(statement.value)
            return attrs.evolve(statement, index=change(statement.index), value=value)
        case ir.Subgroup():
            return attrs.evolve(statement, operands=tuple(map(change, statement.operands)))
        case ir.If():
            overridable = statement.overridable
            if overridable is not None:
                overridable = attrs.evolve(overridable, operands=tuple(map(change, overridable.operands)))
            return attrs.evolve(statement, condition=change(statement.condition), overridable=overridable)
        case ir.While():
            return attrs.evolve(statement, condition=change(statement.condition))
        case ir.For():
            start, stop, step = map(change, expressions_of(statement))
            return attrs.evolve(statement, start=start, stop=stop, step=step)
        case ir.Barrier() | ir.Break():
            return statement


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
