"""What legalisation builds with: expressions that fold as they are made, temporaries, nested blocks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import attrs
import numpy as np

from ...types import ops
from ...types.layout import Type
from ...types.ops import Op
from .. import ir
from ..span import Span
from .walk import expressions_of

ALL_ONES = 0xFFFF_FFFF


class Builder:
    """Statements under construction. `span` is the source line that whatever is made next comes from."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.variables: list[ir.Variable] = []
        self._blocks: list[list[ir.Statement]] = [[]]

    def emit(self, statement: ir.Statement) -> None:
        self._blocks[-1].append(statement)

    @contextmanager
    def block(self) -> Generator[list[ir.Statement], None, None]:
        """Gathers what is emitted inside the `with` into a block of its own."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    def finish(self) -> ir.Block:
        return tuple(self._blocks[0])

    # -- variables ----------------------------------------------------------------------------------------

    def fresh(self, name: str, type: Type) -> ir.Variable:
        variable = ir.Variable(name, type)
        self.variables.append(variable)
        return variable

    def read(self, variable: ir.Variable) -> ir.Read:
        return ir.Read(variable, self.span)

    def assign(self, variable: ir.Variable, value: ir.Expression) -> None:
        self.emit(ir.Assign(variable, value, self.span))

    def bound(self, expression: ir.Expression, name: str = "word") -> ir.Expression:
        """The same value, cheap to mention more than once. Expressions never load, so this may stand anywhere
        before the statement that uses it."""
        return self.held(expression, name) if isinstance(expression, ir.Apply) else expression

    def held(self, expression: ir.Expression, name: str = "word") -> ir.Expression:
        """The value an expression has here and now, whatever becomes of the variables in it."""
        variable = self.fresh(name, expression.type)
        self.assign(variable, expression)
        return self.read(variable)

    def filled(self, variables: Sequence[ir.Variable], values: Sequence[ir.Expression]) -> bool:
        """Where the values are temporaries that the statements just emitted fill, lets those statements fill
        `variables` instead, and says so. The temporaries must not be mentioned again."""
        block, count = self._blocks[-1], len(values)
        last, newest = block[-count:], self.variables[-count:]
        if len(last) < count or len(newest) < count:
            return False
        made: list[ir.Statement] = []
        for statement, value, temporary, variable in zip(last, values, newest, variables, strict=True):
            if not isinstance(value, ir.Read) or not isinstance(
                statement, ir.Load | ir.Atomic | ir.Subgroup | ir.Assign
            ):
                return False
            if value.variable is not temporary or statement.variable is not temporary:
                return False
            made.append(attrs.evolve(statement, variable=variable))
        if any(reads(e, v) for s in last[1:] for e in expressions_of(s) for v in (*variables, *newest)):
            return False  # a later statement would see what an earlier one had set
        block[-count:] = made
        del self.variables[-count:]
        return True

    # -- expressions --------------------------------------------------------------------------------------

    def word(self, value: int) -> ir.Const:
        """A U32 literal."""
        return ir.Const(value & ALL_ONES, Type.U32, self.span)

    def truth(self, value: bool) -> ir.Const:
        return ir.Const(value, Type.BOOL, self.span)

    def cast(self, to: Type, value: ir.Expression) -> ir.Expression:
        return value if value.type is to else self.apply(ops.CAST, value, to=to)

    def bits_as(self, to: Type, value: ir.Expression) -> ir.Expression:
        return value if value.type is to else self.apply(ops.BITCAST, value, to=to)

    def apply(self, op: Op, *operands: ir.Expression, to: Type | None = None) -> ir.Expression:
        """An operation, or what it comes to when that is known already."""
        type = to or op.rule([operand.type for operand in operands])
        assert type is not None, f"{op} does not take {[str(operand.type) for operand in operands]}"
        known = self._folded(op, operands, to, type) or self._simpler(op, operands, type)
        return known or ir.Apply(op, operands, type, self.span)

    def _folded(self, op: Op, operands: tuple[ir.Expression, ...], to: Type | None, type: Type) -> ir.Const | None:
        constants = [operand for operand in operands if isinstance(operand, ir.Const)]
        if len(constants) < len(operands):
            return None
        try:
            value = ops.apply(op, *[np.array(c.value, c.type.dtype) for c in constants], to=to)
        except ZeroDivisionError:
            return None
        return ir.Const(value.item(), type, self.span)

    def _simpler(self, op: Op, operands: tuple[ir.Expression, ...], type: Type) -> ir.Expression | None:
        first = operands[0]
        if op is ops.SELECT and isinstance(first, ir.Const):
            return operands[1] if first.value else operands[2]
        if op is ops.BITCAST and isinstance(first, ir.Apply) and first.op is ops.BITCAST:
            return self.bits_as(type, first.operands[0])
        if type is Type.BOOL and op in (ops.AND, ops.OR):
            return _connected(operands, op is ops.AND)
        if type is not Type.U32 or len(operands) != 2 or first.type is not Type.U32:
            return None
        for value, constant in ((first, operands[1]), (operands[1], first)):
            if isinstance(constant, ir.Const):
                known = self._by_constant(op, value, int(constant.value), constant is operands[1])
                if known is not None:
                    return known
        return None

    def _by_constant(self, op: Op, value: ir.Expression, constant: int, right: bool) -> ir.Expression | None:
        """`value op constant` (the other way round when not `right`) where the constant decides it."""
        neutral = {ops.ADD: 0, ops.OR: 0, ops.XOR: 0, ops.AND: ALL_ONES, ops.MUL: 1}.get(op)
        if right and op in (ops.SUB, ops.SHL, ops.SHR):
            neutral = 0
        if neutral == constant:
            return value
        if right and constant == 0 and op in (ops.FLOORDIV, ops.MOD):  # a constant divisor that WGSL refuses
            return value if op is ops.FLOORDIV else self.word(0)
        return self.word(0) if op in (ops.AND, ops.MUL) and constant == 0 else None


def _connected(operands: Sequence[ir.Expression], is_and: bool) -> ir.Expression | None:
    """An AND or OR of Bools one of which is known."""
    for operand, other in zip(operands, reversed(operands), strict=True):
        if isinstance(operand, ir.Const):
            return other if operand.value is is_and else operand
    return None


def reads(expression: ir.Expression, variable: ir.Variable) -> bool:
    """Whether the value of an expression depends on a variable."""
    if isinstance(expression, ir.Read):
        return expression.variable is variable
    return isinstance(expression, ir.Apply) and any(reads(operand, variable) for operand in expression.operands)
