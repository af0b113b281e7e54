"""Sorting one tile by one digit in workgroup memory: what both forms of radix sort are made of.

Within a tile, a strand of lanes ranks its elements together, row by row, so that ranks follow the memory's order.
First the strands count their digits; then every (digit, strand) gets its first place in the sorted tile; then the
elements take places from there, one after another.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..types.digits import Digit, DigitPlace, Lanes, StrandLanes
from ..types.indices import SortOrder
from ..types.intrinsics import add_nowrap, dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Count
from ..types.overridable import overridable
from ..types.params import RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from .bitonic import from_ordered, to_ordered
from .radix_layout import TilePlace
from .scan_tile import exclusive_scan_workgroup

A = TypeVar("A")
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class RadixMode(Generic[V]):
    """What is sorted, and what is left out where nobody needs it."""

    value: type[V]
    in_place: bool = False  # the keys come in `results`, and `data` is not read
    takes_values: bool = False  # every key takes a value along
    counts_places: bool = False  # the values are the keys' places: they are not read, but counted
    keeps_keys: bool = True  # the last pass writes the keys too


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

    def first_element(self, policy: RadixPolicy) -> U32:
        """Where in the tile my element of row 0 lies: strands lie one behind the other, rows within them too."""
        return self.index * policy.items * self.width + self.lane

    def counter(self, digit: Digit, policy: RadixPolicy) -> U32:
        return self.index * policy.radix + digit.value


def load_tile(
    source: SortableKey[A, W], data: Storage[A], order: SortOrder, here: TilePlace, strand: Strand,
    words: Registers[W], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Reads the strand's words. Beyond the end stand greatest words: they rank last, so what is there comes first."""
    mine = strand.first_element(policy)
    first = here.start + mine
    if here.remaining() >= policy.tile:
        for row in dynamic_range(U32(0), U32(policy.items)):
            words[row] = to_ordered(source, data[add_nowrap(first, row * strand.width)], order)
    else:
        for row in dynamic_range(U32(0), U32(policy.items)):
            is_there = mine + row * strand.width < here.remaining()
            words[row] = (
                to_ordered(source, data[add_nowrap(first, row * strand.width)], order) if is_there else source.greatest
            )


def count_strands(
    cx: Invocation,
    words: Registers[W],
    strand: Strand,
    counters: Workgroup[U32],
    place: DigitPlace,
    policy: RadixPolicy,
) -> None:
    """Counts the digits of every strand."""
    for row in dynamic_range(U32(0), U32(policy.items)):
        counters.atomic_add(strand.index * policy.radix + place.digit_of(words[row]).value, U32(1))
    cx.barrier()


def clear_counters(cx: Invocation, counters: Workgroup[U32], policy: RadixPolicy) -> None:
    """The caller waits before they are used."""
    for i in dynamic_range(cx.local_id, U32(policy.counters), cx.group_size):
        counters[i] = U32(0)


def total_of_digit(cx: Invocation, counters: Workgroup[U32], counts: Registers[U32], policy: RadixPolicy) -> U32:
    """How many elements of the tile have the digit that this invocation looks after (its local id)."""
    total = U32(0)
    if cx.local_id < policy.radix:
        if policy.subgroups:
            for strand in range(policy.strands):
                counts[strand] = counters[cx.local_id + strand * policy.radix]
                total += counts[strand]
        else:  # for short texts: the form that runs anywhere is what pages load
            for row in dynamic_range(U32(0), U32(policy.strands)):
                counts[row] = counters[cx.local_id + row * policy.radix]
                total += counts[row]
    return total


def place_strands(
    cx: Invocation, counters: Workgroup[U32], counts: Registers[U32], shared: Workgroup[U32], total: U32,
    policy: RadixPolicy,
) -> U32:  # fmt: skip
    """Turns every strand's count of a digit into its first place in the sorted tile; gives the digit's first place.

    The caller waits before the places are used.
    """
    first = count_before(cx, shared, total, policy.digit_strands, policy)
    if cx.local_id < policy.radix:
        place = first
        if policy.subgroups:
            for strand in range(policy.strands):
                counters[cx.local_id + strand * policy.radix] = place
                place += counts[strand]
        else:
            for row in dynamic_range(U32(0), U32(policy.strands)):
                counters[cx.local_id + row * policy.radix] = place
                place += counts[row]
    return first


