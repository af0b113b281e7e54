"""Range analysis against all numbers there are: what is known of sums and expressions holds for each of them; and what
holds is known, where it has been so far."""

from __future__ import annotations

import random
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from gpusort.kernel import ir
from gpusort.kernel.passes.evaluate import Evaluator
from gpusort.kernel.passes.facts import (
    Condition,
    Facts,
    Sum,
    assume,
    at_least_zero,
    both,
    either,
    negated,
    number,
    zero,
)
from gpusort.kernel.span import Span
from gpusort.types import ops
from gpusort.types.layout import Type
from tests.reference import Array

HERE = Span(__file__, 1)
Range: TypeAlias = tuple[int, int]

# -- sums of unknowns, and facts about them -----------------------------------------------------------------------


class Known:
    """Unknowns of small ranges, and the values that they may have, by what is assumed."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self.rng, self.facts = rng, Facts()
        lows = [rng.randrange(-4, 5) for _ in range(count)]
        ranges = [range(low, low + rng.randrange(1, 8)) for low in lows]
        self.unknowns = [self.facts.unknown(one[0], one[-1]) for one in ranges]
        self.points: Array = np.array([*product(*ranges)]).reshape(-1, count)

    def sum(self, factors: tuple[int, ...]) -> Sum:
        found = number(self.rng.randrange(-8, 9))
        for unknown in self.unknowns:
            found = found.plus(unknown, self.rng.choice(factors))
        return found.scaled(self.rng.choice((1, 1, 1, -1, 2, 3)))

    def values(self, sum: Sum) -> Array:
        found: Array = np.full(len(self.points), sum.constant)
        for unknown, factor in sum.terms:
            found = found + factor * self.points[:, unknown]
        return found

    def condition(self, depth: int) -> tuple[Condition, Array]:
        """One that holds for some of the points, and for which of them."""
        kind = self.rng.randrange(6 if depth else 3)
        if kind == 3:
            condition, holds = self.condition(depth - 1)
            return negated(condition), ~holds
        if kind > 3:
            (first, holds), (second, other) = self.condition(depth - 1), self.condition(depth - 1)
            return (both(first, second), holds & other) if kind == 4 else (either(first, second), holds | other)
        found = self.sum((0, 0, 1, -1, 2))
        values = self.values(found)
        return (zero(found), values == 0) if kind == 0 else (at_least_zero(found), values >= 0)


def test_what_follows_from_facts_is_so_and_is_known() -> None:
    """As much of it as has been: the search for a proof is bounded, and sees what fractions would satisfy."""
    ends = proven = 0
    for seed in range(600):
        rng = random.Random(f"facts.{seed}")
        known = Known(rng, rng.randrange(1, 5))
        facts, before = known.facts, known.points
        ranges = [(facts.lowest(one), facts.highest(one)) for one in known.unknowns]
        mark = facts.mark()
        for _ in range(rng.randrange(1, 4)):
            condition, holds = known.condition(2)
            side = rng.random() < 0.6 if holds.any() and not holds.all() else bool(holds.all())
            assume(facts, condition, side)
            known.points = known.points[holds if side else ~holds]
        for unknown in known.unknowns:
            values = known.values(unknown)
            low, high = facts.lowest(unknown), facts.highest(unknown)
            assert low <= values.min() <= values.max() <= high, seed
            ends += int(low == values.min()) + int(high == values.max())
        for factors in ((0, 1, -1), (0, 1, 2, -1, -3)):
            wanted = known.sum(factors)
            values = known.values(wanted)
            least, most = int(values.min()), int(values.max())
            assert facts.lowest(wanted) <= least <= most <= facts.highest(wanted)
            assert not facts.at_most(wanted, most - 1), seed
            assert not facts.at_least(wanted, least + 1), seed
            proven += facts.at_most(wanted, most) + facts.at_least(wanted, least)
            proven += facts.within(wanted, least, most)
        facts.roll_back(mark)
        known.points = before
        assert ranges == [(facts.lowest(one), facts.highest(one)) for one in known.unknowns]
        wanted = known.sum((1, -1, 2))
        assert not facts.at_most(wanted, int(known.values(wanted).max()) - 1), "what was rolled back is forgotten"
    assert ends >= 3041
    assert proven >= 3449


# -- expressions of a kernel --------------------------------------------------------------------------------------

_ARITHMETIC = (ops.ADD, ops.ADD, ops.SUB, ops.MUL, ops.MIN, ops.MAX, ops.AND, ops.OR, ops.XOR)
_UNSIGNED = (ops.FLOORDIV, ops.MOD, ops.SHR, ops.SHL)
_COMPARED = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)
_TYPES = (Type.U32, Type.U32, Type.U64, Type.I32)


class Numbers:
    """Variables of small ranges, and what expressions of them are for all their values together."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.type = rng.choice(_TYPES)
        least, most = self.type.bounds
        self.evaluator = Evaluator(Facts(), {}, {})
        ranges = list[range]()
        for _ in range(3):
            start = rng.choice((0, 0, 0, 1, 5, 8, 8, 30, rng.choice((least, most - 9, 1 << 30, (1 << 31) - 4))))
            ranges.append(range(start, min(start + rng.choice((1, 2, 3, 5, 7)), most + 1)))
        points = [*product(*ranges)]
        self.values: dict[ir.Variable, Array] = {}
        for at, one in enumerate(ranges):
            variable = ir.Variable(f"x{at}", self.type)
            self.values[variable] = np.array([point[at] for point in points], self.type.dtype)
            self.evaluator.variables[variable] = self.evaluator.facts.unknown(one[0], one[-1])

    def const(self, value: int, type: Type | None = None) -> ir.Expression:
        return ir.Const(value, type or self.type, HERE)

    def apply(self, op: ops.Op, *operands: ir.Expression, type: Type | None = None) -> ir.Expression:
        return ir.Apply(op, operands, type or self.type, HERE)

    def number(self, depth: int) -> ir.Expression:
        rng, kind = self.rng, self.rng.randrange(14)
        if depth == 0 or kind < 2:
            if rng.random() < 0.3:
                return self.const(rng.choice((0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, self.type.bounds[1])))
            return ir.Read(rng.choice([*self.values]), HERE)
        a, b = self.number(depth - 1), self.number(depth - 1)
        if kind == 2:
            return self.apply(ops.SELECT, self.test(1), a, b)
        if kind == 3:
            return self.apply(ops.NEG if self.type is Type.I32 else ops.INVERT, a)
        if kind == 4:
            other = rng.choice([type for type in (Type.U32, Type.U64, Type.I32, Type.I64) if type is not self.type])
            inside = self.apply(ops.CAST, a, type=other)
            moved = self.apply(rng.choice((ops.ADD, ops.SUB)), inside, self.const(rng.randrange(9), other), type=other)
            return self.apply(ops.CAST, moved)
        if kind == 5:
            return self.apply(ops.CAST, self.test(0))
        if kind == 6 and self.type is Type.U32:
            return self.apply(rng.choice((ops.COUNT_ONES, ops.LEADING_ZEROS, ops.TRAILING_ZEROS)), a)
        if kind > 8 and self.type.is_unsigned:
            op = rng.choice(_UNSIGNED)
            amount = self.const(rng.choice((1, 2, 3, 5, 8, 31, 33)), Type.U32)
            if op in (ops.SHR, ops.SHL):
                return self.apply(op, a, b if self.type is Type.U32 and rng.random() < 0.3 else amount)
            return self.apply(op, a, self.apply(ops.MAX, b, self.const(1)) if rng.random() < 0.4 else self.const(
                rng.choice((1, 2, 3, 4, 7, 8))))  # fmt: skip
        return self.apply(rng.choice(_ARITHMETIC), a, b)

    def test(self, depth: int) -> ir.Expression:
        if depth and self.rng.random() < 0.4:
            op, first = self.rng.choice((ops.AND, ops.OR, ops.INVERT)), self.test(depth - 1)
            operands = (first,) if op is ops.INVERT else (first, self.test(depth - 1))
            return self.apply(op, *operands, type=Type.BOOL)
        return self.apply(self.rng.choice(_COMPARED), self.number(1), self.number(1), type=Type.BOOL)

    def of(self, expression: ir.Expression) -> Array:
        """Of all points: what the table of operations computes."""
        match expression:
            case ir.Const():
                return np.full(len(next(iter(self.values.values()))), expression.value, expression.type.dtype)
            case ir.Read():
                return self.values[expression.variable]
            case ir.Apply():
                to = expression.type if expression.op is ops.CAST else None
                return ops.apply(expression.op, *map(self.of, expression.operands), to=to)
            case _:
                raise AssertionError(expression)

    def keep(self, holds: Array) -> None:
        self.values = {variable: values[holds] for variable, values in self.values.items()}


