"""Digits of radix sort: their bits in a word, and the masks of lanes that hold the same digit (match and rank)."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from .intrinsics import count_ones, leading_zeros
from .scalars import U32, U64, Bool

W = TypeVar("W", U32, U64)


@attrs.frozen
class Digit:
    """The value of a digit."""

    value: U32


@attrs.frozen
class DigitPlace:
    """The bits of a word that make a digit; digit 0 is the least significant."""

    number: U32
    bits: int

    @property
    def radix(self) -> int:
        """The number of values of a digit."""
        return 1 << self.bits

    def digit_of(self, word: W) -> Digit:
        return Digit(U32((word >> (self.number * self.bits)) & (self.radix - 1)))


@attrs.frozen
class Lanes(Generic[W]):
    """The lanes that hold the same digit as this one: of a subgroup; or, without subgroups, of a strand of at most 32,
    whose mask is in workgroup memory."""

    mask: W  # bit i for lane i; this lane's is set
    lane: U32
    word: type[W]  # the mask's class

    def before_me(self) -> U32:
        """This lane's rank among them."""
        return count_ones(self.mask & ((self.word(1) << self.lane) - 1))

    def count(self) -> U32:
        return count_ones(self.mask)

    def leader(self) -> U32:
        """The highest of them, which counts for all."""
        return self.word.type.bits - 1 - leading_zeros(self.mask)

    def is_led_by_me(self) -> Bool:
        return self.leader() == self.lane