def count_before(cx: Invocation, shared: Workgroup[U32], mine: U32, subgroups: int, policy: RadixPolicy) -> U32:
    """The sum over the invocations before this one; those behind so many subgroups have nothing."""
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
    """Counts every lane's digit at `counters[first + digit]`, in the order of the lanes; gives the count before it."""
    lanes = Lanes(cx.match(digit), cx.lane)
    taken = U32(0)
    if lanes.is_led_by_me():
        taken = counters.atomic_add(first + digit, lanes.count())
    return cx.shuffle(taken, lanes.leader()) + lanes.before_me()


def take_place(cx: Invocation, digit: Digit, strand: Strand, counters: Workgroup[U32], policy: RadixPolicy) -> U32:
    """The next free place of my digit, for every lane of a row: those with one digit take theirs in a row."""
    if policy.subgroups:
        return match_and_rank(cx, counters, strand.index * policy.radix, digit.value)
    counter = strand.counter(digit, policy)
    mask = policy.strands * policy.radix + counter
    counters.atomic_or(mask, U32(1) << strand.lane)
    cx.barrier()
    lanes = StrandLanes(counters[mask], strand.lane)
    taken = counters[counter]
    cx.barrier()
    if lanes.is_led_by_me():
        counters[mask] = U32(0)
        counters[counter] = taken + lanes.count()
    cx.barrier()
    return taken + lanes.before_me()


def sort_tile(
    cx: Invocation, words: Registers[W], strand: Strand, tile: Workgroup[W], counters: Workgroup[U32],
    places: Registers[U32], place: DigitPlace, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Puts every word into its place of the sorted tile, for a value to follow. The caller waits before it is read."""
    for row in dynamic_range(U32(0), U32(policy.items)):
        places[row] = take_place(cx, place.digit_of(words[row]), strand, counters, policy)
        tile[places[row]] = words[row]


def place_values(
    values: Storage[V], here: TilePlace, strand: Strand, places: Registers[U32], beside: Workgroup[V],
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Reads the strand's values, and puts them where their keys are in the sorted tile."""
    mine = strand.first_element(policy)
    first = here.start + mine
    if here.remaining() >= policy.tile:
        for row in dynamic_range(U32(0), U32(policy.items)):
            beside[places[row]] = values[add_nowrap(first, row * strand.width)]
    else:
        for row in dynamic_range(U32(0), U32(policy.items)):
            if mine + row * strand.width < here.remaining():
                beside[places[row]] = values[add_nowrap(first, row * strand.width)]


def place_numbers(
    value: type[V], here: TilePlace, strand: Strand, places: Registers[U32], beside: Workgroup[V], policy: RadixPolicy
) -> None:
    """The same where the values are the keys' places in their row."""
    first = here.first() + strand.first_element(policy)
    for row in dynamic_range(U32(0), U32(policy.items)):
        beside[places[row]] = value(first + row * strand.width)


def store_keys(
    cx: Invocation, tile: Workgroup[W], target: SortableKey[A, W], results: Storage[A], order: SortOrder,
    keeps_keys: bool, here: TilePlace, bases: Workgroup[U32], targets: Registers[U32], place: DigitPlace,
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the sorted tile: `bases` leads, for each digit, from places in the tile to places in the result.

    Keeps in `targets` where every key goes, written or not.
    """
    remaining = here.remaining()
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if position < remaining:
            word = tile[position]
            targets[i] = bases[place.digit_of(word).value] + position
            if keeps_keys:
                results[targets[i]] = from_ordered(target, word, order)


def store_values(
    cx: Invocation, beside: Workgroup[V], values: Storage[V], targets: Registers[U32], here: TilePlace,
    policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the sorted tile's values to where their keys went."""
    remaining = here.remaining()
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if position < remaining:
            values[targets[i]] = beside[position]
