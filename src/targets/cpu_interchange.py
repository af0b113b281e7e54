"""Loops that are better run with the lanes inside: those that read side by side what the lanes read.

A grid-stride loop leaps over memory within one lane, while the lanes of a workgroup together read a whole row. On a
CPU the loop therefore goes outside and the lanes inside: for each round, all lanes. Lanes do not see one another
between barriers, so their order is free. Rounds may differ in number from lane to lane; a lane that is through sits
out the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ..kernel import ir
from ..kernel.passes.uniform import Uniformity
from ..types import ops
from ..types.layout import Type


@attrs.frozen(eq=False)
class Rounds:
    """Where lanes differ in what they run through: a lane's first value and number of rounds, and the most of all."""

    prologue: ir.Block
    own: tuple[ir.Variable, ir.Variable]  # a lane's first value, a lane's number of rounds
    most: ir.Variable
    step: ir.Variable


@attrs.frozen(eq=False)
class Interchange:
    """A loop that the group runs, with the lanes inside. Without `rounds` all lanes run through the same values."""

    loop: ir.For
    rounds: Rounds | None

    @property
    def variables(self) -> tuple[ir.Variable, ...]:
        """Those that the program does not have."""
        rounds = self.rounds
        return () if rounds is None else (*rounds.own, rounds.most, rounds.step, self.loop.variable)


def interchanges(program: ir.Program, uniformity: Uniformity) -> Mapping[int, Interchange]:
    """The loops to turn, by the id of their statement. All stand in uniform control."""
    slopes = _Slopes(program, uniformity)
    return {
        id(loop): _turned(loop) if loop.variable in uniformity.varying else Interchange(loop, None)
        for loop in _loops(program.body, uniformity)
        if uniformity.of(loop.step) and not _leaves(loop.body) and slopes.read_side_by_side(loop.body)
    }


def _turned(loop: ir.For) -> Interchange:
    """for v in start..stop by step: body -> for turn in 0..most: if turn < trips: v = origin + turn * step; body"""
    span, name = loop.span, loop.variable.name
    origin = ir.Variable(f"{name}_from", Type.U32)
    trips = ir.Variable(f"{name}_trips", Type.U32)
    most = ir.Variable(f"{name}_most", Type.U32)
    step = ir.Variable(f"{name}_step", Type.U32)
    turn = ir.Variable(f"{name}_turn", Type.U32)

    def number(value: int) -> ir.Expression:
        return ir.Const(value, Type.U32, span)

    def apply(op: ops.Op, *operands: ir.Expression, type: Type = Type.U32) -> ir.Expression:
        return ir.Apply(op, operands, type, span)

    def read(variable: ir.Variable) -> ir.Expression:
        return ir.Read(variable, span)

    ahead = apply(ops.SUB, apply(ops.SUB, loop.stop, read(origin)), number(1))
    rounds = apply(ops.ADD, apply(ops.FLOORDIV, ahead, read(step)), number(1))
    some = apply(ops.LT, read(origin), loop.stop, type=Type.BOOL)
    here = apply(ops.ADD, read(origin), apply(ops.MUL, read(turn), read(step)))
    guarded = ir.If(
        apply(ops.LT, read(turn), read(trips), type=Type.BOOL),
        (ir.Assign(loop.variable, here, span), *loop.body),
        (),
        span,
    )
    prologue = (
        ir.Assign(step, loop.step, span),
        ir.Assign(origin, loop.start, span),
        ir.Assign(trips, apply(ops.SELECT, some, rounds, number(0)), span),
    )
    turned = ir.For(turn, number(0), read(most), number(1), (guarded,), span)
    return Interchange(turned, Rounds(prologue, (origin, trips), most, step))


class _Slopes:
    """By how much an index grows from one lane to the next, where that is a plain number."""

    def __init__(self, program: ir.Program, uniformity: Uniformity) -> None:
        self._uniformity = uniformity
        values: dict[ir.Variable, list[ir.Expression | None]] = {}
        for statement in _all(program.body):
            match statement:
                case ir.Assign():
                    values.setdefault(statement.variable, []).append(statement.value)
                case ir.For():  # all lanes step alike, so they stay as far apart as they start
                    step_alike = uniformity.of(statement.step)
                    start = statement.start if step_alike else None
                    values.setdefault(statement.variable, []).append(start)
                case ir.Load() | ir.Subgroup() | ir.Atomic():
                    if statement.variable is not None:
                        values.setdefault(statement.variable, []).append(None)
                case _:
                    pass
        self._defined = {variable: found[0] for variable, found in values.items() if len(found) == 1}

    def read_side_by_side(self, block: ir.Block) -> bool:
        """Whether neighbouring lanes touch neighbouring elements of storage."""
        return any(
            isinstance(statement, ir.Load | ir.Store)
            and statement.memory.space is ir.Space.STORAGE
            and self._slope(statement.index) == 1
            for statement in _all(block)
        )

    def _slope(self, expression: ir.Expression) -> int | None:
        if self._uniformity.of(expression):
            return 0
        match expression:
            case ir.Identity():
                return 1 if expression.builtin is ir.Builtin.LOCAL_ID else None
            case ir.Read():
                value = self._defined.get(expression.variable)
                return None if value is None else self._slope(value)
            case ir.Apply() if expression.op in (ops.ADD, ops.SUB):
                a, b = (self._slope(operand) for operand in expression.operands)
                if a is None or b is None:
                    return None
                return a + b if expression.op is ops.ADD else a - b
            case _:
                return None


def _all(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block, and of the blocks inside."""
    for statement in block:
        yield statement
        match statement:
            case ir.If():
                yield from _all(statement.then + statement.otherwise)
            case ir.For():
                yield from _all(statement.body)
            case ir.While():
                yield from _all(statement.head + statement.body)
            case _:
                pass


def _loops(block: ir.Block, uniformity: Uniformity) -> Iterator[ir.For]:
    """The outermost For loops that do not wait, as far as the control around them is uniform."""
    for statement in block:
        match statement:
            case ir.For() if not _waits(statement.body):
                yield statement
            case ir.For():
                yield from _loops(statement.body, uniformity)
            case ir.While() if _waits(statement.head + statement.body):
                yield from _loops(statement.body, uniformity)
            case ir.If() if uniformity.of(statement.condition):
                yield from _loops(statement.then + statement.otherwise, uniformity)
            case _:
                pass


def _waits(block: ir.Block) -> bool:
    """Whether there is a barrier or a subgroup operation inside: the control around that is uniform."""
    return any(isinstance(statement, ir.Barrier | ir.Subgroup) for statement in _all(block))


def _leaves(block: ir.Block) -> bool:
    """Whether a break in the block leaves the loop around it."""
    return any(
        isinstance(s, ir.Break) or (isinstance(s, ir.If) and (_leaves(s.then) or _leaves(s.otherwise)))
        for s in block
    )
