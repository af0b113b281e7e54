"""Digits of radix sort: their bits in a word, and the masks of lanes that hold the same digit (match and rank)."""

from __future__ import annotations

from typing import TypeVar

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
class Lanes:
    """The lanes of a subgroup that hold the same digit as this one."""

    mask: U64  # bit i for lane i; this lane's is set
    lane: U32

    def before_me(self) -> U32:
        """This lane's rank among them."""
        return count_ones(self.mask & ((U64(1) << self.lane) - 1))

    def count(self) -> U32:
        return count_ones(self.mask)

    def leader(self) -> U32:
        """The highest of them, which counts for all."""
        return 63 - leading_zeros(self.mask)

    def is_led_by_me(self) -> Bool:
        return self.leader() == self.lane


@attrs.frozen
class StrandLanes:
    """The same without subgroups: a strand of at most 32 lanes, whose mask is in workgroup memory."""

    mask: U32
    lane: U32

    def before_me(self) -> U32:
        return count_ones(self.mask & ((U32(1) << self.lane) - 1))

    def count(self) -> U32:
        return count_ones(self.mask)

    def is_led_by_me(self) -> Bool:
        return 31 - leading_zeros(self.mask) == self.lane
