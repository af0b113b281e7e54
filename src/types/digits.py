"""The words of radix sort: digits, their places, and the lanes that share one."""

from __future__ import annotations

from typing import TypeVar

import attrs

from .intrinsics import count_ones, leading_zeros
from .scalars import U32, U64, Bool

W = TypeVar("W", U32, U64)


@attrs.frozen
class Digit:
    """One digit of a word."""

    value: U32


@attrs.frozen
class DigitPlace:
    """Which bits of a word make the digit: the first digit is made of the lowest."""

    number: U32
    bits: int

    @property
    def radix(self) -> int:
        """How many digits there are."""
        return 1 << self.bits

    def digit_of(self, word: W) -> Digit:
        return Digit(U32((word >> (self.number * self.bits)) & (self.radix - 1)))


@attrs.frozen
class Lanes:
    """The lanes of a strand that hold one digit, as one of them sees it."""

    mask: U64  # bit i for lane i; my own is set
    lane: U32

    def before_me(self) -> U32:
        """How many of them come before me."""
        return count_ones(self.mask & ((U64(1) << self.lane) - 1))

    def count(self) -> U32:
        return count_ones(self.mask)

    def leader(self) -> U32:
        """The last of them."""
        return 63 - leading_zeros(self.mask)

    def is_led_by_me(self) -> Bool:
        return self.leader() == self.lane


@attrs.frozen
class StrandLanes:
    """The same of a strand that is no subgroup: a mask in workgroup memory has 32 bits."""

    mask: U32
    lane: U32

    def before_me(self) -> U32:
        return count_ones(self.mask & ((U32(1) << self.lane) - 1))

    def count(self) -> U32:
        return count_ones(self.mask)

    def is_led_by_me(self) -> Bool:
        return 31 - leading_zeros(self.mask) == self.lane
