"""Merging two sorted arrays: the merged array is cut into tiles, and each workgroup makes one of them.

A launch finds where the tiles begin in both arrays, an invocation each; see merge_path.py. Then an invocation searches
in the same way where its own elements begin in the workgroup's tile, and takes them one after the other. What it writes
down is where each comes from, so that values can follow. A processor's core has no neighbours to share a tile with, and
makes it in another way; see merge_serial.py.

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
from ..types.memory import Storage, Workgroup
from ..types.params import MergePolicy
from ..types.scalars import U32
from .bitonic import to_ordered
from .merge_path import MergeParams, find_cuts, of_first_before
from .merge_serial import Merged, serial_merge
from .sizes import LARGEST_U32

E = TypeVar("E")
V = TypeVar("V")
W = TypeVar("W", bound=Word)


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
    one, other, results = keys = _buffers(("first", "second", "results"), key.element, first, second)
    carried = None if values is None else _buffers(("first_values", "second_values", "moved"), values, first, second)
    tiles = -(-(first + second) // policy.tile)
    cuts = Buffer("cuts", U32, tiles + 1, Role.SCRATCH)
    params = MergeParams(U32(first), U32(second), U32(tiles))
    searchers = Grid(-(-(tiles + 1) // policy.group_size), policy.group_size)
    find = find_cuts.launch(searchers, key, one, other, cuts, params, order, policy)
    grid = Grid(tiles, policy.group_size)
    tile, places = Workgroup(key.element, policy.tile), Workgroup(U32, policy.tile)
    if policy.group_size == 1:
        mode = Merged(key.element if values is None else values, takes_values=values is not None)
        by_tiles = serial_merge.launch(grid, key, *keys, *(carried or keys), cuts, params, order, policy, mode)
    elif carried is None:
        by_tiles = merge_keys.launch(grid, key, *keys, cuts, tile, places, params, order, policy)
    else:
        by_tiles = merge_pairs.launch(
            grid, key, one, carried[0], other, carried[1], results, carried[2], cuts, tile, places, params, order,
            policy,
        )  # fmt: skip
    return Schedule((*keys, *(carried or ()), cuts), (find, by_tiles))


def _buffers(
    names: tuple[str, str, str], element: type[E], first: int, second: int
) -> tuple[Buffer[E], Buffer[E], Buffer[E]]:
    """Of two arrays and what they are merged into."""
    return (
        Buffer(names[0], element, first, Role.INPUT),
        Buffer(names[1], element, second, Role.INPUT),
        Buffer(names[2], element, first + second, Role.OUTPUT),
    )
