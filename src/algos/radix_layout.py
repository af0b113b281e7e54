"""The digits of a radix sort, and its tiles: of one row, of rows of one length, or of portions of one row.

A tile never spans two rows. A row may end at 2**32 - 1, so what remains is compared, never the end of a tile.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..types.intrinsics import count_ones, leading_zeros
from ..types.scalars import U32, U64, Bool

W = TypeVar("W", U32, U64)


@attrs.frozen
class TilePlace:
    """The position of a tile. Its `row` is what its digits are counted in: with portions, the portion."""

    number: U32  # among the tiles of all rows
    row: U32
    leader: U32  # the number of the row's first tile
    next_leader: U32  # and of the next row's, if there is one
    origin: U32  # the index of the row's first element; with portions, that of the first portion
    start: U32  # the index of the tile's first element
    end: U32  # one past the row's last element; with portions, past that of the last portion

    def leads(self) -> Bool:
        """Whether it is the first tile of its row."""
        return self.number == self.leader

    def is_last_of_full_row(self) -> Bool:
        """Whether the next tile is of another row; unspecified for the array's last tile."""
        return self.number + 1 == self.next_leader

    def first(self) -> U32:
        """The index of its first element in the row."""
        return self.start - self.origin

    def remaining(self) -> U32:
        """The elements from its start to the row's end: fewer than a full tile's, or more."""
        return self.end - self.start


@attrs.frozen
class Share:
    """The blocks of a row that a workgroup of the histogram kernel reads, in a strided loop."""

    row: U32
    begin: U32  # the index of the first block
    end: U32  # one past the row's last element
    step: U32  # from one block to the next


@attrs.frozen
class Layout:
    """Tiles of one row; of several rows of one length; or of one row in portions small enough for the 30-bit counts of
    status words, each swept by a launch. Its run-time numbers are passed with every launch."""

    length: U32  # of a row
    rows: U32
    tiles: U32  # of a row, or of a portion
    apart: U32  # the stride of the rows' (portions') digit starts in the state buffer
    has_rows: bool = attrs.field(default=False, kw_only=True)  # each with histograms of its own
    # whether a portion continues the one before: its digits start where that one's ended
    carries: bool = attrs.field(default=False, kw_only=True)

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        """The place of a tile of `tile` elements."""
        none = U32(0)
        if not self.has_rows and not self.carries:
            return TilePlace(number, none, none, none, none, number * tile, self.length)
        row = number // self.tiles
        leader = row * self.tiles
        if self.carries:
            return TilePlace(number, row, leader, leader + self.tiles, none, number * tile, self.length)
        origin = row * self.length
        start = origin + (number - leader) * tile
        return TilePlace(number, row, leader, leader + self.tiles, origin, start, origin + self.length)

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        """What a workgroup of `groups` reads."""
        if not self.has_rows:
            return Share(U32(0), group * block, self.length, groups * block)
        together = groups // self.rows  # workgroups of one row
        row = group // together
        origin = row * self.length
        return Share(row, origin + (group - row * together) * block, origin + self.length, together * block)


@attrs.frozen
class DigitPlace:
    """The bits of a word that make a digit; digit 0 is the least significant."""

    number: U32
    bits: int

    @property
    def radix(self) -> int:
        return 1 << self.bits

    def digit_of(self, word: W) -> U32:
        return U32((word >> (self.number * self.bits)) & (self.radix - 1))


@attrs.frozen
class Lanes(Generic[W]):
    """The lanes that hold the same digit as this one, of a subgroup or of a strand of at most 32."""

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
