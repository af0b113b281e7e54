"""Sorts a tile by one digit in workgroup memory, stably: the building blocks of both forms of radix sort.

Each strand of lanes counts its digits; a prefix sum gives every (digit, strand) its first index in the sorted tile;
then elements take indices from there, in memory order, by match and rank.
"""

from __future__ import annotations

from typing import Generic

import attrs

from ..kernel.language import *
from ..types.intrinsics import overridable
from ..types.monoids import Count
from ..types.params import RadixPolicy
from .batch import Mode, Q
from .bitonic import from_ordered, to_ordered
from .radix_layout import DigitPlace, Lanes, TilePlace
from .scan_tile import exclusive_scan_workgroup


@attrs.frozen
class Strand:
    """The lanes that rank together: a subgroup, or part of a workgroup without subgroups; and this lane's index."""

    index: U32
    lane: U32
    width: U32

    @classmethod
    def of(cls, cx: Invocation, policy: RadixPolicy) -> Strand:
        if policy.subgroups:
            return cls(cx.subgroup_id, cx.lane, cx.subgroup_size)
        return cls(cx.local_id // policy.strand, cx.local_id % policy.strand, U32(policy.strand))

    def first_element(self, policy: RadixPolicy) -> U32:
        """The index in the tile of this lane's element of row 0: strands are contiguous, and rows within them."""
        return self.index * policy.items * self.width + self.lane


def load_tile(
    source: SortableKey[A, N], data: Storage[A], order: SortOrder, here: TilePlace, strand: Strand,
    words: Registers[N], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Loads the strand's words, padded with the greatest word, which ranks last. No load waits behind a branch."""
    mine = strand.first_element(policy)
    first = here.start + mine
    if here.remaining() >= policy.tile:
        for row in dynamic_range(U32(0), U32(policy.items)):
            words[row] = to_ordered(source, data[add_nowrap(first, row * strand.width)], order)
    else:
        for row in dynamic_range(U32(0), U32(policy.items)):
            offset = mine + row * strand.width
            word = to_ordered(source, data[here.start + minimum(offset, here.remaining() - 1)], order)
            words[row] = word if offset < here.remaining() else source.greatest


def clear_counters(cx: Invocation, counters: Workgroup[U32], count: int) -> None:
    """Zeroes all counters; the caller has a barrier before their use."""
    for i in dynamic_range(cx.local_id, U32(count), cx.group_size):
        counters[i] = U32(0)


def sum_of_copies(counters: Workgroup[U32], counter: U32, copies: int) -> U32:
    """A privatised counter's total. Lanes begin at different copies, which are in different banks of memory."""
    total = U32(0)
    for i in dynamic_range(U32(0), U32(copies)):
        total += counters[counter * copies + (counter + i) % copies]
    return total


def count_before(cx: Invocation, shared: Workgroup[U32], mine: U32, subgroups: int, policy: RadixPolicy) -> U32:
    """An exclusive prefix sum over the workgroup; invocations beyond the first `subgroups` subgroups must have 0."""
    if not policy.subgroups:
        return exclusive_scan_workgroup(cx, Count(), shared, mine)
    before = cx.exclusive_add(mine)
    if cx.lane == cx.subgroup_size - 1 or cx.local_id == cx.group_size - 1:
        shared[cx.subgroup_id] = before + mine
    cx.barrier()
    for subgroup in range(subgroups):
        if subgroup < cx.subgroup_id:
            before += shared[subgroup]
    return before


@overridable
def match_and_rank(cx: Invocation, counters: Workgroup[U32], first: U32, digit: U32) -> U32:
    """Match and rank: adds every lane's digit to `counters[first + digit]`, in lane order; the count before this lane.
    One atomic for each distinct digit of the subgroup, by its highest lane."""
    lanes = Lanes(cx.match(digit), cx.lane, U64)
    taken = U32(0)
    if lanes.is_led_by_me():
        taken = counters.atomic_add(first + digit, lanes.count())
    return cx.shuffle(taken, lanes.leader()) + lanes.before_me()


@attrs.frozen
class Ranking(Generic[N]):
    """A tile's words in the registers of its strands, and the counters by which these rank them by a digit. Counters
    are by strand, then by digit; without subgroups, as many masks of lanes follow."""

    words: Registers[N]
    strand: Strand
    counters: Workgroup[U32]
    place: DigitPlace

    def count_strands(self, cx: Invocation, policy: RadixPolicy) -> None:
        """Adds the digits of every strand to its histogram."""
        for row in dynamic_range(U32(0), U32(policy.items)):
            digit = self.place.digit_of(self.words[row])
            self.counters.atomic_add(self.strand.index * policy.radix + digit, U32(1))
        cx.barrier()

    def total_of_digit(self, cx: Invocation, counts: Registers[U32], policy: RadixPolicy) -> U32:
        """The tile's count of this invocation's digit (its local id); `counts` has those of the strands."""
        total = U32(0)
        if cx.local_id < policy.radix:
            if policy.subgroups:
                for strand in range(policy.strands):
                    counts[strand] = self.counters[cx.local_id + strand * policy.radix]
                    total += counts[strand]
            else:  # not unrolled, for short source: web pages load this form
                for row in dynamic_range(U32(0), U32(policy.strands)):
                    counts[row] = self.counters[cx.local_id + row * policy.radix]
                    total += counts[row]
        return total

    def place_strands(
        self, cx: Invocation, counts: Registers[U32], shared: Workgroup[U32], total: U32, policy: RadixPolicy
    ) -> U32:
        """Turns every strand's count of a digit into its first index in the sorted tile; returns the digit's first
        index. The caller has a barrier before their use."""
        first = count_before(cx, shared, total, policy.digit_strands, policy)
        if cx.local_id < policy.radix:
            place = first
            if policy.subgroups:
                for strand in range(policy.strands):
                    self.counters[cx.local_id + strand * policy.radix] = place
                    place += counts[strand]
            else:
                for row in dynamic_range(U32(0), U32(policy.strands)):
                    self.counters[cx.local_id + row * policy.radix] = place
                    place += counts[row]
        return first

    def take_place(self, cx: Invocation, digit: U32, policy: RadixPolicy) -> U32:
        """The next free index of each lane's digit, in lane order; without subgroups, by masks in workgroup memory."""
        if policy.subgroups:
            return match_and_rank(cx, self.counters, self.strand.index * policy.radix, digit)
        counter = self.strand.index * policy.radix + digit
        mask = policy.strands * policy.radix + counter
        self.counters.atomic_or(mask, U32(1) << self.strand.lane)
        cx.barrier()
        lanes = Lanes(self.counters[mask], self.strand.lane, U32)
        taken = self.counters[counter]
        cx.barrier()
        if lanes.is_led_by_me():
            self.counters[mask] = U32(0)
            self.counters[counter] = taken + lanes.count()
        cx.barrier()
        return taken + lanes.before_me()

    def sort_tile(self, cx: Invocation, tile: Workgroup[N], places: Registers[U32], policy: RadixPolicy) -> None:
        """Writes every word to its index in the sorted tile, which it keeps in `places`. No barrier after it."""
        for row in dynamic_range(U32(0), U32(policy.items)):
            places[row] = self.take_place(cx, self.place.digit_of(self.words[row]), policy)
            tile[places[row]] = self.words[row]


def place_values(
    values: Storage[V], here: TilePlace, strand: Strand, places: Registers[U32], beside: Workgroup[V],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Loads the strand's values, and writes them to their keys' indices in the sorted tile. Where a word pads the tile
    the row's last value is loaded, and is never stored: no load waits behind a branch."""
    mine = strand.first_element(policy)
    first = here.start + mine
    if here.remaining() >= policy.tile:
        for row in dynamic_range(U32(0), U32(policy.items)):
            beside[places[row]] = values[add_nowrap(first, row * strand.width)]
    else:
        for row in dynamic_range(U32(0), U32(policy.items)):
            beside[places[row]] = values[here.start + minimum(mine + row * strand.width, here.remaining() - 1)]


def place_given(
    values: Storage[V], here: TilePlace, strand: Strand, places: Registers[U32], beside: Workgroup[V], mode: Mode[V],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """The same in the first pass: for argsort the values are the keys' indices in their row."""
    if mode.counts_places:
        first = here.first() + strand.first_element(policy)
        for row in dynamic_range(U32(0), U32(policy.items)):
            beside[places[row]] = mode.value(first + row * strand.width)
    else:
        place_values(values, here, strand, places, beside, policy)


def store_keys(
    cx: Invocation, tile: Workgroup[N], target: SortableKey[A, N], results: Storage[A], order: SortOrder,
    keeps_keys: bool, here: TilePlace, bases: Workgroup[U32], targets: Registers[U32], place: DigitPlace,
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Stores the sorted tile, coalesced by digit: `bases` has each digit's offset from the tile to the result. Keeps in
    `targets` the index of every key in the result, also if keys are not stored."""
    remaining = here.remaining()
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if position < remaining:
            word = tile[position]
            targets[i] = bases[place.digit_of(word)] + position
            if keeps_keys:
                results[targets[i]] = from_ordered(target, word, order)


def store_values(
    cx: Invocation, beside: Workgroup[V], values: Storage[Q], stored: type[Q], targets: Registers[U32], here: TilePlace,
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Stores the sorted tile's values, as of class `stored`, to their keys' indices in the result."""
    remaining = here.remaining()
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if position < remaining:
            values[targets[i]] = stored(beside[position])
