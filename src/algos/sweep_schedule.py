"""How the words that the sweeps of a radix sort share are laid out, and the launches that set them up."""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.launch import Buffer, Grid, Launch, Role
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.memory import Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from .radix_layout import Layout, ManyRows, OneRow, Portions
from .sweep_state import sweep_clear, sweep_histograms, sweep_row_plans, sweep_row_starts, sweep_starts

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)

MOST_ROUNDS = 4  # of as many workgroups as count at a time, where each counts in one row
_SETTING_UP = 1  # what a workgroup that counts spends besides, in blocks that it could read meanwhile


@attrs.frozen
class SweepState:
    """How the shared words are laid out: status words, starts of digits, histograms, tickets, plans.

    There is a status word for each tile and digit, which all passes use, one after the other. The first rows of them
    stand before the first tile: they are looked at, and then not counted. Where there are many rows, histograms become
    starts where they lie; the passes of a row lie together.
    """

    rows: int
    length: int
    passes: int
    policy: RadixPolicy

    @property
    def tiles(self) -> int:
        """Of one row."""
        return -(-self.length // self.policy.tile)

    @property
    def portion_tiles(self) -> int:
        """Tiles of a portion: one row's, unless it has more elements than a status word counts."""
        return self.tiles if self.length <= self.policy.portion else max(1, self.policy.portion // self.policy.tile)

    @property
    def portions(self) -> int:
        return -(-self.tiles // self.portion_tiles)

    @property
    def status_words(self) -> int:
        return (self.rows * self.tiles + self.policy.lookback) * self.policy.radix

    @property
    def starts(self) -> int:
        return self.status_words

    @property
    def apart(self) -> int:
        """Words for the digits of all passes, of one row or portion."""
        return self.passes * self.policy.radix

    @property
    def histograms(self) -> int:
        return self.starts + (self.portions * self.apart if self.rows == 1 else 0)

    @property
    def tickets(self) -> int:
        """One a pass."""
        return self.histograms + self.rows * self.apart

    @property
    def plans(self) -> int:
        """One a pass."""
        return self.tickets + self.passes

    @property
    def idle(self) -> int:
        """For each pass, in how many rows it has nothing to do; where there is one row, nobody asks."""
        return self.plans + self.passes

    @property
    def words(self) -> int:
        return self.idle + (self.passes if self.rows > 1 else 0)

    def buffer(self) -> Buffer[U32]:
        return Buffer("state", U32, self.words, Role.SCRATCH)

    def start(self, number: int) -> U32:
        """Where a pass's starts of digits begin."""
        return U32(self.starts + number * self.policy.radix)

    def plan(self, number: int) -> U32:
        """Where a pass's plan lies."""
        return U32(self.plans + number)

    def layout(self) -> Layout:
        """Where the tiles of a sweep lie."""
        tiles, apart = U32(self.portion_tiles), U32(self.apart)
        if self.rows > 1:
            return ManyRows(U32(self.rows), U32(self.length), tiles, apart)
        return OneRow(U32(self.length)) if self.portions == 1 else Portions(U32(self.length), tiles, apart)

    def sweeps(self) -> tuple[int, ...]:
        """How many tiles each launch of a pass moves."""
        if self.rows > 1:
            return (self.rows * self.tiles,)
        full, rest = divmod(self.tiles, self.portion_tiles)
        return (*[self.portion_tiles] * full, *([rest] if rest else []))

    def counting_groups(self) -> int:
        """Workgroups that count digits; as many in each row."""
        policy = self.policy
        blocks = -(-self.length // (policy.count_group * policy.count_items))
        if self.rows == 1:
            return min(policy.count_groups, blocks)

        def duration(groups: int) -> int:
            return -(-self.rows * groups // policy.count_groups) * (-(-blocks // groups) + _SETTING_UP)

        most = max(1, min(blocks, MOST_ROUNDS * policy.count_groups // self.rows))
        return self.rows * min(range(1, most + 1), key=duration)


def prepare(
    key: SortableKey[A, W], data: Buffer[A], state: SweepState, order: SortOrder, in_place: bool
) -> tuple[Launch, ...]:
    """Counts all digits, and sets up the state for the passes."""
    policy: RadixPolicy = state.policy
    buffer: Buffer[U32] = state.buffer()
    size, counters = policy.group_size, state.passes * policy.radix * policy.copies
    layout = state.layout() if state.rows > 1 else OneRow(U32(state.length))
    clearing = Grid(min(MOST_ROUNDS * policy.count_groups, -(-(buffer.count - state.histograms) // size)), size)
    return (
        sweep_clear.launch(clearing, buffer, U32(state.histograms)),
        sweep_histograms.launch(
            Grid(state.counting_groups(), policy.count_group), key, data, Workgroup(U32, counters), buffer, layout,
            U32(state.status_words), U32(state.histograms), state.passes, order, policy,
        ),
        *_plans(state, buffer, in_place),
    )  # fmt: skip


def _plans(state: SweepState, buffer: Buffer[U32], in_place: bool) -> tuple[Launch, ...]:
    """From histograms to where digits start, and which passes run."""
    policy, starts, plans = state.policy, U32(state.starts), U32(state.plans)
    shared = Workgroup(U32, policy.scanned)
    if state.rows == 1:
        grid, elements = Grid(state.passes, policy.group_size), RadixParams(U32(state.length))
        return (
            sweep_starts.launch(
                grid, shared, Workgroup(U32, 1), buffer, elements, starts, U32(state.histograms), plans, state.passes,
                in_place, policy,
            ),
        )  # fmt: skip
    idle, grid = U32(state.idle), Grid(state.rows * state.passes, policy.group_size)
    return (
        sweep_row_starts.launch(grid, shared, buffer, U32(state.length), starts, idle, state.passes, policy),
        sweep_row_plans.launch(Grid(1, state.passes), buffer, U32(state.rows), idle, plans, state.passes, in_place),
    )
