"""Radix sort with one sweep over memory a digit, for targets whose workgroups all make progress.

One reading counts the digits of all passes. Then a single launch a pass sorts each tile and finds out, while it does,
how many elements with each digit stand in the tiles before it: every tile publishes its own counts at once, and the
sum up to itself as soon as it knows that of a tile before it; it looks back over its predecessors until it meets such
a sum (decoupled look-back). Tiles are numbered in the order in which workgroups start, so nobody waits for a tile
that has not started.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Count
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U32, U64, Bool
from .bitonic import to_ordered
from .radix_tile import (
    Strand,
    clear_counters,
    count_strands,
    load_tile,
    place_strands,
    sort_tile,
    store_tile,
    total_of_digit,
)
from .scan import exclusive_scan_workgroup

A = TypeVar("A")
B = TypeVar("B")
W = TypeVar("W", U32, U64)

# A status word: what a tile has published about a digit, and how much of it. Zero: nothing yet.
OWN = 1 << 30  # the tile's own count
UP_TO_HERE = 1 << 31  # the count of all tiles up to it
COUNT = OWN - 1
MOST_ELEMENTS = OWN  # a count must fit beside the flags


# -- kernels ----------------------------------------------------------------------------------------------


@kernel
def sweep_clear(cx: Invocation, state: Storage[U32], params: RadixParams) -> None:
    """Sets all status words, histograms and tickets to zero."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        state[i] = U32(0)


@kernel
def sweep_histograms(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], state: Storage[U32],
    params: RadixParams, first_cell: U32, passes: int, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Counts the digits of all passes in one reading.

    Every counter has a few copies, for lanes that would wait for each other at one.
    """
    cells = passes * policy.radix
    for cell in dynamic_range(cx.local_id, U32(cells * policy.copies), cx.group_size):
        counters[cell] = U32(0)
    cx.barrier()
    mine = cx.local_id % policy.copies
    block = cx.group_size * policy.count_items
    words: Registers[W] = Registers(key.word, policy.count_items)
    for start in dynamic_range(cx.group_id * block, params.num_elements, cx.num_groups * block):
        for i in dynamic_range(U32(0), U32(policy.count_items)):
            index = start + i * cx.group_size + cx.local_id
            if index < params.num_elements:
                words[i] = to_ordered(key, data[index], order)
        for i in dynamic_range(U32(0), U32(policy.count_items)):
            if start + i * cx.group_size + cx.local_id < params.num_elements:
                for number in range(passes):
                    digit = DigitPlace(number * policy.digit_bits, policy.digit_bits).digit_of(words[i])
                    counters.atomic_add((digit.value + number * policy.radix) * policy.copies + mine, U32(1))
    cx.barrier()
    for cell in dynamic_range(cx.local_id, U32(cells), cx.group_size):
        total = U32(0)
        for j in dynamic_range(U32(0), U32(policy.copies)):
            total += counters[cell * policy.copies + (cell + j) % policy.copies]
        if total > 0:
            state.atomic_add(first_cell + cell, total)


@kernel
def sweep_starts(
    cx: Invocation,
    shared: Workgroup[U32],
    state: Storage[U32],
    params: RadixParams,
    first_cell: U32,
    policy: RadixPolicy,
) -> None:
    """Turns each pass's histogram (one a workgroup) into the sum that the first tile finds before it."""
    count = state[first_cell + cx.group_id * policy.radix + cx.local_id] if cx.local_id < policy.radix else U32(0)
    first = exclusive_scan_workgroup(cx, Count(), shared, count)
    if cx.local_id < policy.radix:
        row = policy.looks - 1  # the rows before it are looked at, and then not counted
        state[cx.group_id * params.num_elements + row * policy.radix + cx.local_id] = first | UP_TO_HERE


def look_back(state: Storage[U32], cell: U32, policy: RadixPolicy) -> U32:
    """How many elements with a digit stand before a tile, whose own status word is `cell`.

    Several words are asked for at a time, for each takes long to come; a word that is not there yet ends the round.
    """
    total = U32(0)
    before = cell - policy.radix
    found: Registers[U32] = Registers(U32, policy.looks)
    done = Bool(False)
    while not done:
        for i in range(policy.looks):
            found[i] = state.atomic_load(before - i * policy.radix)
        waiting = Bool(False)
        for i in range(policy.looks):
            if not done and not waiting:
                word = found[i]
                waiting = word == 0
                done = word >= UP_TO_HERE
                if not waiting:
                    total += word & COUNT
                    before -= policy.radix
    return total


