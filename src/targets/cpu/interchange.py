"""Loop interchange: moves the loop over lanes inside loops in which neighbouring lanes read neighbouring elements.

A grid-stride loop leaps over memory within one lane, while the lanes of a workgroup together read a row.
On a CPU the loop therefore goes outside and the lanes inside: for each round, all lanes. Lanes do not see one
another between barriers, so their order is free. Lanes may differ in their number of rounds: as many as all
have are run without a question, the rest only in the lanes that have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ...kernel import ir
from ...kernel.passes.uniform import Uniformity
from ...kernel.passes.walk import leaves_loop, settings_in, statements_in
from ...types import ops
from ...types.layout import Type


@attrs.frozen(eq=False)
class Rounds:
    """Where lanes differ in what they run through: found before the loop, by each lane, then over all."""

    prologue: ir.Block
    origin: ir.Variable  # a lane's first value
    trips: ir.Variable  # a lane's number of rounds
    least: ir.Variable  # of the rounds of all lanes
    most: ir.Variable
    step: ir.Variable
    turn: ir.Variable


@attrs.frozen(eq=False)
class Interchange:
    """What the group runs in place of a loop, lanes inside. Without `rounds` lanes do not differ."""

    loops: tuple[ir.For, ...]
    rounds: Rounds | None

    @property
    def variables(self) -> tuple[ir.Variable, ...]:
        """Those that the program does not have."""
        r = self.rounds
        return () if r is None else (r.origin, r.trips, r.least, r.most, r.step, r.turn)


def interchanges(program: ir.Program, uniformity: Uniformity) -> Mapping[int, Interchange]:
    """The loops to turn, by the id of their statement. All stand in uniform control."""
    values = _Values(program, uniformity)
    found: dict[int, Interchange] = {}
    waiting = [program.body]
    while waiting:
        for loop in _loops(waiting.pop(), uniformity):
            if leaves_loop(loop.body) or not uniformity.of(loop.step) or not values.read_side_by_side(loop.body):
                continue
            if loop.variable in uniformity.varying:
                found[id(loop)] = _turned(loop, values)
            else:
                found[id(loop)] = Interchange((loop,), None)
                waiting.append(loop.body)
    return found


def _turned(loop: ir.For, values: _Values) -> Interchange:
    """`for v in start..stop: body` becomes `for turn in 0..least: v = start + turn * step; body`, and for the
    turns in least..most the same, where turn < trips."""
    span, name = loop.span, loop.variable.name
    origin, trips, least, most, step, turn = (
        ir.Variable(f"{name}_{word}", Type.U32) for word in ("from", "trips", "least", "most", "step", "turn")
    )

    def number(value: int) -> ir.Expression:
        return ir.Const(value, Type.U32, span)

    def apply(op: ops.Op, *operands: ir.Expression, type: Type = Type.U32) -> ir.Expression:
        return ir.Apply(op, operands, type, span)

    def read(variable: ir.Variable) -> ir.Expression:
        return ir.Read(variable, span)

    ahead = apply(ops.SUB, apply(ops.SUB, loop.stop, read(origin)), number(1))
    by = loop.step if isinstance(loop.step, ir.Const) else apply(ops.MAX, loop.step, number(1))
    rounds = apply(ops.ADD, apply(ops.FLOORDIV, ahead, read(step)), number(1))
    some = apply(ops.LT, read(origin), loop.stop, type=Type.BOOL)
    prologue = (
        ir.Assign(step, by, span),
        ir.Assign(origin, loop.start, span),
        ir.Assign(trips, apply(ops.SELECT, some, rounds, number(0)), span),
    )
    first = values.written_out(loop.start) or read(origin)  # LLVM sees rows where it sees the lane's number
    here = ir.Assign(loop.variable, apply(ops.ADD, first, apply(ops.MUL, read(turn), read(step))), span)
    body = (here, *loop.body)
    mine = apply(ops.LT, read(turn), read(trips), type=Type.BOOL)
    loops = (
        ir.For(turn, number(0), read(least), number(1), body, span, loop.poll_cost),
        ir.For(turn, read(least), read(most), number(1), (ir.If(mine, body, (), span),), span, loop.poll_cost),
    )
    return Interchange(loops, Rounds(prologue, origin, trips, least, most, step, turn))


class _Values:
    """What variables that are assigned in one place stand for."""

    def __init__(self, program: ir.Program, uniformity: Uniformity) -> None:
        self._uniformity = uniformity
        once = {v: settings[0] for v, settings in settings_in(program.body).items() if len(settings) == 1}
        self._defined = {variable: self._value(setting) for variable, setting in once.items()}
        self._assigned = {v: self._defined[v] for v, setting in once.items() if not isinstance(setting, ir.For)}

    def _value(self, setting: ir.Statement) -> ir.Expression | None:
        match setting:
            case ir.Assign():
                return setting.value
            case ir.For() if self._uniformity.of(setting.step):  # all lanes stay as far apart as they start
                return setting.start
            case _:
                return None

    def read_side_by_side(self, block: ir.Block) -> bool:
        """Whether neighbouring lanes touch neighbouring elements of storage."""
        return any(
            isinstance(statement, ir.Load | ir.Store)
            and statement.memory.space is ir.Space.STORAGE
            and self._slope(statement.index) == 1
            for statement in statements_in(block)
        )

    def written_out(self, expression: ir.Expression) -> ir.Expression | None:
        """The same value without variables: of what a launch leaves as it is. None if it needs more."""
        match expression:
            case ir.Read():
                value = self._assigned.get(expression.variable)
                return None if value is None else self.written_out(value)
            case ir.Apply():
                operands = [self.written_out(operand) for operand in expression.operands]
                known = tuple(operand for operand in operands if operand is not None)
                return attrs.evolve(expression, operands=known) if len(known) == len(operands) else None
            case _:
                return expression

    def _slope(self, expression: ir.Expression) -> int | None:
        """By how much the value grows from one lane to the next, where that is a plain number."""
        if self._uniformity.of(expression):
            return 0
        match expression:
            case ir.Identity():
                return 1 if expression.builtin is ir.Builtin.LOCAL_ID else None
            case ir.Read():
                value = self._defined.get(expression.variable)
                return None if value is None else self._slope(value)
            case ir.Apply() if expression.op in (ops.ADD, ops.ADD_NOWRAP, ops.SUB):
                a, b = (self._slope(operand) for operand in expression.operands)
                if a is None or b is None:
                    return None
                return a - b if expression.op is ops.SUB else a + b
            case _:
                return None


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
    return any(isinstance(statement, ir.Barrier | ir.Subgroup) for statement in statements_in(block))
