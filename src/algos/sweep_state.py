"""What the sweeps of a radix sort share: counted digits, the plan made of them, and how the words for it are laid out.

One reading counts the digits of all passes. A pass whose digit is the same in all elements has nothing to do: from the
counts every pass learns whether it runs, and which memory the pass before it has left the elements in.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role
from ..types.digits import DigitPlace
from ..types.indices import SortOrder
from ..types.intrinsics import count_ones, dynamic_range, exact_sum
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64, Bool
from .bitonic import to_ordered
from .radix_tile import count_before

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)

# What a pass's word of the plan says.
RUNS, READS_DATA, IS_LAST, INTO_WORDS, IS_ODD = 1, 2, 4, 8, 1 << 31


@attrs.frozen
class PassPlan:
    """What one pass does. Elements go back and forth between `results` and `words`, and end up in the former."""

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

    def runs(self) -> Bool:
        return (self.bits & RUNS) != 0

    def reads_data(self) -> Bool:
        """Whether the elements still lie where the caller put them: no pass before this one runs."""
        return (self.bits & READS_DATA) != 0

    def is_last(self) -> Bool:
        return (self.bits & IS_LAST) != 0

    def goes_into_words(self) -> Bool:
        return (self.bits & INTO_WORDS) != 0

    def oddness(self) -> U32:
        """`IS_ODD` for the second of the passes that run, the fourth, and so on; else 0."""
        return self.bits & IS_ODD


# -- kernels ----------------------------------------------------------------------------------------------


@kernel
def sweep_clear(cx: Invocation, state: Storage[U32], first: U32) -> None:
    """Sets histograms and tickets to zero."""
    for i in dynamic_range(first + cx.global_id, state.length, cx.num_groups * cx.group_size):
        state[i] = U32(0)


@kernel
def sweep_histograms(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], state: Storage[U32],
    params: RadixParams, cleared: U32, first_cell: U32, passes: int, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Counts the digits of all passes in one reading, and sets the state's first words to zero meanwhile.

    Every counter has a few copies, for lanes that would wait for each other at one.
    """
    for i in dynamic_range(cx.global_id, cleared, cx.num_groups * cx.group_size):
        state[i] = U32(0)
    cells = passes * policy.radix
    for cell in dynamic_range(cx.local_id, U32(cells * policy.copies), cx.group_size):
        counters[cell] = U32(0)
    cx.barrier()
    mine = cx.local_id % policy.copies
    block = cx.group_size * policy.count_items
    words: Registers[W] = Registers(key.word, policy.count_items)
    for start in dynamic_range(cx.group_id * block, params.num_elements, cx.num_groups * block):
        first = start + cx.local_id
        if start + block <= params.num_elements:
            for i in dynamic_range(U32(0), U32(policy.count_items)):
                words[i] = to_ordered(key, data[exact_sum(first, i * cx.group_size)], order)
            for i in dynamic_range(U32(0), U32(policy.count_items)):
                count_digits(words[i], counters, mine, passes, policy)
        else:
            for i in dynamic_range(first, params.num_elements, cx.group_size):
                count_digits(to_ordered(key, data[i], order), counters, mine, passes, policy)
    cx.barrier()
    for cell in dynamic_range(cx.local_id, U32(cells), cx.group_size):
        total = U32(0)
        for j in dynamic_range(U32(0), U32(policy.copies)):
            total += counters[cell * policy.copies + (cell + j) % policy.copies]
        if total > 0:
            state.atomic_add(first_cell + cell, total)


def count_digits(word: W, counters: Workgroup[U32], copy: U32, passes: int, policy: RadixPolicy) -> None:
    """Counts one word's digits, each in its pass's histogram."""
    for number in range(passes):
        digit = DigitPlace(U32(number), policy.digit_bits).digit_of(word)
        counters.atomic_add(copy + (digit.value + number * policy.radix) * policy.copies, U32(1))


