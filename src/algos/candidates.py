"""Candidates of top-k: (word, index) as one state, of which no two are equal, so that results do not depend on the
order in which atomics happen, and rows of equal elements are no special case. With digits, for radix select."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import attrs

from ..kernel.language import *
from ..types.keys import RankKey
from .bitonic import to_ordered
from .sizes import LARGEST_U32

_DIGIT_BITS = 4
DIGITS = 1 << _DIGIT_BITS  # the number of values of a digit


@attrs.frozen
class NarrowCandidate:
    """A 32-bit word and the index, in one U64."""

    bits: U64

    @classmethod
    def of(cls, word: U32 | U64, place: U32) -> NarrowCandidate:
        return NarrowCandidate((U64(word) << 32) | U64(place))

    @classmethod
    def last(cls) -> NarrowCandidate:
        """What comes after all elements."""
        return NarrowCandidate(U64((1 << 64) - 1))

    @classmethod
    def last_element(cls) -> NarrowCandidate:
        """What no element comes after."""
        return NarrowCandidate(U64((1 << 64) - 2))

    @property
    def place(self) -> U32:
        return U32(self.bits)

    def __lt__(self, other: NarrowCandidate, /) -> Bool:
        return self.bits < other.bits

    def digit(self, number: U32) -> U32:
        """A digit, counted from the most significant."""
        return U32(self.bits >> (60 - number * _DIGIT_BITS)) & (DIGITS - 1)

    def with_digit(self, number: U32, digit: U32) -> NarrowCandidate:
        shift = 60 - number * _DIGIT_BITS
        return NarrowCandidate((self.bits & ~(U64(DIGITS - 1) << shift)) | (U64(digit) << shift))

    def begins_as(self, other: NarrowCandidate, number: U32) -> Bool:
        """Whether so many digits are the same."""
        return ((self.bits ^ other.bits) >> 1) >> (63 - number * _DIGIT_BITS) == 0


@attrs.frozen
class WideCandidate:
    """A 64-bit word, and the index in a U32 of its own."""

    word: U64
    place: U32

    @classmethod
    def of(cls, word: U32 | U64, place: U32) -> WideCandidate:
        return WideCandidate(U64(word), place)

    @classmethod
    def last(cls) -> WideCandidate:
        return WideCandidate(U64((1 << 64) - 1), U32(LARGEST_U32))

    @classmethod
    def last_element(cls) -> WideCandidate:
        return WideCandidate(U64((1 << 64) - 1), U32(LARGEST_U32 - 1))

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
        if number < 16:
            return NarrowCandidate(self.word).begins_as(NarrowCandidate(other.word), number)
        return (self.word == other.word) & (((self.place ^ other.place) >> 1) >> (95 - number * _DIGIT_BITS) == 0)


C = TypeVar("C", NarrowCandidate, WideCandidate)


@attrs.frozen
class First(Generic[E, N, C]):
    """The minimum of candidates in an order, as a monoid."""

    key: SortableKey[E, N]
    order: SortOrder
    state: type[C]

    @property
    def element(self) -> type[E]:
        return self.key.element

    def identity(self) -> C:
        return self.state.last()

    def lift(self, element: E, index: U32) -> C:
        return self.state.of(to_ordered(RankKey(self.key), element, self.order), index)

    def combine(self, a: C, b: C) -> C:
        return a if a < b else b


def first_of(key: SortableKey[E, N], order: SortOrder) -> Monoid[E, Any]:
    state: Any = WideCandidate if cast(object, key.word) is U64 else NarrowCandidate
    return First[E, N, Any](key, order, state)


def digits_of(state: object) -> int:
    return 16 if state is NarrowCandidate else 24
