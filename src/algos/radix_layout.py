"""The digits of a radix sort, and its tiles: of one row, of rows of one length, or of portions of one row.

A tile never spans two rows. A row may end at 2**32 - 1, so what remains is compared, never the end of a tile.
"""

from __future__ import annotations

from typing import ClassVar, Generic, Protocol, TypeVar

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


class Layout(Protocol):
    """The trait of a layout of tiles. Its run-time numbers are passed with every launch."""

    has_rows: ClassVar[bool]  # whether each row has histograms of its own
    carries: ClassVar[bool]  # whether a row (portion) continues the one before: its digits start where that one's ended

    @property
    def apart(self) -> U32: ...  # the stride of the rows' digit starts in the state buffer
    def tile_at(self, number: U32, tile: int) -> TilePlace: ...  # of `tile` elements
    def share_of(self, group: U32, groups: U32, block: U32) -> Share: ...  # what a workgroup of `groups` reads


@attrs.frozen
class OneRow:
    """All tiles are of one row."""

    num_elements: U32
    has_rows: ClassVar[bool] = False
    carries: ClassVar[bool] = False

    @property
    def apart(self) -> U32:
        return U32(0)

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        none = U32(0)
        return TilePlace(number, none, none, none, none, number * tile, self.num_elements)

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        return Share(U32(0), group * block, self.num_elements, groups * block)


@attrs.frozen
class ManyRows:
    """Contiguous rows of one length."""

    num_rows: U32
    length: U32
    tiles: U32  # of one row
    apart: U32
    has_rows: ClassVar[bool] = True
    carries: ClassVar[bool] = False

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        row = number // self.tiles
        leader, origin = row * self.tiles, row * self.length
        start = origin + (number - leader) * tile
        return TilePlace(number, row, leader, leader + self.tiles, origin, start, origin + self.length)

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        together = groups // self.num_rows  # workgroups of one row
        row = group // together
        origin = row * self.length
        return Share(row, origin + (group - row * together) * block, origin + self.length, together * block)


@attrs.frozen
class Portions:
    """One row, in portions small enough for the 30-bit counts of status words; each launch sweeps one."""

    num_elements: U32
    tiles: U32  # of one portion
    apart: U32
    has_rows: ClassVar[bool] = False
    carries: ClassVar[bool] = True

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        portion = number // self.tiles
        leader = portion * self.tiles
        return TilePlace(number, portion, leader, leader + self.tiles, U32(0), number * tile, self.num_elements)

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        return OneRow(self.num_elements).share_of(group, groups, block)


@attrs.frozen
class Digit:
    value: U32


@attrs.frozen
class DigitPlace:
    """The bits of a word that make a digit; digit 0 is the least significant."""

    number: U32
    bits: int

    @property
    def radix(self) -> int:
        return 1 << self.bits

    def digit_of(self, word: W) -> Digit:
        return Digit(U32((word >> (self.number * self.bits)) & (self.radix - 1)))


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
