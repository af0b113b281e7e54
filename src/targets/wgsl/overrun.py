"""Instruments loops for lavapipe, Mesa's software driver, which silently ends loops after 65,535 iterations.

The count is over all loops of an invocation. So each loop sets a flag at its proper end. One that is left with the flag
unset was cut short: it stores 1 to an overrun buffer, and the host refuses the result.
"""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...kernel.passes.walk import statements_in, with_blocks
from ...types.layout import Type
from ...types.ops import AtomicOp
from .legalize_words import Word, WordBuilder

ITERATIONS = 65_535


def has_loops(program: ir.Program) -> bool:
    """Whether a program has loops, and so can overrun."""
    return any(isinstance(statement, ir.For | ir.While) for statement in statements_in(program.body))


def instrumented(program: ir.Program) -> ir.Program:
    """The program with its loops instrumented; the overrun flag is one more storage memory, the last."""
    return _Instrumenter(program).run()


class _Instrumenter:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.build = WordBuilder(program.span)
        self.overrun = ir.Memory(_free_name(program), ir.Space.STORAGE, Type.U32)

    def run(self) -> ir.Program:
        program = self.program
        self.statements(program.body, None)
        others = tuple(m for m in program.memories if m.space is not ir.Space.STORAGE)
        return attrs.evolve(
            program,
            memories=(*program.storage, self.overrun, *others),
            variables=(*program.variables, *self.build.variables),
            body=self.build.finish(),
        )

    def statements(self, block: ir.Block, ended: ir.Variable | None) -> None:
        """`ended` is the flag of the enclosing loop."""
        for statement in block:
            self.build.span = statement.span
            self.statement(statement, ended)

    def nested(self, block: ir.Block, ended: ir.Variable | None) -> ir.Block:
        with self.build.nested() as made:
            self.statements(block, ended)
        return tuple(made)

    def statement(self, statement: ir.Statement, ended: ir.Variable | None) -> None:
        build = self.build
        match statement:
            case ir.Break():
                assert ended is not None, "verify: a break stands in a loop"
                build.assign(ended, build.literal(True, Type.BOOL))
                build.emit(statement)
            case ir.For():  # as the While that it is
                stop, step = Word(build, statement.stop).held("stop"), Word(build, statement.step).held("step")
                counter = build.read(statement.variable)
                build.assign(statement.variable, Word(build, statement.start))
                last = ir.Assign(statement.variable, (counter + step).node, statement.span)
                self.loop((), counter < stop, statement.body, (last,))
            case ir.While():
                self.loop(statement.head, Word(build, statement.condition), statement.body, ())
            case _:
                build.emit(with_blocks(statement, lambda inside: self.nested(inside, ended)))

    def loop(self, head: ir.Block, condition: Word, body: ir.Block, last: ir.Block) -> None:
        build, span = self.build, self.build.span
        true, false = build.literal(True, Type.BOOL), build.literal(False, Type.BOOL)
        ended = build.variable("ended", Type.BOOL)
        leave = ir.Assign(ended, true.node, span), ir.Break(span)
        test = ir.If((~condition).node, leave, (), span)
        inner = (*self.nested(head, ended), test, *self.nested(body, ended), *last)
        build.span = span
        tell = ir.Atomic(None, AtomicOp.STORE, self.overrun, build.literal(0).node, build.literal(1).node, span)
        build.assign(ended, false)
        build.emit(ir.While((), true.node, inner, span))
        build.emit(ir.If((~build.read(ended)).node, (tell,), (), span))


def _free_name(program: ir.Program) -> str:
    name, taken = "overrun", {memory.name for memory in program.memories}
    while name in taken:
        name += "_"
    return name
