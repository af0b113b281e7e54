"""Radix sort, least significant digit first, once for all targets.

Each pass sorts stably by one digit: count the digits of every tile, scan the counts of all tiles in the order of
(digit, tile), and move every element to its digit's place. The key's transform happens in the first pass's reading
and the last pass's writing; the passes between move words. No workgroup waits for another, so this runs anywhere.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.indices import ScanKind, SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Count
from ..types.params import RadixParams, RadixPolicy, ScanPolicy
from ..types.scalars import U32, U64
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
from .scan import scan_launches, scan_tiles_of

A = TypeVar("A")
B = TypeVar("B")
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
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = first + i * cx.group_size
        if index < params.num_elements:
            counters.atomic_add(place.digit_of(to_ordered(key, data[index], order)).value, U32(1))
    cx.barrier()
    if cx.local_id < place.radix:
        counts[cx.local_id * cx.num_groups + cx.group_id] = counters[cx.local_id]


@kernel
def radix_scatter(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[B, W], results: Storage[B],
    tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    offsets: Storage[U32], params: RadixParams, place: DigitPlace, orders: tuple[SortOrder, SortOrder],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every element to its digit's place, by way of a tile sorted in workgroup memory so that writes are long."""
    strand = Strand.of(cx, policy)
    words: Registers[W] = Registers(source.word, policy.items)
    clear_counters(cx, counters, policy)
    cx.barrier()
    load_tile(source, data, orders[0], cx.group_id, strand, words, params, policy)
    count_strands(cx, words, strand, counters, place, policy)
    counts: Registers[U32] = Registers(U32, policy.strands)
    total = total_of_digit(cx, counters, counts, policy)
    first = place_strands(cx, counters, counts, shared, total, policy)
    if cx.local_id < policy.radix:
        bases[cx.local_id] = offsets[cx.local_id * cx.num_groups + cx.group_id] - first
    cx.barrier()
    sort_tile(cx, words, strand, tile, counters, place, policy)
    cx.barrier()
    store_tile(cx, tile, target, results, orders[1], cx.group_id, bases, params, place, policy)


# -- schedule ---------------------------------------------------------------------------------------------


@attrs.frozen
class Scratch:
    """What the passes share: where digits are counted, and where their places are found."""

    length: int
    policy: RadixPolicy

    @property
    def tiles(self) -> int:
        return max(1, -(-self.length // self.policy.tile))

    @property
    def cells(self) -> int:
        """Counts of all tiles and digits."""
        return self.tiles * self.policy.radix

    @property
    def scan_policy(self) -> ScanPolicy:
        return ScanPolicy(self.policy.group_size)

    def counts(self) -> Buffer[U32]:
        return Buffer("counts", U32, self.cells, Role.SCRATCH)

    def offsets(self) -> Buffer[U32]:
        return Buffer("offsets", U32, self.cells, Role.SCRATCH)

    def carries(self) -> Buffer[U32]:
        return Buffer("carries", U32, scan_tiles_of(self.cells, self.scan_policy), Role.SCRATCH)


def radix_pass(
    source: SortableKey[A, W], data: Buffer[A], target: SortableKey[B, W], results: Buffer[B], scratch: Scratch,
    place: DigitPlace, orders: tuple[SortOrder, SortOrder],
) -> tuple[Launch, ...]:  # fmt: skip
    """Sorts by one digit: count, scan, move."""
    policy, params = scratch.policy, RadixParams(U32(scratch.length))
    grid = Grid(scratch.tiles, policy.group_size)
    counts, offsets = scratch.counts(), scratch.offsets()
    scan: tuple[Launch, ...] = scan_launches(
        Count(), counts, scratch.carries(), offsets, scratch.cells, ScanKind.EXCLUSIVE, scratch.scan_policy
    )
    return (
        radix_count.launch(
            grid, source, data, Workgroup(U32, policy.radix), counts, params, place, orders[0], policy
        ),
        *scan,
        radix_scatter.launch(
            grid, source, data, target, results, Workgroup(source.word, policy.tile), Workgroup(U32, policy.counters),
            Workgroup(U32, policy.group_size), Workgroup(U32, policy.radix), offsets, params, place, orders, policy,
        ),
    )  # fmt: skip


def radix_sort(key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int) -> Schedule:
    """Sorts `data` into `results`. Words pass through one or two buffers of scratch between the passes."""
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    words: list[Buffer[W]] = [Buffer(name, key.word, length, Role.SCRATCH) for name in ("words", "more_words")]
    plain: UnsignedKey[W, W] = UnsignedKey(key.word, key.word, key.word.type.bits)
    scratch = Scratch(length, policy)
    launches: list[Launch] = []
    passes = -(-key_bits // policy.digit_bits) if length else 0
    for i in range(passes):
        place = DigitPlace(U32(i), policy.digit_bits)
        before, after = words[(i - 1) % 2], words[i % 2]
        same = SortOrder.ASCENDING  # words are in order already: the first pass's reading saw to that
        if passes == 1:
            launches += radix_pass(key, data, key, results, scratch, place, (order, order))
        elif i == 0:
            launches += radix_pass(key, data, plain, after, scratch, place, (order, same))
        elif i < passes - 1:
            launches += radix_pass(plain, before, plain, after, scratch, place, (same, same))
        else:
            launches += radix_pass(plain, before, key, results, scratch, place, (same, order))
    between: list[Buffer[W]] = words[: max(0, min(2, passes - 1))]
    return Schedule((data, results, *between, scratch.counts(), scratch.offsets(), scratch.carries()), tuple(launches))
