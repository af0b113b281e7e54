"""Where the tiles of a radix sort lie: in one row, in rows of one length, or in portions of one row.

A tile never spans two rows. Which of the three it is, is known when a kernel is compiled: one row costs no division.
Indices count from 0, and ends are exclusive. A row may end where 32 bits end, so no sum here goes beyond it: what is
left is asked for, never whether a tile's end is less than another.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from ..types.scalars import U32, Bool


@attrs.frozen
class TilePlace:
    """Where one tile lies. Its row is what its digits are counted in: for portions of a row, a portion."""

    number: U32  # among the tiles of all rows
    row: U32
    leader: U32  # the number of its row's first tile
    next_leader: U32  # and that of the next row's, if there is one
    origin: U32  # where its row begins in the array; for portions, where the first of them does
    start: U32  # where it begins in the array
    end: U32  # where its row ends in the array; for portions, where the last of them does

    def leads(self) -> Bool:
        """Whether no tile of its row stands before it."""
        return self.number == self.leader

    def is_last_of_full_row(self) -> Bool:
        """Whether the next tile begins another row; where the array ends nobody has to know."""
        return self.number + 1 == self.next_leader

    def first(self) -> U32:
        """Where it begins in its row."""
        return self.start - self.origin

    def remaining(self) -> U32:
        """How many elements there are from its start on: perhaps fewer than it could hold, perhaps more."""
        return self.end - self.start


@attrs.frozen
class Share:
    """Blocks of a row that one workgroup reads."""

    row: U32
    begin: U32  # where the first of them begins in the array
    end: U32  # where the row ends
    step: U32  # from one to the next


class Layout(Protocol):
    """What tiles are there. Its run-time numbers reach the device with every launch."""

    @property
    def has_rows(self) -> bool:
        """Whether digits are counted row by row."""
        ...

    @property
    def carries(self) -> bool:
        """Whether a row goes on where another ends, so that it starts its digits where that one ended its own."""
        ...

    @property
    def apart(self) -> U32:
        """From the words that say where a row starts its digits to those of the next row."""
        ...

    def tile_at(self, number: U32, tile: int) -> TilePlace:
        """Where a tile lies, of so many elements."""
        ...

    def share_of(self, group: U32, groups: U32, block: U32) -> Share:
        """What a workgroup reads, in blocks of so many elements."""
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
    """Rows of one length that lie one behind the other."""

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
    """One row, in portions whose elements a status word can count; each launch sweeps one."""

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
        return Share(U32(0), group * block, self.num_elements, groups * block)
