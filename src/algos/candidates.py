"""Candidates of top-k: (word, index) as one state, of which no two are equal.

The index breaks ties: equal elements are selected in order of index, rows of equal elements are no special case, and
results do not depend on the order in which atomics happen.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

import attrs

from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey
from ..types.monoids import Monoid
from ..types.scalars import U32, U64, Bool
from .bitonic import to_ordered

E = TypeVar("E")
W = TypeVar("W", U32, U64)

_DIGIT_BITS = 4
DIGITS = 1 << _DIGIT_BITS  # the number of values of a digit
_LAST_INDEX = (1 << 32) - 1


class Candidate(Protocol):
    """An element's word and its index in the row, ordered by word, then by index; with digits, for radix select."""

    @property
    def place(self) -> U32: ...

    def __lt__(self, other: Self, /) -> Bool: ...

    def digit(self, number: U32, /) -> U32:
        """A digit, counted from the most significant."""
        ...

    def with_digit(self, number: U32, digit: U32, /) -> Self: ...

    def begins_as(self, other: Self, number: U32, /) -> Bool:
        """Whether the `number` most significant digits are the same."""
        ...


@attrs.frozen
class NarrowCandidate:
    """A 32-bit word and the index, in one U64."""

    bits: U64

    @property
    def place(self) -> U32:
        return U32(self.bits)

    def __lt__(self, other: NarrowCandidate, /) -> Bool:
        return self.bits < other.bits

    def digit(self, number: U32) -> U32:
        return U32(self.bits >> (60 - number * _DIGIT_BITS)) & (DIGITS - 1)

    def with_digit(self, number: U32, digit: U32) -> NarrowCandidate:
        shift = 60 - number * _DIGIT_BITS
        return NarrowCandidate((self.bits & ~(U64(DIGITS - 1) << shift)) | (U64(digit) << shift))

    def begins_as(self, other: NarrowCandidate, number: U32) -> Bool:
        return ((self.bits ^ other.bits) >> 1) >> (63 - number * _DIGIT_BITS) == 0


@attrs.frozen
class WideCandidate:
    """A 64-bit word, and the index in a U32 of its own."""

    word: U64
    place: U32

    def __lt__(self, other: WideCandidate, /) -> Bool:
        return (self.word < other.word) | ((self.word == other.word) & (self.place < other.place))

    def digit(self, number: U32) -> U32:
        if number < 16:
            return NarrowCandidate(self.word).digit(number)
        return (self.place >> (92 - number * _DIGIT_BITS)) & (DIGITS - 1)

    def with_digit(self, number: U32, digit: U32) -> WideCandidate:
        if number < 16:
            return WideCandidate(NarrowCandidate(self.word).with_digit(number, digit).bits, self.place)
        shift = 92 - number * _DIGIT_BITS
        return WideCandidate(self.word, (self.place & ~(U32(DIGITS - 1) << shift)) | (digit << shift))

    def begins_as(self, other: WideCandidate, number: U32) -> Bool:
        if number <= 16:
            return NarrowCandidate(self.word).begins_as(NarrowCandidate(other.word), number)
        return (self.word == other.word) & (((self.place ^ other.place) >> 1) >> (95 - number * _DIGIT_BITS) == 0)


@attrs.frozen
class NarrowFirst(Generic[E]):
    """The minimum of candidates in an order, as a monoid, for words of 32 bits."""

    key: SortableKey[E, U32]
    order: SortOrder
    state: type[NarrowCandidate] = NarrowCandidate

    @property
    def element(self) -> type[E]:
        return self.key.element

    def identity(self) -> NarrowCandidate:
        return NarrowCandidate(U64((1 << 64) - 1))

    def lift(self, element: E, index: U32) -> NarrowCandidate:
        word = to_ordered(RankKey(self.key), element, self.order)
        return NarrowCandidate((U64(word) << 32) | U64(index))

    def combine(self, a: NarrowCandidate, b: NarrowCandidate) -> NarrowCandidate:
        return a if a < b else b


@attrs.frozen
class WideFirst(Generic[E]):
    """The same for words of 64 bits."""

    key: SortableKey[E, U64]
    order: SortOrder
    state: type[WideCandidate] = WideCandidate

    @property
    def element(self) -> type[E]:
        return self.key.element

    def identity(self) -> WideCandidate:
        return WideCandidate(U64((1 << 64) - 1), U32(_LAST_INDEX))

    def lift(self, element: E, index: U32) -> WideCandidate:
        return WideCandidate(to_ordered(RankKey(self.key), element, self.order), index)

    def combine(self, a: WideCandidate, b: WideCandidate) -> WideCandidate:
        return a if a < b else b


def first_of(key: SortableKey[E, W], order: SortOrder) -> Monoid[E, Any]:
    """The monoid for a key and an order."""
    of: Any = key
    return WideFirst(of, order) if of.word is U64 else NarrowFirst(of, order)


def digits_of(state: object) -> int:
    """The number of digits in a candidate."""
    return 16 if state is NarrowCandidate else 24
