"""Every statement of a program, however deep: to look at, and to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from .. import ir


def statements_in(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a block and of the blocks in them, each before what it holds."""
    for statement in block:
        yield statement
        match statement:
            case ir.If():
                yield from statements_in(statement.then)
                yield from statements_in(statement.otherwise)
            case ir.For():
                yield from statements_in(statement.body)
            case ir.While():
                yield from statements_in(statement.head)
                yield from statements_in(statement.body)
            case _:
                pass


def expressions_of(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions a statement evaluates itself, not those of the blocks inside it."""
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


def leaves_loop(block: ir.Block) -> bool:
    """Whether a break in the block leaves the loop around it."""
    return any(
        isinstance(s, ir.Break) or (isinstance(s, ir.If) and (leaves_loop(s.then) or leaves_loop(s.otherwise)))
        for s in block
    )


def memories_in(block: ir.Block) -> dict[ir.Memory, None]:
    """The memories that a block touches, in the order in which it does."""
    found: dict[ir.Memory, None] = {}
    for statement in statements_in(block):
        for expression in expressions_of(statement):
            found |= dict.fromkeys(_measured(expression))
        if isinstance(statement, ir.Load | ir.Store | ir.Atomic):
            found[statement.memory] = None
    return found


def _measured(expression: ir.Expression) -> Iterator[ir.Memory]:
    """The memories whose length an expression asks for."""
    match expression:
        case ir.Length():
            yield expression.memory
        case ir.Apply():
            for operand in expression.operands:
                yield from _measured(operand)
        case _:
            pass


def rewritten(block: ir.Block, change: Callable[[ir.Statement], Iterable[ir.Statement]]) -> ir.Block:
    """A block with every statement changed, the blocks inside it first."""
    return tuple(after for statement in block for after in change(_with_blocks(statement, change)))


def _with_blocks(statement: ir.Statement, change: Callable[[ir.Statement], Iterable[ir.Statement]]) -> ir.Statement:
    match statement:
        case ir.If():
            then, otherwise = rewritten(statement.then, change), rewritten(statement.otherwise, change)
            return attrs.evolve(statement, then=then, otherwise=otherwise)
        case ir.For():
            return attrs.evolve(statement, body=rewritten(statement.body, change))
        case ir.While():
            return attrs.evolve(
                statement, head=rewritten(statement.head, change), body=rewritten(statement.body, change)
            )
        case _:
            return statement


def replaced(block: ir.Block, variable: ir.Variable, value: ir.Const) -> ir.Block:
    """A block that reads a value where it read a variable."""

    def expression(node: ir.Expression) -> ir.Expression:
        match node:
            case ir.Read():
                return value if node.variable is variable else node
            case ir.Apply():
                return attrs.evolve(node, operands=tuple(map(expression, node.operands)))
            case _:
                return node

    def idiom(node: ir.Idiom | None) -> ir.Idiom | None:
        return None if node is None else attrs.evolve(node, operands=tuple(map(expression, node.operands)))

    def statement(node: ir.Statement) -> Iterator[ir.Statement]:
        match node:
            case ir.Assign():
                yield attrs.evolve(node, value=expression(node.value))
            case ir.Load():
                yield attrs.evolve(node, index=expression(node.index))
            case ir.Store():
                yield attrs.evolve(node, index=expression(node.index), value=expression(node.value))
            case ir.Atomic():
                new = None if node.value is None else expression(node.value)
                yield attrs.evolve(node, index=expression(node.index), value=new)
            case ir.Subgroup():
                yield attrs.evolve(node, operands=tuple(map(expression, node.operands)))
            case ir.If():
                yield attrs.evolve(node, condition=expression(node.condition), idiom=idiom(node.idiom))
            case ir.While():
                yield attrs.evolve(node, condition=expression(node.condition))
            case ir.For():
                start, stop, step = (expression(bound) for bound in (node.start, node.stop, node.step))
                yield attrs.evolve(node, start=start, stop=stop, step=step)
            case ir.Barrier() | ir.Break():
                yield node

    return rewritten(block, statement)
