"""Every statement of a program, however deep."""

from __future__ import annotations

from collections.abc import Iterator

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
