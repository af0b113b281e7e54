"""Radix sort, least significant digit first, once for all targets.

Each pass sorts stably by one digit: count the digits of every tile, add the counts up tile by tile, and move every
element to its digit's place. The key's transform happens in the first pass's reading and the last pass's writing; the
passes between move words. No workgroup waits for another, so this runs anywhere.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, exact_sum
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from .bitonic import to_ordered
from .radix_tile import (
    Strand,
    clear_counters,
    count_before,
    count_strands,
    load_tile,
    place_strands,
    store_tile,
    take_place,
    total_of_digit,
)

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


# -- kernels ----------------------------------------------------------------------------------------------


@kernel
def radix_count(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], counts: Storage[U32],
    params: RadixParams, place: DigitPlace, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Counts the digits of every tile."""
    if cx.local_id < place.radix:
        counters[cx.local_id] = U32(0)
    cx.barrier()
    first = cx.group_id * policy.tile + cx.local_id
    if (cx.group_id + 1) * policy.tile <= params.num_elements:
        words: Registers[W] = Registers(key.word, policy.items)
        for i in dynamic_range(U32(0), U32(policy.items)):
            words[i] = to_ordered(key, data[exact_sum(first, i * cx.group_size)], order)
        for i in dynamic_range(U32(0), U32(policy.items)):
            counters.atomic_add(place.digit_of(words[i]).value, U32(1))
    else:
        for index in dynamic_range(first, params.num_elements, cx.group_size):
            counters.atomic_add(place.digit_of(to_ordered(key, data[index], order)).value, U32(1))
    cx.barrier()
    if cx.local_id < place.radix:
        counts[cx.local_id * cx.num_groups + cx.group_id] = counters[cx.local_id]


@kernel
def radix_add_up(
    cx: Invocation, counts: Storage[U32], totals: Storage[U32], shared: Workgroup[U32], last: Workgroup[U32],
    tiles: U32, policy: RadixPolicy,
) -> None:  # fmt: skip
    """A workgroup a digit: turns its count in every tile into that of all tiles before, and tells how many it has."""
    row = cx.group_id * tiles
    before = U32(0)
    for start in dynamic_range(U32(0), tiles, cx.group_size):
        tile = start + cx.local_id
        mine = counts[row + tile] if tile < tiles else U32(0)
        first = before + count_before(cx, shared, mine, policy.strands, policy)
        if tile < tiles:
            counts[row + tile] = first
        if cx.local_id == cx.group_size - 1:
            last[0] = first + mine
        cx.barrier()
        before = last[0]
        cx.barrier()
    if cx.local_id == 0:
        totals[cx.group_id] = before


@kernel
def radix_scatter(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[A, W], results: Storage[A],
    tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    counts: Storage[U32], totals: Storage[U32], params: RadixParams, place: DigitPlace,
    orders: tuple[SortOrder, SortOrder], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every element to its digit's place, by way of a tile sorted in workgroup memory so that writes are long."""
    strand = Strand.of(cx, policy)
    words: Registers[W] = Registers(source.word, policy.items)
    load_tile(source, data, orders[0], cx.group_id, strand, words, params, policy)
    clear_counters(cx, counters, policy)
    total = totals[cx.local_id] if cx.local_id < policy.radix else U32(0)
    start = count_before(cx, shared, total, policy.digit_strands, policy)  # waits: the counters are clear
    count_strands(cx, words, strand, counters, place, policy)
    counts_here: Registers[U32] = Registers(U32, policy.strands)
    total_here = total_of_digit(cx, counters, counts_here, policy)
    first = place_strands(cx, counters, counts_here, shared, total_here, policy)
    if cx.local_id < policy.radix:
        bases[cx.local_id] = start + counts[cx.local_id * cx.num_groups + cx.group_id] - first
    cx.barrier()
    places: Registers[U32] = Registers(U32, policy.items)
    for row in dynamic_range(U32(0), U32(policy.items)):
        places[row] = take_place(cx, place.digit_of(words[row]), strand, counters, policy)
    cx.barrier()  # from here on the counters are not used: the tile may take their place
    for row in dynamic_range(U32(0), U32(policy.items)):
        tile[places[row]] = words[row]
    cx.barrier()
    store_tile(cx, tile, target, results, orders[1], cx.group_id, bases, params, place, policy)


# -- schedule ---------------------------------------------------------------------------------------------


@attrs.frozen
class Counts:
    """What the passes share: where digits are counted and added up."""

    length: int
    policy: RadixPolicy

    @property
    def tiles(self) -> int:
        return max(1, -(-self.length // self.policy.tile))

    def by_tile(self) -> Buffer[U32]:
        return Buffer("counts", U32, self.tiles * self.policy.radix, Role.SCRATCH)

    def totals(self) -> Buffer[U32]:
        return Buffer("totals", U32, self.policy.radix, Role.SCRATCH)


def radix_pass(
    source: SortableKey[A, W], data: Buffer[A], target: SortableKey[A, W], results: Buffer[A], counts: Counts,
    place: DigitPlace, orders: tuple[SortOrder, SortOrder],
) -> tuple[Launch, ...]:  # fmt: skip
    """Sorts by one digit: count, add up, move."""
    policy, params = counts.policy, RadixParams(U32(counts.length))
    grid, by_tile, totals = Grid(counts.tiles, policy.group_size), counts.by_tile(), counts.totals()
    scanned = Workgroup(U32, policy.scanned)
    return (
        radix_count.launch(
            grid, source, data, Workgroup(U32, policy.radix), by_tile, params, place, orders[0], policy
        ),
        radix_add_up.launch(
            Grid(policy.radix, policy.group_size), by_tile, totals, scanned, Workgroup(U32, 1), U32(counts.tiles),
            policy,
        ),
        radix_scatter.launch(
            grid, source, data, target, results, Workgroup(source.word, policy.tile), Workgroup(U32, policy.counters),
            scanned, Workgroup(U32, policy.radix), by_tile, totals, params, place, orders, policy,
        ),
    )  # fmt: skip


def radix_sort(key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int) -> Schedule:
    """Sorts `data` into `results`. Between the passes words go back and forth between these and one more buffer."""
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    words = Buffer("words", key.element, length, Role.SCRATCH)
    plain: UnsignedKey[A, W] = UnsignedKey(key.element, key.word, key_bits)
    counts = Counts(length, policy)
    launches: list[Launch] = []
    passes = -(-key_bits // policy.digit_bits) if length else 0
    before = data
    for number in range(passes):
        is_first, is_last = number == 0, number == passes - 1
        after = results if (passes - number) % 2 == 1 else words
        # Words are in order already: the first pass's reading saw to that.
        orders = (order if is_first else SortOrder.ASCENDING, order if is_last else SortOrder.ASCENDING)
        launches += radix_pass(
            key if is_first else plain, before, key if is_last else plain, after, counts,
            DigitPlace(U32(number), policy.digit_bits), orders,
        )  # fmt: skip
        before = after
    arrays: list[Buffer[A]] = [data, results, words] if passes > 1 else [data, results]
    return Schedule((*arrays, counts.by_tile(), counts.totals()), tuple(launches))
