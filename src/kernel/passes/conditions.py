"""Symbolic conditions on linear sums, and the facts that hold where a branch has tested one."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from .facts import Facts, Sum


@attrs.frozen(slots=True)
class AtLeastZero:
    sum: Sum


@attrs.frozen(slots=True)
class Zero:
    sum: Sum


@attrs.frozen(slots=True)
class Both:
    first: Condition
    second: Condition


@attrs.frozen(slots=True)
class Opposite:
    of: Condition


@attrs.frozen(slots=True)
class Chosen:
    """One of two conditions, by a third: what joins at the end of a branch."""

    by: Condition
    then: Condition
    otherwise: Condition


Condition: TypeAlias = AtLeastZero | Zero | Both | Opposite | Chosen | bool | None  # None where nothing is known


def negated(condition: Condition) -> Condition:
    match condition:
        case bool():
            return not condition
        case AtLeastZero():
            return AtLeastZero(condition.sum.scaled(-1).plus(Sum((), -1)))
        case Opposite():
            return condition.of
        case None:
            return None
        case _:
            return Opposite(condition)


def both(first: Condition, second: Condition) -> Condition:
    if first is True:
        return second
    if second is True:
        return first
    return False if first is False or second is False else Both(first, second)


def either(first: Condition, second: Condition) -> Condition:
    return negated(both(negated(first), negated(second)))


def assume(facts: Facts, condition: Condition, holds: bool = True) -> None:
    """Adds the facts that follow from a condition, or from its negation."""
    match condition:
        case AtLeastZero() if holds:
            facts.assume(condition.sum)
        case AtLeastZero():
            assume(facts, negated(condition))
        case Zero() if holds:
            facts.assume(condition.sum)
            facts.assume(condition.sum.scaled(-1))
        case Zero():
            _assume_other_than_zero(facts, condition.sum)
        case Both() if holds:
            assume(facts, condition.first)
            assume(facts, condition.second)
        case Opposite():
            assume(facts, condition.of, not holds)
        case Chosen(otherwise=bool() as otherwise) if otherwise is not holds:
            assume(facts, condition.by)
            assume(facts, condition.then, holds)
        case Chosen(then=bool() as then) if then is not holds:
            assume(facts, condition.by, holds=False)
            assume(facts, condition.otherwise, holds)
        case _:
            pass


def _assume_other_than_zero(facts: Facts, sum: Sum) -> None:
    """Excludes zero where it is an end of the sum's range."""
    if facts.lowest(sum) >= 0:
        facts.assume(sum.plus(Sum((), -1)))
    elif facts.highest(sum) <= 0:
        facts.assume(sum.scaled(-1).plus(Sum((), -1)))
