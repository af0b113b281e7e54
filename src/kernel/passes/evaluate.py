"""Symbolic evaluation of expressions, given the facts at a point of the program. An integer is a linear sum modulo
2**bits of its type, so intermediate sums and differences may wrap. Where it is compared, divided or used as an index it
must be exact: the sum itself if that is proven to fit the type, else an unknown with the type's range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...types import ops
from ...types.layout import Type
from .. import ir
from .facts import UNKNOWN, Condition, Facts, Sum, assume, at_least_zero, both, either, negated, number, zero

Value: TypeAlias = "Sum | Condition"


class Evaluator:
    """Evaluates expressions by the current values of variables and the current facts."""

    def __init__(self, facts: Facts, launch: Mapping[object, int], builtins: Mapping[ir.Builtin, Sum]) -> None:
        self.facts = facts
        self.variables: dict[ir.Variable, Value] = {}
        self._launch = launch  # values of parameters, lengths of memories
        self._builtins = builtins
        self._known: dict[object, Sum] = {}  # memoised results, so equal operations give one unknown; newest last

    def mark(self) -> tuple[int, int]:
        return self.facts.mark(), len(self._known)

    def roll_back(self, mark: tuple[int, int]) -> None:
        """Drops the facts assumed since the mark, and the results that may depend on them."""
        facts, known = mark
        self.facts.roll_back(facts)
        while len(self._known) > known:
            self._known.popitem()

    def exact(self, expression: ir.Expression) -> Sum:
        """The value as an integer, not modulo 2**bits."""
        value = self.of(expression)
        return self.fitted(value, expression.type) if isinstance(value, Sum) else self.any(expression.type)

    def fitted(self, value: Sum, type: Type) -> Sum:
        """The integer, in the range of the type, that equals a sum modulo 2**bits."""
        low, high = type.bounds
        if value.is_constant:
            return number(type.wrapped(value.constant))
        return value if self.facts.within(value, low, high) else self._result(("fitted", value, type), (low, high))

    def modular(self, expression: ir.Expression) -> Sum:
        value = self.of(expression)
        return value if isinstance(value, Sum) else self.any(expression.type)

    def condition(self, expression: ir.Expression) -> Condition:
        value = self.of(expression)
        return UNKNOWN if isinstance(value, Sum) else value

    def any(self, type: Type) -> Sum:
        return self.facts.unknown(*type.bounds)

    def range(self, value: Sum, type: Type) -> tuple[int, int]:
        """The least and greatest value of a number that fits its type."""
        least, most = type.bounds
        low, high = max(least, self.facts.lowest(value)), min(most, self.facts.highest(value))
        return (low, high) if low <= high else (least, most)  # contradictory facts: dead code

    def of(self, expression: ir.Expression) -> Value:
        match expression:
            case ir.BuiltinValue():
                return self._builtins[expression.builtin]
            case ir.Read():
                variable = expression.variable
                if variable not in self.variables:
                    self.variables[variable] = self.any(variable.type) if _is_number(variable.type) else UNKNOWN
                return self.variables[variable]
            case ir.Const():
                return self._value(expression.value, expression.type)
            case ir.Argument():
                return self._given(expression.parameter, expression.type)
            case ir.Length():
                return self._given(expression.memory, Type.U32)
            case ir.Apply() if _is_number(expression.type):
                return self._number(expression)
            case ir.Apply():
                return self._condition(expression)

    def _given(self, thing: object, type: Type) -> Value:
        return self._value(self._launch[thing], type) if thing in self._launch else UNKNOWN

    def _value(self, value: float, type: Type) -> Value:
        if type is Type.BOOL:
            return bool(value)
        return UNKNOWN if type.is_float else number(int(value))

    def _condition(self, node: ir.Apply) -> Condition:
        op, first = node.op, node.operands[0]
        if node.type is Type.BOOL and op is ops.INVERT:
            return negated(self.condition(first))
        if first.type is Type.BOOL and op in (ops.AND, ops.OR):
            join = both if op is ops.AND else either
            return join(self.condition(first), self.condition(node.operands[1]))
        if not _is_number(first.type) or op not in ops.COMPARISONS:
            return UNKNOWN
        a, b = map(self.exact, node.operands)
        if op in (ops.EQ, ops.NE):
            equal = zero(a.plus(b, -1))
            return equal if op is ops.EQ else negated(equal)
        if op in (ops.GT, ops.LE):
            a, b = b, a  # a > b is b < a; a <= b is not b < a
        below = at_least_zero(b.plus(a, -1).plus(number(-1)))
        return below if op in (ops.LT, ops.GT) else negated(below)

    def _number(self, node: ir.Apply) -> Sum:
        op, operands, type = node.op, node.operands, node.type
        if op in (ops.ADD, ops.ADD_NOWRAP, ops.SUB):
            a, b = map(self.modular, operands)
            return a.plus(b, -1 if op is ops.SUB else 1)
        if op is ops.NEG:
            return self.modular(operands[0]).scaled(-1)
        if op is ops.INVERT:
            return number(-1).plus(self.modular(operands[0]), -1)
        if op is ops.SELECT:
            return self._select(node)
        if op in ops.CONVERSIONS:
            return self._converted(operands[0], type)
        if op in ops.BIT_COUNTS:
            return self.facts.unknown(0, operands[0].type.bits)
        if op is ops.MUL:
            return self._product(self.modular(operands[0]), self.modular(operands[1]), type)
        if op is ops.SHL:
            return self._product(self.modular(operands[0]), self._power(operands[1], type), type)
        a, b = map(self.exact, operands)
        if op in (ops.MIN, ops.MAX):
            return self._extreme(op, a, b, type)
        if not type.is_unsigned:
            return self.any(type)
        key = (op, a, b, type)
        if key in self._known:
            return self._known[key]
        if op is ops.SHR:
            found = self._quotient(a, self._power(operands[1], type), type)
        elif op is ops.FLOORDIV:
            found = self._quotient(a, b, type)
        else:
            found = self._remainder(a, b, type) if op is ops.MOD else self._bits(op, a, b, type)
        return self._known.setdefault(key, found)

    def _result(
        self,
        key: object,
        within: tuple[int, int],
        at_most: Sequence[Sum] = (),
        at_least: Sequence[Sum] = (),
        times: int = 1,
    ) -> Sum:
        """An unknown with a range, the same one for equal keys. `times` the unknown is at most, and at least, these
        sums."""
        if key not in self._known:
            found = self._known[key] = self.facts.unknown(*within)
            for sum in at_most:
                self.facts.assume(sum.plus(found, -times))
            for sum in at_least:
                self.facts.assume(found.scaled(times).plus(sum, -1))
        return self._known[key]

    def _power(self, amount: ir.Expression, type: Type) -> Sum:
        """Two to the power of a shift's amount, which counts modulo the width."""
        exponent, last = self.exact(amount), type.bits - 1
        if exponent.is_constant:
            return number(1 << (exponent.constant & last))
        within = self.facts.within(exponent, 0, last)
        least, most = self.range(exponent, Type.U32) if within else (0, last)
        return self._result(("power", exponent, last), (1 << least, 1 << min(last, most)))

    def _product(self, a: Sum, b: Sum, type: Type) -> Sum:
        if a.is_constant or b.is_constant:
            return b.scaled(a.constant) if a.is_constant else a.scaled(b.constant)
        a, b = self.fitted(a, type), self.fitted(b, type)
        corners = [x * y for x in self.range(a, type) for y in self.range(b, type)]
        low, high = type.bounds
        fits = low <= min(corners) and max(corners) <= high
        return self._result((ops.MUL, a, b, type), (min(corners), max(corners)) if fits else (low, high))

    def _quotient(self, a: Sum, b: Sum, type: Type) -> Sum:
        (low, high), (least, most) = self.range(a, type), self.range(b, type)
        if least < 1:
            return self.any(type)  # targets differ in what a division by zero gives
        if b == number(1):
            return a
        above = (a.plus(number(1 - least)),) if b.is_constant else ()
        return self._result((ops.FLOORDIV, a, b), (low // most, high), (a,), above, times=least)

    def _remainder(self, a: Sum, b: Sum, type: Type) -> Sum:
        least, most = self.range(b, type)
        if least < 1:
            return self.any(type)
        if not b.is_constant:
            return self._result((ops.MOD, a, b), (0, most), (a, b.plus(number(-1))))
        if self.facts.within(a, 0, most - 1):
            return a
        rest = (a.plus(self._quotient(a, b, type), -most),)
        return self._result((ops.MOD, a, b), (0, most - 1), rest, rest)

    def _extreme(self, op: ops.Op, a: Sum, b: Sum, type: Type) -> Sum:
        is_min, difference = op is ops.MIN, a.plus(b, -1)
        if self.facts.at_most(difference, 0):
            return a if is_min else b
        if self.facts.at_least(difference, 0):
            return b if is_min else a
        pick = min if is_min else max
        low, high = map(pick, self.range(a, type), self.range(b, type))
        return self._result((op, a, b), (low, high), *(((a, b), ()) if is_min else ((), (a, b))))

    def _bits(self, op: ops.Op, a: Sum, b: Sum, type: Type) -> Sum:
        for mask, other in ((a, b), (b, a)):
            if op is ops.AND and mask.is_constant and mask.constant & mask.constant + 1 == 0:
                return self._remainder(other, number(mask.constant + 1), type)
        high, other_high = self.range(a, type)[1], self.range(b, type)[1]
        if op is ops.AND:
            return self._result((op, a, b), (0, min(high, other_high)), (a, b))
        most = (1 << max(high, other_high).bit_length()) - 1
        return self._result((op, a, b), (0, most), (a.plus(b),), (a, b) if op is ops.OR else ())

    def _select(self, node: ir.Apply) -> Sum:
        test, *sides = node.operands
        condition = self.condition(test)
        if isinstance(condition, bool):
            return self.modular(sides[0 if condition else 1])
        found: list[tuple[Sum, int, int]] = []
        for side, holds in zip(sides, (True, False), strict=True):
            mark = self.mark()
            assume(self.facts, condition, holds)
            value = self.exact(side)
            found.append((value, *self.range(value, node.type)))
            self.roll_back(mark)
        (a, low, high), (b, other_low, other_high) = found
        return a if a == b else self.facts.unknown(min(low, other_low), max(high, other_high))

    def _converted(self, operand: ir.Expression, to: Type) -> Sum:
        if not _is_number(operand.type):
            return self.any(to) if operand.type.is_float else self.facts.unknown(0, 1)
        # truncation, or a cast of the same width, keeps the sum modulo the new width
        return self.modular(operand) if to.bits <= operand.type.bits else self.exact(operand)


def _is_number(type: Type) -> bool:
    return not (type.is_float or type is Type.BOOL)
