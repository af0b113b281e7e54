"""Makes IR: the block under construction, fresh variables, and expressions folded as they are made."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from ..types import ops
from ..types.layout import Type
from ..types.ops import Op
from . import examples, ir
from .outside import Outside
from .span import KernelError, Span

# An operand that changes nothing: (operation, which side, value). Floats stay out: -0.0 + 0 is not -0.0.
_NEUTRAL = {
    (ops.ADD, 0): 0, (ops.ADD, 1): 0, (ops.EXACT_SUM, 0): 0, (ops.EXACT_SUM, 1): 0, (ops.SUB, 1): 0, (ops.MUL, 0): 1,
    (ops.MUL, 1): 1, (ops.OR, 0): 0, (ops.OR, 1): 0, (ops.XOR, 0): 0, (ops.XOR, 1): 0, (ops.SHL, 1): 0,
    (ops.SHR, 1): 0, (ops.FLOORDIV, 1): 1,
}  # fmt: skip


def const(value: float, type: Type, span: Span) -> ir.Const:
    return ir.Const(value, type, span)


def apply(op: Op, operands: tuple[ir.Expression, ...], span: Span) -> ir.Expression:
    """An operation, checked against its rule and folded where all operands are known."""
    result = op.rule([operand.type for operand in operands])
    if result is None:
        types = [operand.type for operand in operands]
        found, example = " and ".join(map(str, types)), examples.operand_of(op, types)
        raise KernelError(span, f"expected {op.expects} for `{op}`, found {found}; convert one, e.g. `{example}`")
    if op is ops.SELECT and isinstance(operands[0], ir.Const):
        return operands[1] if operands[0].value else operands[2]
    if op in (ops.FLOORDIV, ops.MOD) and isinstance(operands[1], ir.Const) and operands[1].value == 0:
        raise KernelError(span, "expected a divisor other than zero, e.g. `x // 2`")
    if (constants := _constants(operands)) is not None:
        return _folded(op, constants, result, span)
    for side, operand in enumerate(operands):
        if isinstance(operand, ir.Const) and result.is_integer and _NEUTRAL.get((op, side)) == operand.value:
            return operands[1 - side]
    return ir.Apply(op, operands, result, span)


def may_fail(value: object) -> bool:
    """Whether computing a value divides by what may be zero, or has a sum that must fit: then it is computed only
    where Python would do so.
    """
    if not isinstance(value, ir.Apply):
        return False
    divides = value.op in (ops.FLOORDIV, ops.MOD) and not isinstance(value.operands[1], ir.Const)
    return divides or value.op is ops.EXACT_SUM or any(may_fail(operand) for operand in value.operands)


def convert(op: Op, operand: ir.Expression, to: Type, span: Span) -> ir.Expression:
    """CAST or BITCAST to a type."""
    if operand.type is to:
        return operand
    allowed = ops.can_cast if op is ops.CAST else ops.can_bitcast
    if not allowed(operand.type, to):
        example = examples.converted(operand.type, to)
        raise KernelError(span, f"expected a value that converts to {to}, found {operand.type}, e.g. `{example}`")
    if isinstance(operand, ir.Const):
        value = ops.apply(op, _array(operand), to=to)
        return ir.Const(value.item(), to, span)
    return ir.Apply(op, (operand,), to, span)


def constant_of(expression: ir.Expression) -> int | None:
    """The integer that an expression of literals comes to."""
    if isinstance(expression, ir.Const) and expression.type.is_integer:
        return int(expression.value)
    if (
        not isinstance(expression, ir.Apply)
        or not expression.type.is_integer
        or expression.op in (ops.CAST, ops.BITCAST)
    ):
        return None
    known = [constant_of(operand) for operand in expression.operands]
    numbers = [number for number in known if number is not None]
    if len(numbers) < len(known) or not all(o.type.is_integer for o in expression.operands):
        return None
    if expression.op in (ops.FLOORDIV, ops.MOD) and not numbers[1]:
        return None
    pairs = zip(numbers, expression.operands, strict=True)
    return int(ops.apply(expression.op, *(np.asarray(number, o.type.dtype) for number, o in pairs)))


def _constants(operands: tuple[ir.Expression, ...]) -> list[ir.Const] | None:
    known = [operand for operand in operands if isinstance(operand, ir.Const)]
    return known if len(known) == len(operands) else None


def _array(constant: ir.Const) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.asarray(constant.value, constant.type.dtype)


def _folded(op: Op, constants: list[ir.Const], result: Type, span: Span) -> ir.Const:
    value = ops.apply(op, *map(_array, constants))
    return ir.Const(value.astype(result.dtype).item(), result, span)


# How large a kernel may become: beyond, a compiler is at it for minutes.
MOST_STATEMENTS = 10_000
MOST_ROUNDS = 10_000  # of unrolled loops, and calls of helpers, whether they come to a statement or not


class Builder:
    """The statements of the block being read, and all variables made so far."""

    def __init__(self) -> None:
        self._statements = 0
        self._rounds = 0
        self._unrolled: list[tuple[int, Span]] = []  # the loops being unrolled, each with its number of rounds
        self.variables: list[ir.Variable] = []
        self.outside = Outside()  # what all functions read here have taken from outside of them
        self._block: list[ir.Statement] = []
        self._fixed: set[ir.Variable] = set()
        self.depth = 0  # how many run-time branches and loops stand around the current block

    def emit(self, statement: ir.Statement) -> None:
        self._block.append(statement)
        self._statements += 1
        if self._statements > MOST_STATEMENTS:
            self._refuse_size(statement.span)

    @contextmanager
    def unrolling(self, rounds: int, span: Span) -> Generator[None]:
        """Around the rounds of a loop that is unrolled."""
        self._unrolled.append((rounds, span))
        if rounds > MOST_ROUNDS:
            self._refuse_size(span)
        yield
        self._unrolled.pop()

    def count_round(self, span: Span) -> None:
        """One more round of an unrolled loop, or one more call."""
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            self._refuse_size(span)

    def _refuse_size(self, span: Span) -> NoReturn:
        """With the line of the loop that has the most rounds, if there is one."""
        if not self._unrolled:
            raise KernelError(
                span, f"expected a kernel of at most {MOST_STATEMENTS} statements, helpers included, e.g. a loop "
                "`for i in dynamic_range(U32(0), U32(8)):` in place of calls")  # fmt: skip
        rounds, loop = max(self._unrolled, key=lambda found: found[0])
        raise KernelError(
            loop, f"expected loops that unroll to at most {MOST_STATEMENTS} statements in a kernel, and this one has "
            f"{rounds} rounds, e.g. `for i in dynamic_range(U32(0), U32({min(rounds, 0xFFFFFFFF)})):`")  # fmt: skip

    def variable(self, name: str, type: Type, *, fixed: bool = False) -> ir.Variable:
        """A fresh variable; `fixed` where it is assigned in one place only."""
        made = ir.Variable(name, type)
        self.variables.append(made)
        if fixed:
            self._fixed.add(made)
        return made

    def hold(self, name: str, value: ir.Expression, span: Span) -> ir.Expression:
        """The value as it is now, however the variables in it may change later; computed once."""
        if isinstance(value, ir.Const | ir.Argument | ir.Identity | ir.Length):
            return value
        if isinstance(value, ir.Read) and value.variable in self._fixed:
            return value
        variable = self.variable(name, value.type, fixed=True)
        self.emit(ir.Assign(variable, value, span))
        return ir.Read(variable, span)

    @contextmanager
    def nested(self) -> Generator[list[ir.Statement]]:
        """Collects what is emitted inside into a block of its own."""
        outer, self._block = self._block, []
        self.depth += 1
        try:
            yield self._block
        finally:
            self._block = outer
            self.depth -= 1

    def finish(self) -> ir.Block:
        """The whole body, once everything has been read."""
        return tuple(self._block)
