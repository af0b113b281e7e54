"""Merge path (Odeh, Green, Mwassi, Shmueli, Birk 2012): partitions a merge into independent tiles, by a binary search
along a diagonal for how many of the first `d` merged elements are of the first array.

Floats may be tied: `sort` puts -0.0 before 0.0, and NaNs in the order of their bits; `np.sort` leaves them as they
come. A launch before finds the ties; if any are out of order, the merge compares ranks, by which ties are equal.
"""

from __future__ import annotations

from typing import Any, Generic

import attrs

from ..kernel.language import *
from ..types.keys import FloatKey, RankKey
from ..types.memory import Array
from ..types.params import MergeParams, MergePolicy
from .bitonic import to_ordered
from .ties import first_not_below, lesser_zero, workgroup_sum

_MOST_HALVINGS = 32
_MOST_CHECKERS = 1024  # workgroups; enough to read ties at a card's bandwidth
_MOST_SERIAL = 32  # of one invocation each
_WIDE, _NARROW = 16, 4  # ways of a search, whose loads are independent; on a device they hide its latency
_ENDS = 6  # of each array: where its zeros start, where they end, where its NaNs start


@attrs.frozen
class MergeOrder(Generic[E, W]):
    """By what elements are merged. Only keys that have ties are asked whether to merge by rank."""

    key: SortableKey[E, W]
    order: SortOrder
    has_ties: bool
    by_rank: Bool

    def word(self, element: E) -> W:
        word = to_ordered(self.key, element, self.order)
        if self.has_ties:
            ranks: RankKey[E, W] = RankKey(self.key)
            rank = to_ordered(ranks, element, self.order)
            return rank if self.by_rank else word
        return word


def of_first_before(
    by: MergeOrder[E, W], first: Array[E], second: Array[E], start: U32, of_first: U32, of_second: U32, diagonal: U32
) -> U32:
    """How many of the first `diagonal` merged elements are of the first array; the second starts at index `start`."""
    low = diagonal - of_second if diagonal > of_second else U32(0)
    high = minimum(diagonal, of_first)
    for _ in dynamic_range(U32(0), U32(_MOST_HALVINGS)):  # a `while` would not be known to end, and have to poll
        if low >= high:
            break
        middle = low + (high - low) // 2
        if by.word(second[start + (diagonal - 1 - middle)]) < by.word(first[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def find_cuts(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], unordered: Storage[U32],
    cuts: Storage[U32], shared: Workgroup[U32], params: MergeParams, order: SortOrder, has_ties: bool,
    policy: MergePolicy,
) -> None:  # fmt: skip
    """Finds the start of each tile in the first array; after the last one, its length, and whether to merge by rank."""
    by_rank = any_unordered(cx, unordered, params.groups, shared) if has_ties else Bool(False)
    by = MergeOrder(key, order, has_ties, by_rank)
    if cx.global_id < params.tiles:
        diagonal = cx.global_id * policy.tile
        cuts[cx.global_id] = of_first_before(by, first, second, U32(0), params.first, params.second, diagonal)
    elif cx.global_id == params.tiles:
        cuts[cx.global_id] = params.first
        cuts[cx.global_id + 1] = U32(by_rank)


def checkers_of(tiles: int, policy: MergePolicy) -> int:
    """How many workgroups check the ties of so many tiles."""
    return min(tiles, _MOST_SERIAL if policy.group_size == 1 else _MOST_CHECKERS)


def find_end(key: FloatKey[A, N], data: Storage[A], length: U32, which: U32, order: SortOrder, ways: int) -> U32:
    """Where a sorted array's zeros start or end, or its NaNs start."""
    zeros, nans = lesser_zero(key, order), key.word(key.last + 1)
    bound = zeros if which == 0 else (zeros + 2 if which == 1 else nans)
    return first_not_below(key, data, U32(0), U32(0), length, bound, order, ways)


def is_unordered(
    cx: Invocation, key: FloatKey[A, N], data: Storage[A], start: U32, end: U32, groups: U32, order: SortOrder
) -> Bool:
    """Whether any pair of neighbours in an invocation's share of a range is out of order."""
    found = Bool(False)
    count = end - minimum(start, end)  # the range may end where 32 bits do, and be empty in unsorted arrays
    for i in dynamic_range(cx.global_id + 1, count, groups * cx.group_size):
        found = found | (to_ordered(key, data[start + i], order) < to_ordered(key, data[start + i - 1], order))
    return found


@kernel
def find_unordered_ties(
    cx: Invocation, key: FloatKey[A, N], first: Storage[A], second: Storage[A], unordered: Storage[U32],
    ends: Workgroup[U32], shared: Workgroup[U32], params: MergeParams, order: SortOrder, ways: int,
) -> None:  # fmt: skip
    """Each workgroup writes how many of its invocations found ties out of order in their shares of both arrays."""
    for number in dynamic_range(cx.local_id, U32(_ENDS), cx.group_size):
        if number < _ENDS // 2:
            ends[number] = find_end(key, first, params.first, number, order, ways)
        else:
            ends[number] = find_end(key, second, params.second, number - _ENDS // 2, order, ways)
    cx.barrier()
    found = is_unordered(cx, key, first, ends[0], minimum(ends[1], params.first), params.groups, order)
    found = found | is_unordered(cx, key, first, ends[2], params.first, params.groups, order)
    found = found | is_unordered(cx, key, second, ends[3], minimum(ends[4], params.second), params.groups, order)
    found = found | is_unordered(cx, key, second, ends[5], params.second, params.groups, order)
    total = workgroup_sum(cx, U32(found), shared)
    if cx.local_id == 0:
        unordered[cx.group_id] = total


def check_ties(
    key: FloatKey[Any, Any], first: Buffer[Any], second: Buffer[Any], unordered: Buffer[U32], params: MergeParams,
    order: SortOrder, policy: MergePolicy,
) -> Launch:  # fmt: skip
    size, ways = policy.group_size, _NARROW if policy.group_size == 1 else _WIDE
    ends, shared = Workgroup(U32, _ENDS), Workgroup(U32, size)
    grid = Grid(unordered.count, size)
    return find_unordered_ties.launch(grid, key, first, second, unordered, ends, shared, params, order, ways)


def any_unordered(cx: Invocation, unordered: Storage[U32], groups: U32, shared: Workgroup[U32]) -> Bool:
    """Whether any workgroup found ties out of order."""
    found = U32(0)
    for group in dynamic_range(cx.local_id, groups, cx.group_size):
        found = found | unordered[group]
    return workgroup_sum(cx, U32(found != 0), shared) != 0
