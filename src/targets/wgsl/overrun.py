"""Instruments loops for lavapipe, Mesa's software driver, which silently ends loops after 65,535 iterations.

The count is over all loops of an invocation. So each loop sets a flag at its proper end. One that is left with the flag
unset was cut short: it stores 1 to an overrun buffer, and the host refuses the result.
"""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...kernel.passes.walk import statements_in, with_blocks
from ...types import ops
from ...types.layout import Type
from ...types.ops import AtomicOp

ITERATIONS = 65_535


def has_loops(program: ir.Program) -> bool:
    """Whether a program has loops, and so can overrun."""
    return any(isinstance(statement, ir.For | ir.While) for statement in statements_in(program.body))


def guarded(program: ir.Program) -> ir.Program:
    """The program with its loops instrumented; the overrun flag is one more storage memory, the last."""
    return _Guard(program).run()


class _Guard:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.overrun = ir.Memory(_free_name(program), ir.Space.STORAGE, Type.U32)
        self.variables = list(program.variables)

    def run(self) -> ir.Program:
        body = self.block(self.program.body, None)
        others = tuple(m for m in self.program.memories if m.space is not ir.Space.STORAGE)
        return attrs.evolve(
            self.program,
            memories=(*self.program.storage, self.overrun, *others),
            variables=tuple(self.variables),
            body=body,
        )

    def block(self, block: ir.Block, ended: ir.Variable | None) -> ir.Block:
        """`ended` is the flag of the enclosing loop."""
        return tuple(made for statement in block for made in self.statement(statement, ended))

    def statement(self, statement: ir.Statement, ended: ir.Variable | None) -> ir.Block:
        match statement:
            case ir.Break():
                assert ended is not None, "verify: a break stands in a loop"
                return ir.Assign(ended, _truth(True, statement), statement.span), statement
            case ir.For():
                return self.counted(statement)
            case ir.While():
                return self.loop(statement, statement.head, statement.condition, statement.body, ())
            case _:
                return (with_blocks(statement, lambda inside: self.block(inside, ended)),)

    def counted(self, node: ir.For) -> ir.Block:
        """Rewrites a For as the equivalent While."""
        stop, step = self.new_variable("stop", Type.U32), self.new_variable("step", Type.U32)
        counter = ir.Read(node.variable, node.span)
        below = ir.Apply(ops.LT, (counter, ir.Read(stop, node.span)), Type.BOOL, node.span)
        forward = ir.Apply(ops.ADD, (counter, ir.Read(step, node.span)), Type.U32, node.span)
        return (
            ir.Assign(stop, node.stop, node.span),
            ir.Assign(step, node.step, node.span),
            ir.Assign(node.variable, node.start, node.span),
            *self.loop(node, (), below, node.body, (ir.Assign(node.variable, forward, node.span),)),
        )

    def loop(
        self, node: ir.For | ir.While, head: ir.Block, condition: ir.Expression, body: ir.Block, last: ir.Block
    ) -> ir.Block:
        span = node.span
        ended = self.new_variable("ended", Type.BOOL)
        leave = ir.Assign(ended, _truth(True, node), span), ir.Break(span)
        test = ir.If(ir.Apply(ops.INVERT, (condition,), Type.BOOL, span), leave, (), span)
        inner = (*self.block(head, ended), test, *self.block(body, ended), *last)
        cut = ir.Apply(ops.INVERT, (ir.Read(ended, span),), Type.BOOL, span)
        first, one = (ir.Const(value, Type.U32, span) for value in (0, 1))
        tell = ir.Atomic(None, AtomicOp.STORE, self.overrun, first, one, span)
        return (
            ir.Assign(ended, _truth(False, node), span),
            ir.While((), _truth(True, node), inner, span),
            ir.If(cut, (tell,), (), span),
        )

    def new_variable(self, name: str, type: Type) -> ir.Variable:
        variable = ir.Variable(name, type)
        self.variables.append(variable)
        return variable


def _truth(value: bool, beside: ir.Statement) -> ir.Const:
    return ir.Const(value, Type.BOOL, beside.span)


def _free_name(program: ir.Program) -> str:
    name, taken = "overrun", {memory.name for memory in program.memories}
    while name in taken:
        name += "_"
    return name
