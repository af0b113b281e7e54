"""Merging two sorted arrays: the merged array is cut into tiles, and each workgroup makes one of them.

Where a tile begins in both arrays is found by a binary search along a diagonal of the merge path (Odeh, Green, Mwassi,
Shmueli, Birk 2012): of the first `d` merged elements, how many are of the first array. A launch finds that for all
tiles, an invocation each. Then an invocation searches in the same way where its own elements begin in the workgroup's
tile, and takes them one after the other. What it writes down is where each comes from, so that values can follow.

Of equal elements those of the first array come first.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, maximum, minimum
from ..types.invocation import Invocation
from ..types.keys import SortableKey, Word
from ..types.memory import Array, Storage, Workgroup
from ..types.params import MergePolicy
from ..types.scalars import U32
from .bitonic import to_ordered
from .sizes import LARGEST_U32

E = TypeVar("E")
V = TypeVar("V")
W = TypeVar("W", bound=Word)


@attrs.frozen
class MergeParams:
    """How many elements both arrays have, and how many tiles the merged one."""

    first: U32
    second: U32
    tiles: U32


@attrs.frozen
class Tile:
    """A tile of the merged array, and where it begins in each of the two."""

    start: U32
    count: U32
    first: U32
    second: U32
    of_first: U32  # so many of its elements; they lie before the others

    @classmethod
    def of(cls, number: U32, cuts: Storage[U32], params: MergeParams, policy: MergePolicy) -> Tile:
        start = number * policy.tile
        count = minimum(params.first + params.second - start, U32(policy.tile))
        first = cuts[number]
        second = start - first
        # Of arrays that are not sorted the cuts are any: then too, no more is read than there is.
        least = count - minimum(count, params.second - second)
        of_first = minimum(cuts[number + 1] - first, minimum(count, params.first - first))
        return Tile(start, count, first, second, maximum(of_first, least))


def of_first_before(
    key: SortableKey[E, W], first: Array[E], second: Array[E], start: U32, of_first: U32, of_second: U32,
    diagonal: U32, order: SortOrder,
) -> U32:  # fmt: skip
    """How many of so many merged elements, the diagonal, are of the first array; the second begins at `start`."""
    low = diagonal - of_second if diagonal > of_second else U32(0)
    high = minimum(diagonal, of_first)
    while low < high:
        middle = low + (high - low) // 2
        theirs = to_ordered(key, second[start + (diagonal - 1 - middle)], order)
        if theirs < to_ordered(key, first[middle], order):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def find_cuts(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], cuts: Storage[U32],
    params: MergeParams, order: SortOrder, policy: MergePolicy,
) -> None:  # fmt: skip
    """How many elements of the first array lie before each tile; and behind the last one, all."""
    if cx.global_id < params.tiles:
        diagonal = cx.global_id * policy.tile
        cuts[cx.global_id] = of_first_before(
            key, first, second, U32(0), params.first, params.second, diagonal, order
        )  # fmt: skip
    elif cx.global_id == params.tiles:
        cuts[cx.global_id] = params.first


def merge_tile(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], mine: Tile, tile: Workgroup[E],
    places: Workgroup[U32], order: SortOrder, policy: MergePolicy,
) -> None:  # fmt: skip
    """Fetches a tile, and says for each place of it which of the elements fetched comes there."""
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.of_first:
            tile[i] = first[mine.first + i]
        elif i < mine.count:
            tile[i] = second[mine.second + (i - mine.of_first)]
    cx.barrier()
    of_second = mine.count - mine.of_first
    diagonal = minimum(cx.local_id * policy.items, mine.count)
    one = of_first_before(key, tile, tile, mine.of_first, mine.of_first, of_second, diagonal, order)
    other = mine.of_first + (diagonal - one)
    last = mine.count - 1
    ours = to_ordered(key, tile[minimum(one, last)], order)
    theirs = to_ordered(key, tile[minimum(other, last)], order)
    for step in dynamic_range(U32(0), U32(policy.items)):
        from_second = (one >= mine.of_first) | ((other < mine.count) & (theirs < ours))
        places[cx.local_id * policy.items + step] = other if from_second else one
        if from_second:
            other = other + 1
        else:
            one = one + 1
        following = to_ordered(key, tile[minimum(other if from_second else one, last)], order)
        if from_second:
            theirs = following
        else:
            ours = following
    cx.barrier()


@kernel
def merge_keys(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    cuts: Storage[U32], tile: Workgroup[E], places: Workgroup[U32], params: MergeParams, order: SortOrder,
    policy: MergePolicy,
) -> None:  # fmt: skip
    """A tile of the merged array."""
    mine = Tile.of(cx.group_id, cuts, params, policy)
    merge_tile(cx, key, first, second, mine, tile, places, order, policy)
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.count:
            results[mine.start + i] = tile[places[i]]


@kernel
def merge_pairs(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], first_values: Storage[V], second: Storage[E],
    second_values: Storage[V], results: Storage[E], moved: Storage[V], cuts: Storage[U32], tile: Workgroup[E],
    places: Workgroup[U32], params: MergeParams, order: SortOrder, policy: MergePolicy,
) -> None:  # fmt: skip
    """The same with a value for each element."""
    mine = Tile.of(cx.group_id, cuts, params, policy)
    merge_tile(cx, key, first, second, mine, tile, places, order, policy)
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.count:
            place = places[i]
            results[mine.start + i] = tile[place]
            if place < mine.of_first:
                moved[mine.start + i] = first_values[mine.first + place]
            else:
                moved[mine.start + i] = second_values[mine.second + (place - mine.of_first)]


def merge(
    key: SortableKey[Any, Any], first: int, second: int, order: SortOrder, policy: MergePolicy, values: Any = None
) -> Schedule:
    """Merges sorted `first` and `second` into `results`; with a class of `values`, also `first_values` and
    `second_values` into `moved`."""
    if first + second > LARGEST_U32:
        raise InvalidArgumentError(
            f"first, second: expected no more than {LARGEST_U32} elements in all, found {first} and {second}"
        )
    first_keys, second_keys, results = _buffers(("first", "second", "results"), key.element, first, second)
    tiles = -(-(first + second) // policy.tile)
    cuts = Buffer("cuts", U32, tiles + 1, Role.SCRATCH)
    params = MergeParams(U32(first), U32(second), U32(tiles))
    searchers = Grid(-(-(tiles + 1) // policy.group_size), policy.group_size)
    find = find_cuts.launch(searchers, key, first_keys, second_keys, cuts, params, order, policy)
    grid, tile, places = (
        Grid(tiles, policy.group_size),
        Workgroup(key.element, policy.tile),
        Workgroup(U32, policy.tile),
    )
    if values is None:
        by_tiles = merge_keys.launch(
            grid, key, first_keys, second_keys, results, cuts, tile, places, params, order, policy
        )  # fmt: skip
        return Schedule((first_keys, second_keys, results, cuts), (find, by_tiles))
    firsts, seconds, moved = _buffers(("first_values", "second_values", "moved"), values, first, second)
    by_tiles = merge_pairs.launch(
        grid, key, first_keys, firsts, second_keys, seconds, results, moved, cuts, tile, places, params, order, policy
    )
    return Schedule((first_keys, firsts, second_keys, seconds, results, moved, cuts), (find, by_tiles))


def _buffers(
    names: tuple[str, str, str], element: type[E], first: int, second: int
) -> tuple[Buffer[E], Buffer[E], Buffer[E]]:
    """Of two arrays and what they are merged into."""
    return (
        Buffer(names[0], element, first, Role.INPUT),
        Buffer(names[1], element, second, Role.INPUT),
        Buffer(names[2], element, first + second, Role.OUTPUT),
    )
