"""Radix sort, least significant digit first, once for all targets.

Each pass sorts stably by one digit: count the digits of every tile, scan the counts of all tiles in the order of
(digit, tile), and move every element to its digit's place. The key's transform happens in the first pass's reading
and the last pass's writing; the passes between move words. No workgroup waits for another, so this runs anywhere.

Within a tile, a strand of lanes ranks its elements together, row by row, so that ranks follow the memory's order.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import Digit, DigitPlace, Lanes
from ..types.indices import ScanKind, SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Count
from ..types.params import RadixParams, RadixPolicy, ScanPolicy
from ..types.scalars import U32, U64
from .bitonic import from_ordered, to_ordered
from .scan import exclusive_scan_workgroup, scan_launches, scan_tiles_of

A = TypeVar("A")
B = TypeVar("B")
V = TypeVar("V")
W = TypeVar("W", U32, U64)


@attrs.frozen
class Strand:
    """The lanes that rank together, and my place among them."""

    index: U32
    lane: U32
    width: U32

    @classmethod
    def of(cls, cx: Invocation, policy: RadixPolicy) -> Strand:
        if policy.subgroups:
            return cls(cx.subgroup_id, cx.lane, cx.subgroup_size)
        return cls(cx.local_id // policy.strand, cx.local_id % policy.strand, U32(policy.strand))

    def element(self, cx: Invocation, row: U32, policy: RadixPolicy) -> U32:
        """Where in the array my element of a row lies: strands lie one behind the other, rows within them too."""
        return cx.group_id * policy.tile + (self.index * policy.items + row) * self.width + self.lane

    def counter(self, digit: Digit, policy: RadixPolicy) -> U32:
        return self.index * policy.radix + digit.value


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
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = first + i * cx.group_size
        if index < params.num_elements:
            counters.atomic_add(place.digit_of(to_ordered(key, data[index], order)).value, U32(1))
    cx.barrier()
    if cx.local_id < place.radix:
        counts[cx.local_id * cx.num_groups + cx.group_id] = counters[cx.local_id]


def lanes_with(cx: Invocation, digit: Digit, strand: Strand, counters: Workgroup[U32], policy: RadixPolicy) -> Lanes:
    """The lanes of the strand that hold my digit: by a subgroup match, or through masks in workgroup memory."""
    if policy.subgroups:
        return Lanes(cx.match(digit.value), strand.lane)
    mask = policy.strands * policy.radix + strand.counter(digit, policy)
    counters.atomic_or(mask, U32(1) << strand.lane)
    cx.barrier()
    found = Lanes(U64(counters[mask]), strand.lane)
    cx.barrier()
    if found.is_led_by_me():
        counters[mask] = U32(0)
    cx.barrier()
    return found


def rank_in_strand(cx: Invocation, digit: Digit, strand: Strand, counters: Workgroup[U32], policy: RadixPolicy) -> U32:
    """How many elements of the strand with my digit come before mine; counts mine and its row's."""
    lanes = lanes_with(cx, digit, strand, counters, policy)
    counter = strand.counter(digit, policy)
    seen = U32(0)
    if policy.subgroups:
        if lanes.is_led_by_me():
            seen = counters.atomic_add(counter, lanes.count())
        seen = cx.shuffle(seen, lanes.leader())
    else:
        seen = counters[counter]
        cx.barrier()
        if lanes.is_led_by_me():
            counters[counter] = seen + lanes.count()
        cx.barrier()
    return seen + lanes.before_me()


def place_digits(
    cx: Invocation, counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32], offsets: Storage[U32],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Turns the strands' counts into places in the tile; `bases` gets what leads from there to places in the result."""
    total = U32(0)
    if cx.local_id < policy.radix:
        for strand in dynamic_range(U32(0), U32(policy.strands)):
            count = counters[strand * policy.radix + cx.local_id]
            counters[strand * policy.radix + cx.local_id] = total
            total += count
    start = exclusive_scan_workgroup(cx, Count(), shared, total)
    if cx.local_id < policy.radix:
        for strand in dynamic_range(U32(0), U32(policy.strands)):
            counters[strand * policy.radix + cx.local_id] = counters[strand * policy.radix + cx.local_id] + start
        bases[cx.local_id] = offsets[cx.local_id * cx.num_groups + cx.group_id] - start
    cx.barrier()