@kernel
def sweep(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[B, W], results: Storage[B],
    tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    state: Storage[U32], params: RadixParams, ticket: U32, first_cell: U32, place: DigitPlace,
    orders: tuple[SortOrder, SortOrder], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every element of one tile to its digit's place."""
    if cx.local_id == 0:
        bases[0] = state.atomic_add(ticket, U32(1))
    clear_counters(cx, counters, policy)
    index = bases[0]
    strand = Strand.of(cx, policy)
    words: Registers[W] = Registers(source.word, policy.items)
    load_tile(source, data, orders[0], index, strand, words, params, policy)
    count_strands(cx, words, strand, counters, place, policy)

    total = total_of_digit(cx, counters, policy)
    cell = first_cell + (index + policy.looks) * policy.radix + cx.local_id
    if cx.local_id < policy.radix:
        state.atomic_store(cell, total | OWN)
    first = place_strands(cx, counters, shared, total, policy)
    cx.barrier()
    sort_tile(cx, words, strand, tile, counters, place, policy)
    if cx.local_id < policy.radix:
        before = look_back(state, cell, policy)
        state.atomic_store(cell, (before + total) | UP_TO_HERE)
        bases[cx.local_id] = before - first
    cx.barrier()
    store_tile(cx, tile, target, results, orders[1], index, bases, params, place, policy)


# -- schedule ---------------------------------------------------------------------------------------------


@attrs.frozen
class State:
    """How the words that workgroups tell each other are laid out: statuses pass by pass, histograms, tickets."""

    length: int
    passes: int
    policy: RadixPolicy

    @property
    def tiles(self) -> int:
        return -(-self.length // self.policy.tile)

    @property
    def cells(self) -> int:
        """Status words of one pass; the first rows stand before the first tile."""
        return (self.tiles + self.policy.looks) * self.policy.radix

    @property
    def histograms(self) -> int:
        """Where the histograms start."""
        return self.passes * self.cells

    @property
    def tickets(self) -> int:
        """Where the tickets start, one a pass."""
        return self.histograms + self.passes * self.policy.radix

    def buffer(self) -> Buffer[U32]:
        return Buffer("state", U32, self.tickets + self.passes, Role.SCRATCH)


def sweep_pass(
    number: int, source: SortableKey[A, W], data: Buffer[A], target: SortableKey[B, W], results: Buffer[B],
    state: State,
    orders: tuple[SortOrder, SortOrder],
) -> Launch:  # fmt: skip
    """Sorts by one digit."""
    policy = state.policy
    return sweep.launch(
        Grid(state.tiles, policy.group_size), source, data, target, results, Workgroup(source.word, policy.tile),
        Workgroup(U32, policy.counters), Workgroup(U32, policy.group_size), Workgroup(U32, policy.radix),
        state.buffer(),
        RadixParams(U32(state.length)), U32(state.tickets + number), U32(number * state.cells),
        DigitPlace(number * policy.digit_bits, policy.digit_bits), orders, policy,
    )  # fmt: skip


def prepare(key: SortableKey[A, W], data: Buffer[A], state: State, order: SortOrder, groups: int) -> tuple[Launch, ...]:
    """Counts all digits, and sets up the state for the passes."""
    policy, buffer = state.policy, state.buffer()
    size, counters = policy.group_size, state.passes * policy.radix * policy.copies
    clearing = Grid(min(groups, -(-buffer.count // size)), size)
    counting = Grid(min(groups, -(-state.length // (policy.count_group * policy.count_items))), policy.count_group)
    histograms = U32(state.histograms)
    return (
        sweep_clear.launch(clearing, buffer, RadixParams(U32(buffer.count))),
        sweep_histograms.launch(
            counting, key, data, Workgroup(U32, counters), buffer, RadixParams(U32(state.length)), histograms,
            state.passes, order, policy,
        ),
        sweep_starts.launch(
            Grid(state.passes, size), Workgroup(U32, size), buffer, RadixParams(U32(state.cells)), histograms, policy
        ),
    )  # fmt: skip


def radix_sweep_sort(
    key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int, groups: int = 1024
) -> Schedule:
    """Sorts `data` into `results`, fewer than 2**30 elements. At most `groups` workgroups count the digits."""
    if length >= MOST_ELEMENTS:
        raise InvalidArgumentError(f"a single-sweep radix sort takes fewer than {MOST_ELEMENTS} elements, not {length}")
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    words: list[Buffer[W]] = [Buffer(name, key.word, length, Role.SCRATCH) for name in ("words", "more_words")]
    plain: UnsignedKey[W, W] = UnsignedKey(key.word, key.word, key.word.type.bits)
    passes: int = -(-key_bits // policy.digit_bits)
    state = State(length, passes, policy)
    launches: list[Launch] = []
    if length:
        launches += prepare(key, data, state, order, groups)
    for i in range(passes if length else 0):
        before, after = words[(i - 1) % 2], words[i % 2]
        same = SortOrder.ASCENDING  # words are in order already: the first pass's reading saw to that
        if passes == 1:
            launches.append(sweep_pass(i, key, data, key, results, state, (order, order)))
        elif i == 0:
            launches.append(sweep_pass(i, key, data, plain, after, state, (order, same)))
        elif i < passes - 1:
            launches.append(sweep_pass(i, plain, before, plain, after, state, (same, same)))
        else:
            launches.append(sweep_pass(i, plain, before, key, results, state, (same, order)))
    return Schedule((data, results, *words[: min(2, passes - 1)], state.buffer()), tuple(launches))
