"""What is known of integers: sums of unknowns with factors, and inequalities between them.

Everything here is exact arithmetic on whole numbers, without a width: that a machine's sum wraps is for the caller to
know. A proof is a search of a few steps: an unknown of the sum is replaced by what some inequality allows for it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TypeAlias

import attrs

Terms: TypeAlias = tuple[tuple[int, int], ...]  # unknowns by number, in order, each with its factor

_EXPANDED = 12  # sums that one proof looks further from


@attrs.frozen(slots=True)
class Sum:
    """A constant, and unknowns with their factors."""

    terms: Terms
    constant: int

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """This sum, and another one so many times."""
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
    """Unknowns with their ranges, and sums known to be at least 0. What a branch assumes is taken back behind it."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        self._about: list[list[Sum]] = []  # by unknown: the facts it stands in
        self._undo: list[tuple[int, int, int] | Sum] = []  # ranges as they were, and facts

    def unknown(self, low: int, high: int) -> Sum:
        """A number of which only the range is known."""
        self._lows.append(low)
        self._highs.append(high)
        self._about.append([])
        return Sum(((len(self._lows) - 1, 1),), 0)

    def mark(self) -> int:
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Forgets what was assumed since the mark."""
        while len(self._undo) > mark:
            entry = self._undo.pop()
            if isinstance(entry, Sum):
                for unknown, _ in entry.terms:
                    self._about[unknown].pop()
            else:
                unknown, self._lows[unknown], self._highs[unknown] = entry

    def assume(self, fact: Sum) -> None:
        """That a sum is at least 0."""
        if not fact.terms:
            return
        common = math.gcd(*(factor for _, factor in fact.terms))
        if common > 1:  # what is left is a whole number all the same
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
        """A lower bound, from the ranges alone."""
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
        """Whether a sum is proven to be at most so much: the search goes on from the best that was found so far."""
        excess = self.highest(sum) - most
        if excess <= 0:
            return True
        # (how far from proven, by the scale of the sum; a number that is not seen twice; the scale; the sum)
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
        """Sums that are at least so many times this one, and do without one of its unknowns."""
        for unknown, factor in sum.terms:
            for fact in self._about[unknown]:
                other = next(f for u, f in fact.terms if u == unknown)
                if (other > 0) != (factor > 0):
                    times = abs(other) // math.gcd(other, factor)
                    yield times, sum.scaled(times).plus(fact, abs(factor * times // other))
