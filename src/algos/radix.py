"""Radix sort, least significant digit first, once for all targets.

Each pass sorts stably by one digit: count the digits of every tile, scan the counts of all tiles in the order of
(digit, tile), and move every element to its digit's place. The key's transform happens in the first pass's reading
and the last pass's writing; the passes between move words. No workgroup waits for another, so this runs anywhere.
"""

from __future__ import annotations

from typing import TypeVar

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
from .radix_tile import Strand, clear_counters, count_strands, load_tile, place_strands, sort_tile, store_tile, total_of_digit
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
    load_tile(source, data, orders[0], cx.group_id, strand, words, params, policy)
    count_strands(cx, words, strand, counters, place, policy)
    first = place_strands(cx, counters, shared, total_of_digit(cx, counters, policy), policy)
    if cx.local_id < policy.radix:
        bases[cx.local_id] = offsets[cx.local_id * cx.num_groups + cx.group_id] - first
    cx.barrier()
    sort_tile(cx, words, strand, tile, counters, place, policy)
    store_tile(cx, tile, target, results, orders[1], cx.group_id, bases, params, place, policy)


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