def rank_tile(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], order: SortOrder, words: Registers[W],
    places: Registers[U32], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    offsets: Storage[U32], params: RadixParams, place: DigitPlace, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Reads the tile's words, and finds each one's place in the tile once it is sorted by the digit.

    Beyond the end stand greatest words: they rank last, so what is there keeps the first places.
    """
    strand = Strand.of(cx, policy)
    for i in dynamic_range(cx.local_id, U32(policy.counters), cx.group_size):
        counters[i] = U32(0)
    cx.barrier()
    for row in dynamic_range(U32(0), U32(policy.items)):
        element = strand.element(cx, row, policy)
        words[row] = to_ordered(source, data[element], order) if element < params.num_elements else source.greatest
        places[row] = rank_in_strand(cx, place.digit_of(words[row]), strand, counters, policy)
    cx.barrier()
    place_digits(cx, counters, shared, bases, offsets, policy)
    for row in dynamic_range(U32(0), U32(policy.items)):
        places[row] = places[row] + counters[strand.counter(place.digit_of(words[row]), policy)]


@kernel
def radix_scatter(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[B, W], results: Storage[B],
    tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    offsets: Storage[U32], params: RadixParams, place: DigitPlace, orders: tuple[SortOrder, SortOrder],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every element to its digit's place, by way of a tile sorted in workgroup memory so that writes are long."""
    words: Registers[W] = Registers(source.word, policy.items)
    places: Registers[U32] = Registers(U32, policy.items)
    rank_tile(cx, source, data, orders[0], words, places, counters, shared, bases, offsets, params, place, policy)
    for row in dynamic_range(U32(0), U32(policy.items)):
        tile[places[row]] = words[row]
    cx.barrier()
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if cx.group_id * policy.tile + position < params.num_elements:
            word = tile[position]
            results[bases[place.digit_of(word).value] + position] = from_ordered(target, word, orders[1])


# -- schedule ---------------------------------------------------------------------------------------------


def radix_sort(key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int) -> Schedule:
    """Sorts `data` into `results`. Words pass through one buffer of scratch, or two where elements are narrow."""
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    plain: UnsignedKey[W, W] = UnsignedKey(key.word, key.word, key.word.type.bits)
    words = (Buffer("words", key.word, length, Role.SCRATCH), Buffer("more_words", key.word, length, Role.SCRATCH))
    tiles = max(1, -(-length // policy.tile))
    cells = tiles * policy.radix
    scan_policy = ScanPolicy(policy.group_size)
    counts = Buffer("counts", U32, cells, Role.SCRATCH)
    offsets = Buffer("offsets", U32, cells, Role.SCRATCH)
    carries = Buffer("carries", U32, scan_tiles_of(cells, scan_policy), Role.SCRATCH)
    grid = Grid(tiles, policy.group_size)
    params = RadixParams(U32(length))

    def one_pass(
        source: SortableKey[A, W], from_: Buffer[A], target: SortableKey[B, W], into: Buffer[B], place: DigitPlace,
        orders: tuple[SortOrder, SortOrder],
    ) -> tuple[Launch, ...]:  # fmt: skip
        count = radix_count.launch(
            grid, source, from_, Workgroup(U32, policy.radix), counts, params, place, orders[0], policy
        )
        scan = scan_launches(Count(), counts, carries, offsets, cells, ScanKind.EXCLUSIVE, scan_policy)
        move = radix_scatter.launch(
            grid, source, from_, target, into, Workgroup(key.word, policy.tile), Workgroup(U32, policy.counters),
            Workgroup(U32, policy.group_size), Workgroup(U32, policy.radix), offsets, params, place, orders, policy,
        )  # fmt: skip
        return (count, *scan, move)

    launches: list[Launch] = []
    passes = -(-key_bits // policy.digit_bits)
    for i in range(passes if length else 0):
        place = DigitPlace(i * policy.digit_bits, policy.digit_bits)
        first, last = i == 0, i == passes - 1
        before, after = order if first else SortOrder.ASCENDING, order if last else SortOrder.ASCENDING
        source, from_ = (key, data) if first else (plain, words[(i - 1) % 2])
        target, into = (key, results) if last else (plain, words[i % 2])
        launches += one_pass(source, from_, target, into, place, (before, after))
    scratch = (*words[: min(2, passes - 1)], counts, offsets, carries)
    return Schedule((data, results, *scratch), tuple(launches))
