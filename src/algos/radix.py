"""LSD radix sort, the portable form: no workgroup waits for another, so no forward progress is required.

Each pass is a histogram of every tile, a prefix sum over these, and a scatter (as in Satish, Harris and Garland 2009);
with few tiles the scatter adds up the histograms itself.
The key's transform is fused into the loads of the first pass and the stores of the last. Which buffer a pass reads is
fixed at compile time.
"""

from __future__ import annotations

import attrs

from ..kernel.language import *
from ..types.params import RadixPolicy
from .batch import Mode, Q
from .bitonic import from_ordered, to_ordered
from .radix_layout import DigitPlace, Layout, TilePlace
from .radix_tile import Ranking, Strand, clear_counters, count_before, load_tile, place_given, store_keys, store_values

MOST_SUMMED = 320  # tiles: with more, a launch of prefix sums is as fast
_SPAN = 16  # tiles
_IN_FLIGHT = 8  # loads of an invocation at a time


@attrs.frozen
class Histograms:
    """What a pass keeps of its tiles' histograms. A launch between histogram and scatter makes prefix sums of each
    digit's counts over the tiles of all rows. Of one row with few tiles, every tile adds its counts to those of its
    span of tiles, which are zero at first; the scatter adds up the spans, and the tiles before its own in the span.
    That saves a launch."""

    has_rows: bool
    first: U32 | None  # this pass's first span, if spans are added up

    def write(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], count: U32, policy: RadixPolicy
    ) -> None:  # fmt: skip
        """Keeps a tile's count of this invocation's digit, its local id."""
        if self.first is None:
            counts[cx.local_id * cx.num_groups + cx.group_id] = count
        else:
            counts[cx.group_id * policy.radix + cx.local_id] = count
            totals.atomic_add((self.first + cx.group_id // _SPAN) * policy.radix + cx.local_id, count)

    def of_digit(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], here: TilePlace, policy: RadixPolicy
    ) -> tuple[U32, U32]:  # fmt: skip
        """How many elements of a tile's row have that digit, and how many of these are in the tiles before."""
        if self.first is not None:
            span, end = cx.group_id // _SPAN, (cx.num_groups + _SPAN - 1) // _SPAN
            earlier = added_up(cx, totals, self.first, self.first + span, policy)
            all_spans = earlier + added_up(cx, totals, self.first + span, self.first + end, policy)
            return all_spans, earlier + added_up(cx, counts, span * _SPAN, cx.group_id, policy)
        line = cx.local_id * cx.num_groups
        before, total = counts[line + cx.group_id], totals[cx.local_id]
        if self.has_rows:
            first = counts[line + here.leader]
            if here.next_leader < cx.num_groups:
                total = counts[line + here.next_leader]
            before -= first
            total -= first
        return total, before


def added_up(cx: Invocation, histograms: Storage[U32], begin: U32, end: U32, policy: RadixPolicy) -> U32:
    """The sum over some histograms of this invocation's digit."""
    total = U32(0)
    loaded: Registers[U32] = Registers(U32, _IN_FLIGHT)
    for first in dynamic_range(begin, end, U32(_IN_FLIGHT)):
        for i in dynamic_range(U32(0), U32(_IN_FLIGHT)):
            loaded[i] = histograms[minimum(first + i, end - 1) * policy.radix + cx.local_id]
        for i in dynamic_range(U32(0), U32(_IN_FLIGHT)):
            total += loaded[i] if first + i < end else U32(0)
    return total


def spans_of(rows: int, tiles: int) -> int:
    """The spans of all tiles; 0 if there are too many tiles, or rows, to do without prefix sums."""
    return -(-tiles // _SPAN) if rows == 1 and tiles <= MOST_SUMMED else 0


@kernel
def radix_count(
    cx: Invocation, key: SortableKey[A, N], data: Storage[A], counters: Workgroup[U32], counts: Storage[U32],
    totals: Storage[U32], histograms: Histograms, layout: Layout, place: DigitPlace, order: SortOrder,
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the digit histogram of every tile."""
    if cx.local_id < policy.radix:
        counters[cx.local_id] = U32(0)
    cx.barrier()
    here = layout.tile_at(cx.group_id, policy.tile)
    if here.remaining() >= policy.tile:
        first = here.start + cx.local_id
        words: Registers[N] = Registers(key.word, policy.items)
        for i in dynamic_range(U32(0), U32(policy.items)):
            words[i] = to_ordered(key, data[add_nowrap(first, i * cx.group_size)], order)
        for i in dynamic_range(U32(0), U32(policy.items)):
            counters.atomic_add(place.digit_of(words[i]), U32(1))
    else:
        for i in dynamic_range(cx.local_id, here.remaining(), cx.group_size):
            counters.atomic_add(place.digit_of(to_ordered(key, data[here.start + i], order)), U32(1))
    cx.barrier()
    if cx.local_id < policy.radix:
        histograms.write(cx, counts, totals, counters[cx.local_id], policy)


@kernel
def radix_add_up(
    cx: Invocation, counts: Storage[U32], totals: Storage[U32], shared: Workgroup[U32], last: Workgroup[U32],
    tiles: U32, policy: RadixPolicy,
) -> None:  # fmt: skip
    """An exclusive prefix sum over the tiles of all rows, one workgroup for each digit value; also the digit's
    total."""
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
    cx: Invocation, source: SortableKey[A, N], data: Storage[A], target: SortableKey[A, N], results: Storage[A],
    values: Storage[V], moved: Storage[Q], tile: Workgroup[N], beside: Workgroup[V], counters: Workgroup[U32],
    shared: Workgroup[U32], bases: Workgroup[U32], counts: Storage[U32], totals: Storage[U32], histograms: Histograms,
    layout: Layout, place: DigitPlace, orders: tuple[SortOrder, SortOrder], mode: Mode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Scatters every key, and its value, to its sorted index, from a tile sorted in workgroup memory, so that stores
    are coalesced. If all elements of a row have the same digit, it only copies."""
    here = layout.tile_at(cx.group_id, policy.tile)
    strand = Strand.of(cx, policy)
    words: Registers[N] = Registers(source.word, policy.items)
    load_tile(source, data, orders[0], here, strand, words, policy)
    if cx.local_id == 0:
        bases[0] = U32(0)
    cx.barrier()
    total, before = U32(0), U32(0)
    if cx.local_id < policy.radix:
        total, before = histograms.of_digit(cx, counts, totals, here, policy)
        if total == here.end - here.origin:
            bases[0] = U32(1)
    clear_counters(cx, counters, policy.counters)
    if cx.load_uniform(bases, 0) == 1:
        copy_tile(cx, target, results, orders[1], values, moved, strand, words, here, mode, policy)
    else:
        start = count_before(cx, shared, total, policy.digit_strands, policy)
        ranking = Ranking(words, strand, counters, place)
        ranking.count_strands(cx, policy)
        counts_here: Registers[U32] = Registers(U32, policy.strands)
        total_here = ranking.total_of_digit(cx, counts_here, policy)
        first = ranking.place_strands(cx, counts_here, shared, total_here, policy)
        if cx.local_id < policy.radix:
            bases[cx.local_id] = here.origin + start + before - first
        cx.barrier()
        places: Registers[U32] = Registers(U32, policy.items)
        for row in dynamic_range(U32(0), U32(policy.items)):
            places[row] = ranking.take_place(cx, place.digit_of(words[row]), policy)
        cx.barrier()  # the counters are dead from here: the tile may be overlaid on them
        for row in dynamic_range(U32(0), U32(policy.items)):
            tile[places[row]] = words[row]
        cx.barrier()
        targets: Registers[U32] = Registers(U32, policy.items)
        store_keys(cx, tile, target, results, orders[1], mode.keeps_keys, here, bases, targets, place, policy)
        if mode.takes_values:
            cx.barrier()  # the tile is dead from here: the values may be overlaid on it
            place_given(values, here, strand, places, beside, mode, policy)
            cx.barrier()
            store_values(cx, beside, moved, mode.stored, targets, here, policy)


def copy_tile(
    cx: Invocation, target: SortableKey[A, N], results: Storage[A], order: SortOrder, values: Storage[V],
    moved: Storage[Q], strand: Strand, words: Registers[N], here: TilePlace, mode: Mode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Copies the words, and their values, without moving them."""
    mine = strand.first_element(policy)
    for row in dynamic_range(U32(0), U32(policy.items)):
        if mine + row * strand.width < here.remaining():
            element = here.start + mine + row * strand.width
            if mode.keeps_keys:
                results[element] = from_ordered(target, words[row], order)
            if mode.takes_values:
                value = mode.value(element - here.origin) if mode.counts_places else values[element]
                moved[element] = mode.stored(value)
