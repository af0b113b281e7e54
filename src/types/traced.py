"""Symbolic lengths, by tracing: an int that records how it was computed from a length. A schedule made for one is valid
for a range of lengths, in which every comparison on the way has the same outcome, and its numbers are formulas."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import product
from operator import add, ge, gt, le, lt, mul, sub
from typing import Any, NoReturn, TypeAlias

import attrs

from .errors import UnsupportedTypeError


class Operator(Enum):
    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    QUOTIENT = "/"  # rounded down
    BLOCKS = "^"  # a quotient, rounded up


_COMPUTE: dict[Operator, Callable[[int, int], int]] = {
    Operator.PLUS: add, Operator.MINUS: sub, Operator.TIMES: mul, Operator.QUOTIENT: lambda a, b: a // b,
    Operator.BLOCKS: lambda a, b: -(-a // b),
}  # fmt: skip


class Unknown(Enum):
    LENGTH = "n"
    ROWS = "r"  # never traced


@attrs.frozen
class Formula:
    """A node of an expression tree."""

    operator: Operator
    left: Term
    right: Term


Term: TypeAlias = int | Unknown | Formula


def value_at(term: Term, length: int, rows: int = 1) -> int:
    """Evaluates a term for a length and a number of rows."""
    if type(term) is int:  # as half of them are, by far the quickest to tell
        return term
    match term:
        case Unknown.LENGTH:
            return length
        case Unknown.ROWS:
            return rows
        case Formula(operator, left, right):
            return _COMPUTE[operator](value_at(left, length, rows), value_at(right, length, rows))
        case _:
            return int(term)


def term_of(number: int) -> Term:
    """The formula of a traced int; a plain int itself."""
    return number.term if isinstance(number, Traced) else number


def bounds_of(term: Term, first: int, last: int) -> tuple[int, int]:
    """Lower and upper bounds of a term over a range of lengths, by interval arithmetic: they may not be tight where the
    length is in several of its parts. Raises ZeroDivisionError for a divisor that may be 0."""
    if not isinstance(term, Formula):
        return value_at(term, first), value_at(term, last)
    lefts, rights = (bounds_of(side, first, last) for side in (term.left, term.right))
    if term.operator in (Operator.QUOTIENT, Operator.BLOCKS) and rights[0] <= 0 <= rights[1]:
        raise ZeroDivisionError
    corners = [_COMPUTE[term.operator](left, right) for left, right in product(lefts, rights)]
    return min(corners), max(corners)


def _made(operator: Operator, left: Term, right: Term) -> Term:
    """A formula, simplified."""
    match operator, left, right:
        case (Operator.PLUS, _, 0) | (Operator.MINUS, _, 0) | (Operator.TIMES | Operator.QUOTIENT, _, 1):
            return left
        case (Operator.PLUS, 0, _) | (Operator.TIMES, 1, _):
            return right
        case Operator.TIMES, int(), _:
            return _made(operator, right, left)
        case Operator.MINUS, 0, Formula(Operator.QUOTIENT, Formula(Operator.MINUS, 0, inner), divisor):
            return Formula(Operator.BLOCKS, inner, divisor)
        case Operator.MINUS, 0, Formula(Operator.MINUS, 0, inner):
            return inner
        case _:
            return Formula(operator, left, right)


@attrs.define
class Range:
    """The lengths around a sample, both ends included, for which all comparisons so far have the same outcome."""

    sample: int
    first: int
    last: int

    def narrow(self, outcomes: Callable[[int, int], set[bool]]) -> None:
        """Restricts the range to lengths between which a condition has one outcome, as for the sample."""
        self.first = self._end(lambda end: len(outcomes(end, self.sample)) == 1, self.first)
        self.last = self._end(lambda end: len(outcomes(self.sample, end)) == 1, self.last)

    def _end(self, holds: Callable[[int], bool], end: int) -> int:
        """The length farthest from the sample, towards an end, up to which a condition holds: a binary search."""
        if holds(end):
            return end
        inside, outside = self.sample, end
        while abs(inside - outside) > 1:
            middle = (inside + outside) // 2
            if holds(middle):
                inside = middle
            else:
                outside = middle
        return inside


def _arithmetic(operator: Operator, *, reflected: bool = False) -> Callable[[Any, int], int]:
    def method(self: Traced, other: int, /) -> int:
        return self.made_by(operator, other, self) if reflected else self.made_by(operator, self, other)

    return method


def _comparison(relation: Callable[[int, int], bool]) -> Callable[[Any, int], bool]:
    return lambda self, other: self.is_as(relation, other)


class Traced(int):
    """An int computed from a length."""

    term: Term
    range: Range

    @classmethod
    def of(cls, sample: int, first: int, last: int) -> Traced:
        """A length to trace, valid at most from first to last."""
        return _traced(sample, Unknown.LENGTH, Range(sample, first, last))

    __add__, __radd__ = _arithmetic(Operator.PLUS), _arithmetic(Operator.PLUS, reflected=True)
    __sub__, __rsub__ = _arithmetic(Operator.MINUS), _arithmetic(Operator.MINUS, reflected=True)
    __mul__, __rmul__ = _arithmetic(Operator.TIMES), _arithmetic(Operator.TIMES, reflected=True)
    __floordiv__, __rfloordiv__ = _arithmetic(Operator.QUOTIENT), _arithmetic(Operator.QUOTIENT, reflected=True)
    __lt__, __le__, __gt__, __ge__ = (_comparison(relation) for relation in (lt, le, gt, ge))

    def __mod__(self, other: int, /) -> int:
        return self - self // other * other

    def __lshift__(self, other: int, /) -> int:
        return self * (1 << other)

    def __rshift__(self, other: int, /) -> int:
        return self // (1 << other)

    def __neg__(self) -> int:
        return self.made_by(Operator.MINUS, 0, self)

    def __pos__(self) -> int:
        return self

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, int):
            return False
        return not self.is_as(lt, other) and not self.is_as(gt, other)

    def __ne__(self, other: object, /) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self != 0

    def bit_length(self) -> int:
        """A plain int: the range is narrowed to values of this bit length."""
        bits = int(self).bit_length()
        if int(self) < 0:  # the bit length of the absolute value
            self.is_as(gt, -(1 << bits))
            self.is_as(le, -((1 << bits) // 2))
        else:
            self.is_as(lt, 1 << bits)
            self.is_as(ge, (1 << bits) // 2)
        return bits

    def __hash__(self) -> NoReturn:
        raise TypeError("a length that stands for others is no key: what is kept for it would be found for one of them")

    def made_by(self, operator: Operator, left: int, right: int) -> int:
        plain = _COMPUTE[operator](int(left), int(right))
        term = _made(operator, term_of(left), term_of(right))
        return term if isinstance(term, int) else _traced(plain, term, self.range)

    def is_as(self, relation: Callable[[int, int], bool], other: int) -> bool:
        """Compares, and narrows the range to lengths with the same outcome."""
        difference = Formula(Operator.MINUS, self.term, term_of(other))
        if difference.left != difference.right:
            self.range.narrow(lambda first, last: _outcomes(relation, difference, first, last))
        return relation(int(self), int(other))


def _untraced(self: Traced, *others: object) -> NoReturn:
    raise UnsupportedTypeError(
        "a length that stands for others: expected +, -, *, //, %, << and >> by numbers, and comparisons; a quotient "
        "rounded up is `-(-length // tile)`"
    )


# Those of int, whose results would stand for the sample alone.
for _name in ("and", "or", "xor", "pow", "truediv", "divmod", "mod", "lshift", "rshift"):
    setattr(Traced, f"__r{_name}__", _untraced)
    if f"__{_name}__" not in vars(Traced):
        setattr(Traced, f"__{_name}__", _untraced)


def _traced(value: int, term: Term, range: Range) -> Traced:
    made = Traced(value)
    made.term, made.range = term, range
    return made


def _outcomes(relation: Callable[[int, int], bool], term: Term, first: int, last: int) -> set[bool]:
    """The possible outcomes of comparing a term with 0 over a range of lengths."""
    try:
        return {relation(end, 0) for end in bounds_of(term, first, last)}
    except ZeroDivisionError:
        return {False, True}