def test_what_is_known_of_expressions_is_so_and_is_known() -> None:
    """Alone, beside another one, and where a condition holds; as much of it as has been."""
    ends = proven = 0
    for seed in range(500):
        numbers = Numbers(random.Random(f"numbers.{seed}"))
        evaluator = numbers.evaluator
        for _ in range(2):
            test = numbers.test(1)
            condition, holds = evaluator.condition(test), numbers.of(test)
            if isinstance(condition, bool):
                assert (holds == condition).all(), seed
            side = numbers.rng.random() < 0.5 if holds.any() and not holds.all() else bool(holds.all())
            assume(evaluator.facts, condition, side)
            numbers.keep(holds if side else ~holds)
            proven += isinstance(condition, bool)
        found = list[tuple[Sum, list[int]]]()
        for _ in range(4):
            expression = numbers.number(numbers.rng.choice((1, 1, 2)))
            value, values = evaluator.exact(expression), [int(one) for one in numbers.of(expression)]
            low, high = evaluator.range(value, numbers.type)
            assert low <= min(values) <= max(values) <= high, (seed, expression)
            proven += evaluator.exact(expression) == value  # one number, whenever it is asked for
            ends += int(low == min(values)) + int(high == max(values))
            found.append((value, values))
        for (a, values), (b, others) in pairwise(found):
            apart = a.plus(b, -1)
            differences = [one - other for one, other in zip(values, others, strict=True)]
            assert not evaluator.facts.at_most(apart, max(differences) - 1), seed
            assert not evaluator.facts.at_least(apart, min(differences) + 1), seed
            proven += evaluator.facts.at_most(apart, max(differences))
            proven += evaluator.facts.at_least(apart, min(differences))
    assert ends >= 3002
    assert proven >= 3132


def test_products_are_known_up_to_the_last_number_of_a_type() -> None:
    for type, factors in ((Type.U32, (65_535, 65_537)), (Type.U64, (6_700_417, 2_753_074_036_095))):
        values = Evaluator(Facts(), {}, {})
        a, b, rest = (ir.Variable(name, type) for name in "abc")
        for variable, factor in zip((a, b), factors, strict=True):
            values.variables[variable] = values.facts.unknown(factor - 1, factor)
        product = ir.Apply(ops.MUL, (ir.Read(a, HERE), ir.Read(b, HERE)), type, HERE)
        assert values.range(values.exact(product), type) == ((factors[0] - 1) * (factors[1] - 1), type.bounds[1])
        values.variables[b] = values.facts.unknown(factors[1] - 1, factors[1] + 1)
        assert values.range(values.exact(product), type) == type.bounds, "one more may wrap"
        values.variables[rest] = values.facts.unknown(2, 6)
        for divisor in (7, 8):
            operands = ir.Read(rest, HERE), ir.Const(divisor, type, HERE)
            assert values.exact(ir.Apply(ops.MOD, operands, type, HERE)) == values.variables[rest], "as it is"
