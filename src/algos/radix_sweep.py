"""Radix sort with one sweep over memory a digit, for targets whose workgroups all make progress.

One reading counts the digits of all passes. Then a single launch a pass sorts each tile and finds out, while it does,
how many elements with each digit stand in the tiles before it: every tile publishes its own counts at once, and the
sum up to itself as soon as it knows that of a tile before it; it looks back over its predecessors until it meets such
a sum (decoupled look-back). Tiles are numbered in the order in which workgroups start, so nobody waits for a tile
that has not started.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Count
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U32, U64
from .bitonic import to_ordered
from .radix_tile import Strand, clear_counters, count_strands, load_tile, place_strands, sort_tile, store_tile, total_of_digit
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
def sweep_clear(cx: Invocation, status: Storage[U32], params: RadixParams) -> None:
    """Sets all status words, histograms and tickets to zero."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        status[i] = U32(0)


@kernel
def sweep_histograms(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], histograms: Storage[U32],
    params: RadixParams, passes: int, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Counts the digits of all passes in one reading."""
    cells = passes * policy.radix
    for i in dynamic_range(cx.local_id, U32(cells), cx.group_size):
        counters[i] = U32(0)
    cx.barrier()
    for index in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        word = to_ordered(key, data[index], order)
        for i in range(passes):
            digit = DigitPlace(i * policy.digit_bits, policy.digit_bits).digit_of(word)
            counters.atomic_add(digit.value + i * policy.radix, U32(1))
    cx.barrier()
    for i in dynamic_range(cx.local_id, U32(cells), cx.group_size):
        if counters[i] > 0:
            histograms.atomic_add(i, counters[i])


@kernel
def sweep_starts(
    cx: Invocation, histograms: Storage[U32], shared: Workgroup[U32], status: Storage[U32], params: RadixParams,
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Turns each pass's histogram (one a workgroup) into the sum that the first tile finds before it."""
    count = histograms[cx.group_id * policy.radix + cx.local_id] if cx.local_id < policy.radix else U32(0)
    first = exclusive_scan_workgroup(cx, Count(), shared, count)
    if cx.local_id < policy.radix:
        status[cx.group_id * params.num_elements + cx.local_id] = first | UP_TO_HERE


def look_back(status: Storage[U32], cell: U32, policy: RadixPolicy) -> U32:
    """How many elements with a digit stand before a tile, whose own status word is `cell`."""
    total = U32(0)
    before = cell - policy.radix
    flag = U32(0)
    while flag < UP_TO_HERE:
        flag = status.atomic_load(before)
        if flag != 0:
            total += flag & COUNT
            before -= policy.radix
    return total


@kernel
def sweep(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[B, W], results: Storage[B],
    tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    status: Storage[U32], tickets: Storage[U32], params: RadixParams, ticket: U32, first_cell: U32, place: DigitPlace,
    orders: tuple[SortOrder, SortOrder], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every element of one tile to its digit's place."""
    if cx.local_id == 0:
        bases[0] = tickets.atomic_add(ticket, U32(1))
    clear_counters(cx, counters, policy)
    index = bases[0]
    strand = Strand.of(cx, policy)
    words: Registers[W] = Registers(source.word, policy.items)
    load_tile(source, data, orders[0], index, strand, words, params, policy)
    count_strands(cx, words, strand, counters, place, policy)

    total = total_of_digit(cx, counters, policy)
    cell = first_cell + (index + 1) * policy.radix + cx.local_id
    if cx.local_id < policy.radix:
        status.atomic_store(cell, total | OWN)
    first = place_strands(cx, counters, shared, total, policy)
    cx.barrier()
    sort_tile(cx, words, strand, tile, counters, place, policy)
    if cx.local_id < policy.radix:
        before = look_back(status, cell, policy)
        status.atomic_store(cell, (before + total) | UP_TO_HERE)
        bases[cx.local_id] = before - first
    cx.barrier()
    store_tile(cx, tile, target, results, orders[1], index, bases, params, place, policy)


# -- schedule ---------------------------------------------------------------------------------------------


def radix_sweep_sort(
    key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int, groups: int = 1024
) -> Schedule:
    """Sorts `data` into `results`, at most 2**30 elements. `groups` workgroups count the digits."""
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    plain: UnsignedKey[W, W] = UnsignedKey(key.word, key.word, key.word.type.bits)
    words = (Buffer("words", key.word, length, Role.SCRATCH), Buffer("more_words", key.word, length, Role.SCRATCH))
    passes = -(-key_bits // policy.digit_bits)
    tiles = -(-length // policy.tile)
    cells = (tiles + 1) * policy.radix  # status words of one pass; the first row stands before the first tile
    status = Buffer("status", U32, passes * cells, Role.SCRATCH)
    histograms = Buffer("histograms", U32, passes * policy.radix, Role.SCRATCH)
    tickets = Buffer("tickets", U32, passes, Role.SCRATCH)
    size = policy.group_size
    params = RadixParams(U32(length))

    def clear(buffer: Buffer[U32]) -> Launch:
        groups_needed = min(groups, -(-buffer.count // size))
        return sweep_clear.launch(Grid(groups_needed, size), buffer, RadixParams(U32(buffer.count)))

    def one_pass(
        number: int, source: SortableKey[A, W], from_: Buffer[A], target: SortableKey[B, W], into: Buffer[B],
        orders: tuple[SortOrder, SortOrder],
    ) -> Launch:  # fmt: skip
        return sweep.launch(
            Grid(tiles, size), source, from_, target, into, Workgroup(key.word, policy.tile),
            Workgroup(U32, policy.counters), Workgroup(U32, size), Workgroup(U32, policy.radix), status, tickets,
            params, U32(number), U32(number * cells), DigitPlace(number * policy.digit_bits, policy.digit_bits),
            orders, policy,
        )  # fmt: skip

    launches: list[Launch] = []
    if length:
        launches += [clear(status), clear(histograms), clear(tickets)]
        launches.append(
            sweep_histograms.launch(Grid(min(groups, tiles), size), key, data, Workgroup(U32, passes * policy.radix),
                                    histograms, params, passes, order, policy)
        )  # fmt: skip
        launches.append(
            sweep_starts.launch(Grid(passes, size), histograms, Workgroup(U32, size), status, RadixParams(U32(cells)), policy)
        )
    for i in range(passes if length else 0):
        first, last = i == 0, i == passes - 1
        orders = order if first else SortOrder.ASCENDING, order if last else SortOrder.ASCENDING
        source, from_ = (key, data) if first else (plain, words[(i - 1) % 2])
        target, into = (key, results) if last else (plain, words[i % 2])
        launches.append(one_pass(i, source, from_, target, into, orders))
    return Schedule((data, results, *words[: min(2, passes - 1)], status, histograms, tickets), tuple(launches))
