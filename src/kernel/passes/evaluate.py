"""Symbolic evaluation of expressions, given the facts at a point of the program.

An integer is a linear sum modulo 2**bits of its type, so intermediate sums and differences may wrap. Where it is
compared, divided or used as an index it must be exact: the sum itself if that is proven to fit the type, else an
unknown with the type's range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...types import ops
from ...types.layout import Type, bounds
from .. import ir
from .facts import UNKNOWN, Condition, Facts, Sum, assume, at_least_zero, both, either, negated, number, zero

Value: TypeAlias = "Sum | Condition"


class Evaluator:
    """Evaluates expressions by the current values of variables and the current facts."""

    def __init__(self, facts: Facts, launch: Mapping[object, int], identities: Mapping[ir.Builtin, Sum]) -> None:
        self.facts = facts
        self.variables: dict[ir.Variable, Value] = {}
        self._launch = launch  # values of parameters, lengths of memories
        self._identities = identities
        self._known: dict[object, Sum] = {}  # memoised results, so equal operations give one unknown; newest last

    # -- scopes of facts -------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int]:
        return self.facts.mark(), len(self._known)

    def roll_back(self, mark: tuple[int, int]) -> None:
        """Drops the facts assumed since the mark, and the results that may depend on them."""
        facts, known = mark
        self.facts.roll_back(facts)
        while len(self._known) > known:
            self._known.popitem()

    def _keep(self, key: object, found: Sum) -> Sum:
        return self._known.setdefault(key, found)

    # -- expressions -----------------------------------------------------------------------------------

    def exact(self, expression: ir.Expression) -> Sum:
        """The exact value, not modulo the type's width."""
        value = self.of(expression)
        return self.fitted(value, expression.type) if isinstance(value, Sum) else self.any(expression.type)

    def fitted(self, value: Sum, type: Type) -> Sum:
        """The exact value of a sum that is known modulo the type's width."""
        low, high = bounds(type)
        if value.is_constant:
            return number((value.constant - low) % (high - low + 1) + low)
        if self.facts.within(value, low, high):
            return value
        return self._once(("fitted", value, type), low, high)

    def any(self, type: Type) -> Sum:
        low, high = bounds(type) if not type.is_float else (0, 0)
        return self.facts.unknown(low, high)

    def of(self, expression: ir.Expression) -> Value:
        match expression:
            case ir.Const():
                if expression.type is Type.BOOL:
                    return bool(expression.value)
                return UNKNOWN if expression.type.is_float else number(int(expression.value))
            case ir.Read():
                return self._read(expression.variable)
            case ir.Argument():
                return self._given(expression.parameter, expression.type)
            case ir.Length():
                return self._given(expression.memory, Type.U32)
            case ir.Identity():
                return self._identities[expression.builtin]
            case ir.Apply() if expression.type.is_float:
                return UNKNOWN
            case ir.Apply() if expression.type is Type.BOOL:
                return self._condition(expression)
            case ir.Apply():
                return self._number(expression)

    def _read(self, variable: ir.Variable) -> Value:
        if variable not in self.variables:
            whole = not variable.type.is_float and variable.type is not Type.BOOL
            self.variables[variable] = self.any(variable.type) if whole else UNKNOWN
        return self.variables[variable]

    def _given(self, thing: object, type: Type) -> Value:
        value = self._launch.get(thing)
        if value is None:
            return UNKNOWN if type.is_float or type is Type.BOOL else self._once(("given", thing), *bounds(type))
        return bool(value) if type is Type.BOOL else number(value)

    def _once(self, key: object, low: int, high: int) -> Sum:
        """An unknown that is the same for equal keys."""
        return self._known[key] if key in self._known else self._keep(key, self.facts.unknown(low, high))

    # -- conditions ------------------------------------------------------------------------------------

    def _condition(self, node: ir.Apply) -> Condition:
        first = node.operands[0]
        if node.op is ops.INVERT:
            return negated(self.condition(first))
        if first.type is Type.BOOL and node.op in (ops.AND, ops.OR):
            join = both if node.op is ops.AND else either
            return join(self.condition(first), self.condition(node.operands[1]))
        if first.type.is_float or first.type is Type.BOOL or node.op not in _COMPARISONS:
            return UNKNOWN
        a, b = (self.exact(operand) for operand in node.operands)
        if node.op in (ops.EQ, ops.NE):
            equal = zero(a.plus(b, -1))
            return equal if node.op is ops.EQ else negated(equal)
        if node.op in (ops.GT, ops.LE):
            a, b = b, a  # a > b is b < a; a <= b is not b < a
        below = at_least_zero(b.plus(a, -1).plus(number(-1)))
        return below if node.op in (ops.LT, ops.GT) else negated(below)

    def condition(self, expression: ir.Expression) -> Condition:
        value = self.of(expression)
        return UNKNOWN if isinstance(value, Sum) else value

    # -- numbers ---------------------------------------------------------------------------------------

    def _number(self, node: ir.Apply) -> Sum:
        op, operands, type = node.op, node.operands, node.type
        if op in (ops.ADD, ops.ADD_NOWRAP, ops.SUB):
            a, b = (self._modular(operand) for operand in operands)
            return a.plus(b, -1 if op is ops.SUB else 1)
        if op is ops.NEG:
            return self._modular(operands[0]).scaled(-1)
        if op is ops.INVERT:
            return number(-1).plus(self._modular(operands[0]), -1)
        if op is ops.SELECT:
            return self._select(node)
        if op in (ops.CAST, ops.BITCAST):
            return self._converted(operands[0], type)
        if op in (ops.COUNT_ONES, ops.LEADING_ZEROS, ops.TRAILING_ZEROS):
            return self.facts.unknown(0, operands[0].type.bits)
        if op is ops.MUL:
            return self._product(self._modular(operands[0]), self._modular(operands[1]), type)
        if op is ops.SHL:
            return self._shifted_left(node)
        a, b = (self.exact(operand) for operand in operands)
        if op is ops.SHR:
            return self._shifted_right(a, b, type)
        if op is ops.MIN or op is ops.MAX:
            return self._extreme(op, a, b, type)
        if not type.is_unsigned:
            return self.any(type)
        key = (op, a, b)
        if key in self._known:
            return self._known[key]
        if op is ops.FLOORDIV:
            found = self._quotient(a, b, type)
        elif op is ops.MOD:
            found = self._remainder(a, b, type)
        else:
            found = self._bits(op, a, b, type)
        return self._keep(key, found)

    def _modular(self, expression: ir.Expression) -> Sum:
        value = self.of(expression)
        return value if isinstance(value, Sum) else self.any(expression.type)

    def _product(self, a: Sum, b: Sum, type: Type) -> Sum:
        if a.is_constant or b.is_constant:
            return b.scaled(a.constant) if a.is_constant else a.scaled(b.constant)
        a, b = self.fitted(a, type), self.fitted(b, type)
        corners = [x * y for x in self.range(a, type) for y in self.range(b, type)]
        low, high = bounds(type)
        fits = low <= min(corners) and max(corners) <= high
        return self._once((ops.MUL, a, b), *((min(corners), max(corners)) if fits else (low, high)))

    def _shifted_left(self, node: ir.Apply) -> Sum:
        a, amount = self._modular(node.operands[0]), self.exact(node.operands[1])
        bits, (_, most) = node.type.bits, bounds(node.type)
        if amount.is_constant:
            return a.scaled(1 << amount.constant % bits)
        a = self.fitted(a, node.type)
        (low, high), (least, largest) = self.range(a, node.type), self.range(amount, Type.U32)
        if low < 0 or not self.facts.within(amount, 0, bits - 1):
            return self.any(node.type)
        least, largest = max(0, least), min(bits - 1, largest)
        top = high << largest
        return self._once((ops.SHL, a, amount), *((low << least, top) if top <= most else bounds(node.type)))

    def _shifted_right(self, a: Sum, amount: Sum, type: Type) -> Sum:
        if amount.is_constant and type.is_unsigned:
            return self._quotient(a, number(1 << amount.constant % type.bits), type)
        if not type.is_unsigned:
            return self.any(type)
        found = self.facts.unknown(0, self.range(a, type)[1])
        self.facts.assume(a.plus(found, -1))
        return found

    def _quotient(self, a: Sum, b: Sum, type: Type) -> Sum:
        (low, high), (least, most) = self.range(a, type), self.range(b, type)
        if least < 1:
            return self.any(type)  # targets differ in what a division by zero gives
        if b == number(1):
            return a
        key = ("quotient", a, b)
        if key in self._known:
            return self._known[key]
        found = self._keep(key, self.facts.unknown(low // most, high // least))
        if not b.is_constant:
            self.facts.assume(a.plus(found, -1))
            return found
        behind = a.plus(found, -least)
        self.facts.assume(behind)
        self.facts.assume(number(least - 1).plus(behind, -1))
        return found

    def _remainder(self, a: Sum, b: Sum, type: Type) -> Sum:
        least, most = self.range(b, type)
        if least < 1:
            return self.any(type)
        if b.is_constant:
            if self.facts.within(a, 0, b.constant - 1):
                return a
            quotient = self._quotient(a, b, type)
            found = self.facts.unknown(0, b.constant - 1)
            difference = a.plus(quotient, -b.constant).plus(found, -1)
            self.facts.assume(difference)
            self.facts.assume(difference.scaled(-1))
            return found
        found = self.facts.unknown(0, most - 1)
        self.facts.assume(b.plus(found, -1).plus(number(-1)))
        self.facts.assume(a.plus(found, -1))
        return found

    def _extreme(self, op: ops.Op, a: Sum, b: Sum, type: Type) -> Sum:
        (low, high), (other_low, other_high) = self.range(a, type), self.range(b, type)
        is_min = op is ops.MIN
        if self.facts.at_most(a.plus(b, -1), 0):
            return a if is_min else b
        if self.facts.at_least(a.plus(b, -1), 0):
            return b if is_min else a
        pick = min if is_min else max
        found = self.facts.unknown(pick(low, other_low), pick(high, other_high))
        for operand in (a, b):
            self.facts.assume(operand.plus(found, -1) if is_min else found.plus(operand, -1))
        return found

    def _bits(self, op: ops.Op, a: Sum, b: Sum, type: Type) -> Sum:
        high, other_high = (self.range(operand, type)[1] for operand in (a, b))
        if op is ops.AND:
            for mask, other in ((a, b), (b, a)):
                if mask.is_constant and mask.constant & mask.constant + 1 == 0:
                    return self._remainder(other, number(mask.constant + 1), type)
            found = self.facts.unknown(0, min(high, other_high))
            for operand in (a, b):
                self.facts.assume(operand.plus(found, -1))
            return found
        found = self.facts.unknown(0, (1 << max(high, other_high).bit_length()) - 1)
        self.facts.assume(a.plus(b).plus(found, -1))
        if op is ops.OR:
            for operand in (a, b):
                self.facts.assume(found.plus(operand, -1))
        return found

    def _select(self, node: ir.Apply) -> Sum:
        condition, facts = self.condition(node.operands[0]), self.facts
        found: list[tuple[Sum, int, int]] = []
        for operand, holds in zip(node.operands[1:], (True, False), strict=True):
            if isinstance(condition, bool):
                if condition is holds:
                    return self._modular(operand)
                continue
            mark = self.mark()
            assume(facts, condition, holds)
            value = self.exact(operand)
            found.append((value, *self.range(value, node.type)))
            self.roll_back(mark)
        (a, low, high), (b, other_low, other_high) = found
        return a if a == b else facts.unknown(min(low, other_low), max(high, other_high))

    def _converted(self, operand: ir.Expression, to: Type) -> Sum:
        if operand.type.is_float or operand.type is Type.BOOL:
            return self.any(to) if operand.type.is_float else self.facts.unknown(0, 1)
        # truncation, or a cast of the same width, keeps the sum modulo the new width
        return self._modular(operand) if to.bits <= operand.type.bits else self.exact(operand)

    def range(self, value: Sum, type: Type) -> tuple[int, int]:
        """The least and greatest value of a number that fits its type."""
        least, most = bounds(type)
        low, high = max(least, self.facts.lowest(value)), min(most, self.facts.highest(value))
        return (low, high) if low <= high else (least, most)  # contradictory facts: dead code


_COMPARISONS = frozenset({ops.EQ, ops.NE, ops.LT, ops.LE, ops.GT, ops.GE})
