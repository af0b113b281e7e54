"""Linear integer arithmetic: sums of unknowns with coefficients, conditions on them, a small prover of inequalities.
Arithmetic is on unbounded integers; evaluate.py deals with wraparound. To prove that a sum is at most a number, a
bounded best-first search eliminates unknowns from it by known inequalities, one at a time as in Fourier-Motzkin
elimination, until the ranges of the remaining unknowns suffice."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TypeAlias

import attrs

Terms: TypeAlias = tuple[tuple[int, int], ...]  # (unknown, coefficient), sorted by unknown

_EXPANDED = 12  # sums that one proof expands


@attrs.frozen(slots=True)
class Sum:
    """A linear sum: a constant, and unknowns with coefficients."""

    terms: Terms
    constant: int

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """self + times * other."""
        if not other.terms:
            return Sum(self.terms, self.constant + times * other.constant)
        factors = dict(self.terms)
        for unknown, factor in other.terms:
            total = factors.get(unknown, 0) + times * factor
            if total:
                factors[unknown] = total
            else:
                factors.pop(unknown, None)
        return Sum(tuple(sorted(factors.items())), self.constant + times * other.constant)

    def scaled(self, times: int) -> Sum:
        if not times:
            return Sum((), 0)
        return Sum(tuple((unknown, factor * times) for unknown, factor in self.terms), self.constant * times)


def number(value: int) -> Sum:
    return Sum((), value)


class Facts:
    """Ranges of unknowns, and sums known to be at least 0; assumptions can be rolled back to a mark."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        self._about: list[list[Sum]] = []  # by unknown: the facts that have it
        self._undo: list[tuple[int, int, int] | Sum] = []  # the undo log: (unknown, low, high) before, or a fact added

    def unknown(self, low: int, high: int) -> Sum:
        """A new unknown with a range, both ends included."""
        self._lows.append(low)
        self._highs.append(high)
        self._about.append([])
        return Sum(((len(self._lows) - 1, 1),), 0)

    def mark(self) -> int:
        return len(self._undo)

    def roll_back(self, mark: int) -> None:
        """Rolls back what was assumed since the mark."""
        while len(self._undo) > mark:
            entry = self._undo.pop()
            if isinstance(entry, Sum):
                for unknown, _ in entry.terms:
                    self._about[unknown].pop()
            else:
                unknown, self._lows[unknown], self._highs[unknown] = entry

    def assume(self, fact: Sum) -> None:
        """Adds the fact that a sum is at least 0, and tightens the ranges of its unknowns."""
        common = math.gcd(*(factor for _, factor in fact.terms))
        if common > 1:  # rounding the constant down is right, as the rest is a whole number
            terms = tuple((unknown, factor // common) for unknown, factor in fact.terms)
            fact = Sum(terms, fact.constant // common)
        high = self.highest(fact)
        for unknown, factor in fact.terms:
            low_now, high_now = self._lows[unknown], self._highs[unknown]
            if factor > 0:
                others = high - factor * high_now
                low, most = max(low_now, -(others // factor)), high_now
            else:
                others = high - factor * low_now
                low, most = low_now, min(high_now, others // -factor)
            if (low, most) != (low_now, high_now):
                self._undo.append((unknown, low_now, high_now))
                self._lows[unknown], self._highs[unknown] = low, most
        if len(fact.terms) > 1:
            self._undo.append(fact)
            for unknown, _ in fact.terms:
                self._about[unknown].append(fact)

    def lowest(self, sum: Sum) -> int:
        """A lower bound, from the ranges of the unknowns alone."""
        low = sum.constant
        for unknown, factor in sum.terms:
            low += factor * (self._lows[unknown] if factor > 0 else self._highs[unknown])
        return low

    def highest(self, sum: Sum) -> int:
        high = sum.constant
        for unknown, factor in sum.terms:
            high += factor * (self._highs[unknown] if factor > 0 else self._lows[unknown])
        return high

    def at_most(self, sum: Sum, most: int) -> bool:
        """Whether sum <= most can be proven, by a best-first search."""
        excess = self.highest(sum) - most
        if excess <= 0:
            return True
        # (distance from proven relative to the scale; a tie-breaker; the scale; a sum that is at least scale * sum)
        waiting: list[tuple[float, int, int, Sum]] = [(excess, 0, 1, sum)]
        seen = {sum}
        for _ in range(_EXPANDED):
            if not waiting:
                return False
            _, _, scale, found = heapq.heappop(waiting)
            for times, larger in self._larger(found):
                if larger in seen:
                    continue
                seen.add(larger)
                whole = scale * times
                # as whole numbers, sum <= most is the same as whole * sum <= whole * most + whole - 1
                excess = self.highest(larger) - (whole * most + whole - 1)
                if excess <= 0:
                    return True
                heapq.heappush(waiting, (excess / whole, len(seen), whole, larger))
        return False

    def at_least(self, sum: Sum, least: int) -> bool:
        return self.at_most(sum.scaled(-1), -least)

    def within(self, sum: Sum, low: int, high: int) -> bool:
        return self.at_least(sum, low) and self.at_most(sum, high)

    def _larger(self, sum: Sum) -> Iterator[tuple[int, Sum]]:
        """Pairs (times, larger) where larger >= times * sum, with one unknown eliminated by a fact."""
        for unknown, factor in sum.terms:
            for fact in self._about[unknown]:
                other = next(f for u, f in fact.terms if u == unknown)
                if other * factor < 0:
                    times = abs(other) // math.gcd(other, factor)
                    yield times, sum.scaled(times).plus(fact, abs(factor * times // other))


# -- conditions: the facts that hold where a Bool is true, and those that hold where it is false -----------------


@attrs.frozen(slots=True)
class NotZero:
    """The fact that a sum is not zero."""

    sum: Sum


@attrs.frozen(slots=True)
class Known:
    """The facts on either side of a branch: sums that are at least zero, or that are not zero."""

    true: tuple[Sum | NotZero, ...] = ()
    false: tuple[Sum | NotZero, ...] = ()


Condition: TypeAlias = Known | bool
UNKNOWN = Known()


def at_least_zero(sum: Sum) -> Condition:
    return sum.constant >= 0 if sum.is_constant else Known((sum,), (number(-1).plus(sum, -1),))


def zero(sum: Sum) -> Condition:
    return sum.constant == 0 if sum.is_constant else Known((sum, sum.scaled(-1)), (NotZero(sum),))


def negated(condition: Condition) -> Condition:
    return not condition if isinstance(condition, bool) else Known(condition.false, condition.true)


def both(first: Condition, second: Condition) -> Condition:
    if isinstance(first, bool):
        return second if first else False
    if isinstance(second, bool):
        return first if second else False
    return Known(first.true + second.true)


def either(first: Condition, second: Condition) -> Condition:
    return negated(both(negated(first), negated(second)))


def assume(facts: Facts, condition: Condition, holds: bool = True) -> None:
    """Adds the facts that follow from a condition, or from its negation."""
    if not isinstance(condition, bool):
        for fact in condition.true if holds else condition.false:
            if isinstance(fact, Sum):
                facts.assume(fact)
            elif facts.lowest(fact.sum) >= 0:  # zero is excluded where it is an end of the sum's range
                facts.assume(fact.sum.plus(number(-1)))
            elif facts.highest(fact.sum) <= 0:
                facts.assume(fact.sum.scaled(-1).plus(number(-1)))
