"""Selection by radix select, a workgroup for each row: for many rows, and any k.

Histograms of digits, from the most significant on, find the k-th word, mostly after two or three reads of the row,
which caches hold. One more read collects the first k elements in the order of their indices, so that a stable sort of
the words gives ties to the lowest index.
"""

from __future__ import annotations

from typing import Generic

import attrs

from ..kernel.language import *
from ..types.checks import as_int, is_bool, require, within
from ..types.monoids import Count
from ..types.params import MOST_INVOCATIONS, MOST_ITEMS, FirstParams, ScanningPolicy
from .bitonic import to_ordered
from .radix_tile import clear_counters, sum_of_copies
from .scan_tile import scan_workgroup

_HALF = 1 << 16  # two counts in one word: a tile has fewer elements

# What the invocation that finds a digit tells all: it, the rank among what has it, and whether all of that count.
_DIGIT, _WANTED, _ENDS = 0, 1, 2
PICKED = 3


@attrs.frozen
class DigitsPolicy(ScanningPolicy):
    """Tuning of a selection by digits. A workgroup goes through its row tile by tile."""

    group_size: int = attrs.field(default=256, converter=as_int, validator=within(2, MOST_INVOCATIONS))
    # elements that an invocation loads at a time
    items: int = attrs.field(default=8, converter=as_int, validator=within(1, MOST_ITEMS))
    subgroups: bool = attrs.field(default=False, validator=is_bool)
    digit_bits: int = attrs.field(default=8, converter=as_int, validator=within(1, 12))
    # of a histogram, against contention of lanes
    copies: int = attrs.field(default=8, converter=as_int, validator=within(1, 64))

    def __attrs_post_init__(self) -> None:
        digits = f"at least {self.radix}, an invocation for each of the 2**{self.digit_bits} digits"
        require(self.group_size >= self.radix, self, "group_size", digits)
        require(self.tile < _HALF, self, "items", f"fewer than {_HALF} elements in a tile")

    @property
    def radix(self) -> int:
        return 1 << self.digit_bits

    @property
    def counters(self) -> int:
        return self.radix * self.copies


@attrs.frozen
class Threshold(Generic[N]):
    """The greatest word that is among the first k, and how many elements with this one are."""

    word: N
    ties: U32


def kth_word(
    cx: Invocation, key: SortableKey[E, N], data: Storage[E], first: U32, length: U32, k: U32,
    counters: Workgroup[U32], shared: Workgroup[U32], picked: Workgroup[U32], passes: int, order: SortOrder,
    policy: DigitsPolicy,
) -> Threshold[N]:  # fmt: skip
    """Radix select: the k-th of the words of `length` elements from index `first`."""
    word = key.word(0)
    wanted = k
    elements: Registers[E] = Registers(key.element, policy.items)
    copy = cx.local_id % policy.copies
    for number in dynamic_range(U32(0), U32(passes)):
        shift = (passes - 1 - number) * policy.digit_bits
        clear_counters(cx, counters, policy.counters)
        cx.barrier()
        for start in dynamic_range(U32(0), length, U32(policy.tile)):
            rest = length - start
            for i in dynamic_range(U32(0), U32(policy.items)):
                elements[i] = data[first + start + minimum(i * cx.group_size + cx.local_id, rest - 1)]
            for i in dynamic_range(U32(0), U32(policy.items)):
                own = to_ordered(key, elements[i], order) >> shift
                if (i * cx.group_size + cx.local_id < rest) & ((own ^ (word >> shift)) >> policy.digit_bits == 0):
                    counters.atomic_add((U32(own) & (policy.radix - 1)) * policy.copies + copy, U32(1))
        cx.barrier()
        count = U32(0)
        if cx.local_id < policy.radix:
            count = sum_of_copies(counters, cx.local_id, policy.copies)
        before = scan_workgroup(cx, Count(), shared, count, policy).before
        if (before < wanted) & (wanted <= before + count):
            picked[_DIGIT] = cx.local_id
            picked[_WANTED] = wanted - before
            picked[_ENDS] = U32(wanted - before == count)
        ends = cx.load_uniform(picked, _ENDS) != 0
        word = word | (key.word(picked[_DIGIT]) << shift)
        wanted = picked[_WANTED]
        if ends:  # all that begin so are among the first k
            word = word | ((key.word(1) << shift) - 1)
            break
    return Threshold(word, wanted)


@kernel
def select_by_digits(
    cx: Invocation, key: SortableKey[E, N], data: Storage[E], counters: Workgroup[U32], shared: Workgroup[U32],
    picked: Workgroup[U32], words: Storage[N], chosen: Storage[U32], params: FirstParams, passes: int, order: SortOrder,
    policy: DigitsPolicy,
) -> None:  # fmt: skip
    """Writes the words of each row's first k elements, and their indices in the row, ascending."""
    first = cx.group_id * params.length
    threshold = kth_word(cx, key, data, first, params.length, params.k, counters, shared, picked, passes, order, policy)
    lesser = U32(0)
    ties = U32(0)
    elements: Registers[E] = Registers(key.element, policy.items)
    for start in dynamic_range(U32(0), params.length, U32(policy.tile)):
        mine = start + cx.local_id * policy.items
        for i in dynamic_range(U32(0), U32(policy.items)):
            elements[i] = data[first + minimum(mine + i, params.length - 1)]
        counts = U32(0)
        for i in dynamic_range(U32(0), U32(policy.items)):
            word = to_ordered(key, elements[i], order)
            if mine + i < params.length:
                counts += U32(word < threshold.word) * _HALF + U32(word == threshold.word)
        found = scan_workgroup(cx, Count(), shared, counts, policy)
        if counts != 0:
            lesser_before = lesser + found.before // _HALF
            ties_before = ties + found.before % _HALF
            for i in dynamic_range(U32(0), U32(policy.items)):
                word = to_ordered(key, elements[i], order)
                if mine + i < params.length:
                    is_tie = word == threshold.word
                    if (word < threshold.word) | (is_tie & (ties_before < threshold.ties)):
                        slot = cx.group_id * params.k + lesser_before + minimum(ties_before, threshold.ties)
                        words[slot] = word
                        chosen[slot] = mine + i
                    lesser_before += U32(word < threshold.word)
                    ties_before += U32(is_tie)
        lesser += found.total // _HALF
        ties += found.total % _HALF
        cx.barrier()


@kernel
def take_chosen(
    cx: Invocation, data: Storage[E], chosen: Storage[U32], places: Storage[U64], values: Storage[E],
    indices: Storage[U64], params: FirstParams,
) -> None:  # fmt: skip
    """Maps each row's sorted order of the chosen to their indices, and gathers their elements."""
    for i in dynamic_range(cx.global_id, params.num_rows * params.k, cx.num_groups * cx.group_size):
        row = i // params.k
        place = chosen[row * params.k + U32(places[i])]
        indices[i] = U64(place)
        values[i] = data[row * params.length + place]
