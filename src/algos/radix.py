"""Radix sort, least significant digit first, in the form that runs anywhere: no workgroup waits for another.

Each pass sorts stably by one digit: count the digits of every tile, add the counts up tile by tile, and move every
element to its digit's place. The key's transform happens in the first pass's reading and the last pass's writing; the
passes between move words. Which memory a pass reads is fixed: to look it up would keep the reading waiting.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..types.digits import DigitPlace
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, exact_sum
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from .bitonic import from_ordered, to_ordered
from .radix_tile import (
    RadixMode,
    Strand,
    clear_counters,
    count_before,
    count_strands,
    load_tile,
    place_numbers,
    place_strands,
    place_values,
    store_keys,
    store_values,
    take_place,
    total_of_digit,
)

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@kernel
def radix_count(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], counts: Storage[U32],
    totals: Storage[U32], params: RadixParams, place: DigitPlace, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Counts the digits of every tile."""
    if cx.local_id < policy.radix:
        counters[cx.local_id] = U32(0)
    if cx.global_id == 0:
        totals[policy.radix] = U32(0)
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
    if cx.local_id < policy.radix:
        counts[cx.local_id * cx.num_groups + cx.group_id] = counters[cx.local_id]


@kernel
def radix_add_up(
    cx: Invocation, counts: Storage[U32], totals: Storage[U32], shared: Workgroup[U32], last: Workgroup[U32],
    tiles: U32, params: RadixParams, policy: RadixPolicy,
) -> None:  # fmt: skip
    """A workgroup a digit: turns its count in every tile into that of all tiles before, and tells how many it has.

    Behind the totals stands whether one digit has all elements.
    """
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
        if before == params.num_elements:
            totals[policy.radix] = U32(1)


@kernel
def radix_scatter(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[A, W], results: Storage[A],
    values: Storage[V], moved: Storage[V], tile: Workgroup[W], beside: Workgroup[V], counters: Workgroup[U32],
    shared: Workgroup[U32], bases: Workgroup[U32], counts: Storage[U32], totals: Storage[U32], params: RadixParams,
    place: DigitPlace, orders: tuple[SortOrder, SortOrder], mode: RadixMode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every key to its digit's place, and its value, if it has one, to the same place.

    By way of a tile sorted in workgroup memory, so that writes are long. If all digits are the same, it only copies.
    """
    strand = Strand.of(cx, policy)
    words: Registers[W] = Registers(source.word, policy.items)
    load_tile(source, data, orders[0], cx.group_id, strand, words, params, policy)
    if cx.local_id == 0:
        bases[0] = totals[policy.radix]
    clear_counters(cx, counters, policy)
    if cx.load_for_all(bases, 0) == 1:
        copy_tile(cx, target, results, orders[1], values, moved, strand, words, params, mode, policy)
    else:
        total = totals[cx.local_id] if cx.local_id < policy.radix else U32(0)
        start = count_before(cx, shared, total, policy.digit_strands, policy)
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
        targets: Registers[U32] = Registers(U32, policy.items)
        store_keys(
            cx, tile, target, results, orders[1], mode.keeps_keys, cx.group_id, bases, targets, params, place, policy
        )
        if mode.takes_values:
            cx.barrier()  # and now the values may take the tile's
            if mode.counts_places:
                place_numbers(mode.value, cx.group_id, strand, places, beside, policy)
            else:
                place_values(values, cx.group_id, strand, places, beside, params, policy)
            cx.barrier()
            store_values(cx, beside, moved, targets, cx.group_id, params, policy)


def copy_tile(
    cx: Invocation, target: SortableKey[A, W], results: Storage[A], order: SortOrder, values: Storage[V],
    moved: Storage[V], strand: Strand, words: Registers[W], params: RadixParams, mode: RadixMode[V],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the words, and the values beside them, to the places they have."""
    first = strand.first_element(cx.group_id, policy)
    for row in dynamic_range(U32(0), U32(policy.items)):
        element = first + row * strand.width
        if element < params.num_elements:
            if mode.keeps_keys:
                results[element] = from_ordered(target, words[row], order)
            if mode.takes_values:
                moved[element] = mode.value(element) if mode.counts_places else values[element]
