"""The tiles of a radix sort: of one row, of rows of one length, or of portions of one row.

A tile never spans two rows. Kernels are specialised on the kind of layout, so that one row costs no division. Indices
count from 0, and ends are exclusive. A row may end at 2**32 - 1, so sums are kept from overflowing: what remains is
compared, never the end of a tile.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from ..types.scalars import U32, Bool


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

    @property
    def has_rows(self) -> bool:
        """Whether each row has histograms of its own."""
        ...

    @property
    def carries(self) -> bool:
        """Whether a row (portion) continues the one before: its digits start where that one's ended."""
        ...

    @property
    def apart(self) -> U32:
        """The stride of the rows' digit starts in the state buffer."""
        ...

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        """The position of a tile by its number; `tile` is the elements of a full one."""
        ...

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        """What workgroup `group` of `groups` reads, in blocks of `block` elements."""
        ...


@attrs.frozen
class OneRow:
    """All tiles are of one row."""

    num_elements: U32

    @property
    def has_rows(self) -> bool:
        return False

    @property
    def carries(self) -> bool:
        return False

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

    @property
    def has_rows(self) -> bool:
        return True

    @property
    def carries(self) -> bool:
        return False

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

    @property
    def has_rows(self) -> bool:
        return False

    @property
    def carries(self) -> bool:
        return True

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        portion = number // self.tiles
        leader = portion * self.tiles
        return TilePlace(number, portion, leader, leader + self.tiles, U32(0), number * tile, self.num_elements)

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        return OneRow(self.num_elements).share_of(group, groups, block)
