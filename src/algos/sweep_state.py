"""Kernels before the sweeps of a radix sort: histograms of all digits in one read, and the plan of each pass: whether
it runs, as it need not where all digits of each row are the same, and which buffers it reads and writes. And the state
buffer of sweeps: its layout (status words, digit starts, histograms, tickets, plans), and the launches that initialise
it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import attrs

from ..kernel.language import *
from ..types.params import RadixPolicy
from .batch import looping_grid
from .bitonic import to_ordered
from .radix_layout import DigitPlace, Layout
from .radix_tile import clear_counters, count_before, sum_of_copies
from .sizes import LARGEST_U32

# The bits of a pass's plan. It reads the caller's buffer if no earlier pass runs.
RUNS, READS_DATA, IS_LAST, INTO_WORDS, IS_ODD = 1, 2, 4, 8, 1 << 31


@attrs.frozen
class PassPlan:
    """What a pass does. Elements alternate between `results` and `words`, and end in `results`."""

    bits: U32

    @classmethod
    def of(cls, number: U32, running: U32) -> PassPlan:
        """The plan of a pass; `running` has a bit for each pass that runs."""
        earlier, later = running & ((U32(1) << number) - 1), (running >> number) >> 1
        bits = (running >> number) & RUNS
        bits |= U32(READS_DATA) if earlier == 0 else U32(0)
        bits |= U32(IS_LAST) if later == 0 else U32(0)
        bits |= U32(INTO_WORDS) if count_ones(later) % 2 == 1 else U32(0)
        bits |= U32(IS_ODD) if count_ones(earlier) % 2 == 1 else U32(0)
        return cls(bits)

    def has(self, bit: int) -> Bool:
        return (self.bits & bit) != 0

    def phase_bit(self) -> U32:
        """`IS_ODD` in every second pass that runs, else 0: toggles the validity of status words."""
        return self.bits & IS_ODD


@kernel
def sweep_clear(cx: Invocation, state: Storage[U32], first: U32) -> None:
    """Zeroes histograms and tickets, or what the portable form adds up."""
    for i in dynamic_range(first + cx.global_id, state.length, cx.num_groups * cx.group_size):
        state[i] = U32(0)


@kernel
def sweep_histograms(
    cx: Invocation, key: SortableKey[A, N], data: Storage[A], counters: Workgroup[U32], state: Storage[U32],
    layout: Layout, cleared: U32, first_counter: U32, passes: int, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Histograms of all passes' digits in one read; also zeroes the status words. A workgroup counts in one row.
    Counters are privatised: each has copies, against contention of lanes."""
    for i in dynamic_range(cx.global_id, cleared, cx.num_groups * cx.group_size):
        state[i] = U32(0)
    bins = passes * policy.radix
    clear_counters(cx, counters, bins * policy.copies)
    cx.barrier()
    mine = cx.local_id % policy.copies
    block = cx.group_size * policy.count_items
    words: Registers[N] = Registers(key.word, policy.count_items)
    share = layout.share_of(cx.group_id, cx.num_groups, block)
    for start in dynamic_range(share.begin, share.end, share.step):
        if share.end - start >= block:
            first = start + cx.local_id
            for i in dynamic_range(U32(0), U32(policy.count_items)):
                words[i] = to_ordered(key, data[add_nowrap(first, i * cx.group_size)], order)
            for i in dynamic_range(U32(0), U32(policy.count_items)):
                count_digits(words[i], counters, mine, passes, policy)
        else:
            for i in dynamic_range(cx.local_id, share.end - start, cx.group_size):
                count_digits(to_ordered(key, data[start + i], order), counters, mine, passes, policy)
    cx.barrier()
    for counter in dynamic_range(cx.local_id, U32(bins), cx.group_size):
        total = sum_of_copies(counters, counter, policy.copies)
        if total > 0:
            state.atomic_add(first_counter + share.row * bins + counter, total)


def count_digits(word: N, counters: Workgroup[U32], copy: U32, passes: int, policy: RadixPolicy) -> None:
    """Adds a word's digits to the histograms of their passes."""
    for number in range(passes):
        digit = DigitPlace(U32(number), policy.digit_bits).digit_of(word)
        counters.atomic_add(copy + (digit + number * policy.radix) * policy.copies, U32(1))


@kernel
def sweep_starts(
    cx: Invocation, shared: Workgroup[U32], idle: Workgroup[U32], state: Storage[U32], num_elements: U32,
    first_start: U32, first_counter: U32, first_plan: U32, passes: int, in_place: bool, policy: RadixPolicy,
) -> None:  # fmt: skip
    """For one row, a workgroup for each pass: its plan, and the prefix sum of its histogram, where digits start."""
    if cx.local_id == 0:
        idle[0] = U32(0)
    cx.barrier()
    if cx.local_id < policy.radix:
        for number in range(passes):
            if state[first_counter + number * policy.radix + cx.local_id] == num_elements:
                idle.atomic_or(U32(0), U32(1 << number))
    mine = cx.group_id * policy.radix + cx.local_id
    count = state[first_counter + mine] if cx.local_id < policy.radix else U32(0)
    first = count_before(cx, shared, count, policy.digit_strands, policy)  # its barrier completes `idle`
    if cx.local_id == 0:
        running = passes_that_run(idle[0], passes, in_place)
        state[first_plan + cx.group_id] = PassPlan.of(cx.group_id, running).bits
    if cx.local_id < policy.radix:
        state[first_start + mine] = first


