"""What a Bool says: the facts that hold where it is true, and those where it is false."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from .facts import Facts, Sum, number


@attrs.frozen(slots=True)
class NotZero:
    """The fact that a sum is not zero."""

    sum: Sum


@attrs.frozen(slots=True)
class Known:
    """The facts on either side of a branch: sums that are at least zero, or that are not zero."""

    true: tuple[Sum | NotZero, ...] = ()
    false: tuple[Sum | NotZero, ...] = ()

    def where(self, holds: bool) -> tuple[Sum | NotZero, ...]:
        return self.true if holds else self.false


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


def chosen(by: Condition, then: Condition, otherwise: Condition) -> Condition:
    """One of two conditions, by a third: what joins at the end of a branch."""

    def where(holds: bool) -> tuple[Sum | NotZero, ...]:
        if otherwise is not holds and isinstance(otherwise, bool):
            return (*_facts(by, True), *_facts(then, holds))
        if then is not holds and isinstance(then, bool):
            return (*_facts(by, False), *_facts(otherwise, holds))
        return ()

    return Known(where(True), where(False))


def assume(facts: Facts, condition: Condition, holds: bool = True) -> None:
    """Adds the facts that follow from a condition, or from its negation."""
    for fact in _facts(condition, holds):
        if isinstance(fact, Sum):
            facts.assume(fact)
        elif facts.lowest(fact.sum) >= 0:  # zero is excluded where it is an end of the sum's range
            facts.assume(fact.sum.plus(number(-1)))
        elif facts.highest(fact.sum) <= 0:
            facts.assume(fact.sum.scaled(-1).plus(number(-1)))


def _facts(condition: Condition, holds: bool) -> tuple[Sum | NotZero, ...]:
    return () if isinstance(condition, bool) else condition.where(holds)