@kernel
def sweep_starts(
    cx: Invocation, shared: Workgroup[U32], idle: Workgroup[U32], state: Storage[U32], params: RadixParams,
    first_start: U32, first_cell: U32, first_plan: U32, passes: int, in_place: bool, policy: RadixPolicy,
) -> None:  # fmt: skip
    """A workgroup a pass: makes its plan, and adds its histogram up to where each digit starts in the result."""
    if cx.local_id == 0:
        idle[0] = U32(0)
    cx.barrier()
    if cx.local_id < policy.radix:
        for number in range(passes):
            if state[first_cell + number * policy.radix + cx.local_id] == params.num_elements:
                idle.atomic_or(U32(0), U32(1 << number))
    mine = cx.group_id * policy.radix + cx.local_id
    count = state[first_cell + mine] if cx.local_id < policy.radix else U32(0)
    first = count_before(cx, shared, count, policy.digit_strands, policy)  # waits, so that all have told who is idle
    if cx.local_id == 0:
        running = passes_that_run(idle[0], passes, in_place)
        state[first_plan + cx.group_id] = PassPlan.of(cx.group_id, running).bits
    if cx.local_id < policy.radix:
        state[first_start + mine] = first


def passes_that_run(idle: U32, passes: int, in_place: bool) -> U32:
    """A bit for each pass that runs. A few run though they change nothing, so that elements end where they should.

    Into other memory at least one has to take them. In place an even number must: there and back.
    """
    running = ~idle & ((1 << passes) - 1)
    lowest_idle = idle & (0 - idle)
    if in_place:
        return running | lowest_idle if count_ones(running) % 2 == 1 else running
    return lowest_idle if running == 0 else running


# -- schedule ---------------------------------------------------------------------------------------------


@attrs.frozen
class SweepState:
    """How the shared words are laid out: cells, starts of digits, histograms, tickets, plans.

    There is a cell for each tile and digit, which all passes use, one after the other. The first rows of cells stand
    before the first tile: they are looked at, and then not counted.
    """

    length: int
    passes: int
    policy: RadixPolicy

    @property
    def tiles(self) -> int:
        return -(-self.length // self.policy.tile)

    @property
    def cells(self) -> int:
        return (self.tiles + self.policy.looks) * self.policy.radix

    @property
    def starts(self) -> int:
        return self.cells

    @property
    def histograms(self) -> int:
        return self.starts + self.passes * self.policy.radix

    @property
    def tickets(self) -> int:
        """One a pass."""
        return self.histograms + self.passes * self.policy.radix

    @property
    def plans(self) -> int:
        """One a pass."""
        return self.tickets + self.passes

    def buffer(self) -> Buffer[U32]:
        return Buffer("state", U32, self.plans + self.passes, Role.SCRATCH)

    def start(self, number: int) -> U32:
        """Where a pass's starts of digits begin."""
        return U32(self.starts + number * self.policy.radix)

    def plan(self, number: int) -> U32:
        """Where a pass's plan lies."""
        return U32(self.plans + number)


def prepare(
    key: SortableKey[A, W], data: Buffer[A], state: SweepState, order: SortOrder, in_place: bool
) -> tuple[Launch, ...]:
    """Counts all digits, and sets up the state for the passes."""
    policy, buffer = state.policy, state.buffer()
    size, counters = policy.group_size, state.passes * policy.radix * policy.copies
    elements, histograms = RadixParams(U32(state.length)), U32(state.histograms)
    clearing = Grid(-(-(buffer.count - state.histograms) // size), size)
    counting = Grid(
        min(policy.count_groups, -(-state.length // (policy.count_group * policy.count_items))), policy.count_group
    )
    return (
        sweep_clear.launch(clearing, buffer, histograms),
        sweep_histograms.launch(
            counting, key, data, Workgroup(U32, counters), buffer, elements, U32(state.cells), histograms, state.passes,
            order, policy,
        ),
        sweep_starts.launch(
            Grid(state.passes, size), Workgroup(U32, policy.scanned), Workgroup(U32, 1), buffer, elements,
            U32(state.starts), histograms, U32(state.plans), state.passes, in_place, policy,
        ),
    )  # fmt: skip