@kernel
def sweep_row_starts(
    cx: Invocation, shared: Workgroup[U32], state: Storage[U32], length: U32, first_start: U32, first_idle: U32,
    passes: int, policy: RadixPolicy,
) -> None:  # fmt: skip
    """For many rows, a workgroup for each row and pass: the prefix sum of its histogram, in place. Counts the rows in
    which all elements have one digit: if that is all rows, the pass is skipped."""
    mine = first_start + cx.group_id * policy.radix + cx.local_id
    count = state[mine] if cx.local_id < policy.radix else U32(0)
    if count == length:
        state.atomic_add(first_idle + cx.group_id % passes, U32(1))
    first = count_before(cx, shared, count, policy.digit_strands, policy)
    if cx.local_id < policy.radix:
        state[mine] = first


@kernel
def sweep_row_plans(
    cx: Invocation, state: Storage[U32], rows: U32, first_idle: U32, first_plan: U32, passes: int, in_place: bool
) -> None:
    """For many rows, a workgroup for each pass: its plan, which all rows share."""
    idle = U32(0)
    for number in range(passes):
        idle |= U32(1 << number) if state[first_idle + number] == rows else U32(0)
    running = passes_that_run(idle, passes, in_place)
    state[first_plan + cx.group_id] = PassPlan.of(cx.group_id, running).bits


def passes_that_run(idle: U32, passes: int, in_place: bool) -> U32:
    """A bit for each pass that runs; one that changes nothing may run, so that elements end in the right buffer. Into
    another buffer, at least one pass must run; in place, an even number."""
    running = ~idle & ((1 << passes) - 1)
    lowest_idle = idle & (0 - idle)
    if in_place:
        return running | lowest_idle if count_ones(running) % 2 == 1 else running
    return lowest_idle if running == 0 else running


MOST_ROUNDS = 4  # waves of workgroups in the histogram kernel, with many rows
_SETTING_UP = 1  # the fixed cost of a workgroup in it, in blocks read


class Sections(NamedTuple):
    """Where the parts of the state buffer begin, behind the status words, and where it ends."""

    starts: int  # of digits, for each row or portion
    histograms: int
    tickets: int  # one for each pass
    plans: int  # one for each pass
    idle: int  # for each pass, in how many rows it has nothing to do; with many rows only
    end: int


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
    def apart(self) -> int:
        """The words for the digits of all passes, for each row or portion."""
        return self.passes * self.policy.radix

    @property
    def at(self) -> Sections:
        status_words = (self.rows * self.tiles + self.policy.lookback) * self.policy.radix
        own, of_rows = (self.portions * self.apart, 0) if self.rows == 1 else (0, self.passes)
        sizes = (status_words, own, self.rows * self.apart, self.passes, self.passes, of_rows)
        return Sections(*accumulate(sizes))

    def buffer(self) -> Buffer[U32]:
        return Buffer("state", U32, self.at.end, Role.SCRATCH)

    def layout(self) -> Layout:
        sizes = map(U32, (self.length, self.rows, self.portion_tiles, self.apart))
        return Layout(*sizes, has_rows=self.rows > 1, carries=self.portions > 1)

    def sweeps(self) -> tuple[int, ...]:
        """The number of tiles of each launch of a pass."""
        if self.rows > 1:
            return (self.rows * self.tiles,)
        full, rest = divmod(self.tiles, self.portion_tiles)
        return (*[self.portion_tiles] * full, *([rest] if rest else []))

    def counting_groups(self) -> int:
        """The workgroups of the histogram kernel; each row has the same number."""
        policy = self.policy
        block = policy.count_group * policy.count_items
        blocks = -(-self.length // block)
        if self.rows == 1:
            return min(policy.count_groups, blocks, LARGEST_U32 // block)  # what all read in a step is counted

        def duration(groups: int) -> int:
            return -(-self.rows * groups // policy.count_groups) * (-(-blocks // groups) + _SETTING_UP)

        most = max(1, min(blocks, MOST_ROUNDS * policy.count_groups // self.rows))
        return self.rows * min(range(1, most + 1), key=duration)


def prepare(
    key: SortableKey[A, N], data: Buffer[A], state: SweepState, order: SortOrder, in_place: bool
) -> Iterator[Launch]:
    """The launches before the passes: clear the state, histograms of all digits, digit starts and plans."""
    policy, buffer, passes, at = state.policy, state.buffer(), state.passes, state.at
    starts, histograms, plans, idle = map(U32, (at.starts, at.histograms, at.plans, at.idle))
    clearing = looping_grid(buffer.count - at.histograms, policy.group_size, MOST_ROUNDS * policy.count_groups)
    yield sweep_clear.launch(clearing, buffer, histograms)
    counters, shared = Workgroup(U32, passes * policy.radix * policy.copies), Workgroup(U32, policy.scanned)
    yield sweep_histograms.launch(
        Grid(state.counting_groups(), policy.count_group), key, data, counters, buffer, state.layout(), starts,
        histograms, passes, order, policy,
    )  # fmt: skip
    grid, length = Grid(state.rows * passes, policy.group_size), U32(state.length)
    if state.rows == 1:
        yield sweep_starts.launch(
            grid, shared, Workgroup(U32, 1), buffer, length, starts, histograms, plans, passes, in_place, policy
        )
    else:
        yield sweep_row_starts.launch(grid, shared, buffer, length, starts, idle, passes, policy)
        yield sweep_row_plans.launch(Grid(passes, 1), buffer, U32(state.rows), idle, plans, passes, in_place)
