"""The state buffer of sweeps: its layout (status words, digit starts, histograms, tickets, plans), and the launches
that initialise it."""

from __future__ import annotations

import attrs

from ..kernel.language import *
from ..types.params import RadixParams, RadixPolicy
from .radix_layout import Layout, ManyRows, OneRow, Portions
from .sweep_state import sweep_clear, sweep_histograms, sweep_row_plans, sweep_row_starts, sweep_starts

MOST_ROUNDS = 4  # waves of workgroups in the histogram kernel, with many rows
_SETTING_UP = 1  # the fixed cost of a workgroup in it, in blocks read


@attrs.frozen
class SweepState:
    """The layout of the state buffer, in words. There is a status word for each tile and digit value, which all passes
    reuse, and before them a lookback window of unused ones, so that lookback needs no bounds checks. With many rows,
    histograms become digit starts in place."""

    rows: int
    length: int
    passes: int
    policy: RadixPolicy

    @property
    def tiles(self) -> int:
        return -(-self.length // self.policy.tile)

    @property
    def portion_tiles(self) -> int:
        """The tiles in a portion: a row's, unless its elements exceed a status word's count."""
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
        """The words for the digits of all passes, for each row or portion."""
        return self.passes * self.policy.radix

    @property
    def histograms(self) -> int:
        return self.starts + (self.portions * self.apart if self.rows == 1 else 0)

    @property
    def tickets(self) -> int:
        """The index of the tickets, one for each pass."""
        return self.histograms + self.rows * self.apart

    @property
    def plans(self) -> int:
        """The index of the plans, one for each pass."""
        return self.tickets + self.passes

    @property
    def idle(self) -> int:
        """The index of the counts, for each pass, of rows in which it has nothing to do; with many rows only."""
        return self.plans + self.passes

    @property
    def words(self) -> int:
        return self.idle + (self.passes if self.rows > 1 else 0)

    def buffer(self) -> Buffer[U32]:
        return Buffer("state", U32, self.words, Role.SCRATCH)

    def start(self, number: int) -> U32:
        return U32(self.starts + number * self.policy.radix)

    def plan(self, number: int) -> U32:
        return U32(self.plans + number)

    def layout(self) -> Layout:
        tiles, apart = U32(self.portion_tiles), U32(self.apart)
        if self.rows > 1:
            return ManyRows(U32(self.rows), U32(self.length), tiles, apart)
        return OneRow(U32(self.length)) if self.portions == 1 else Portions(U32(self.length), tiles, apart)

    def sweeps(self) -> tuple[int, ...]:
        """The number of tiles of each launch of a pass."""
        if self.rows > 1:
            return (self.rows * self.tiles,)
        full, rest = divmod(self.tiles, self.portion_tiles)
        return (*[self.portion_tiles] * full, *([rest] if rest else []))

    def counting_groups(self) -> int:
        """The workgroups of the histogram kernel; each row has the same number."""
        policy = self.policy
        blocks = -(-self.length // (policy.count_group * policy.count_items))
        if self.rows == 1:
            return min(policy.count_groups, blocks)

        def duration(groups: int) -> int:
            return -(-self.rows * groups // policy.count_groups) * (-(-blocks // groups) + _SETTING_UP)

        most = max(1, min(blocks, MOST_ROUNDS * policy.count_groups // self.rows))
        return self.rows * min(range(1, most + 1), key=duration)


def prepare(
    key: SortableKey[A, N], data: Buffer[A], state: SweepState, order: SortOrder, in_place: bool
) -> tuple[Launch, ...]:
    """The launches before the passes: clear the state, histograms of all digits, digit starts and plans."""
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
    """The launches from histograms to digit starts and plans."""
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
