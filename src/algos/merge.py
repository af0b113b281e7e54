"""Merges two sorted arrays by merge path, stably: each workgroup writes a tile of the merged array.

A first launch, for floats alone, finds whether tied elements are out of order (merge_ties.py); the next, by binary
search, where each tile starts in both arrays (merge_path.py). In the last, a workgroup loads its tile, each invocation
finds its own start in the same way and merges serially. It records the source index of each element, so that values
can be permuted alike. On CPUs, where an invocation has a tile of its own, it is merged as in merge_serial.py.

Of equal elements, those of the first array come first.
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
from ..types.keys import FloatKey, SortableKey, Word
from ..types.memory import Storage, Workgroup
from ..types.params import MergeParams, MergePolicy
from ..types.scalars import U32, Bool
from .merge_path import find_cuts, of_first_before
from .merge_serial import Merged, serial_merge
from .merge_ties import check_ties, checkers_of, to_merged
from .sizes import LARGEST_U32

E = TypeVar("E")
V = TypeVar("V")
W = TypeVar("W", bound=Word)


@attrs.frozen
class Tile:
    """A tile of the merged array: its start and length, and its start in each of the two arrays."""

    start: U32
    count: U32
    first: U32
    second: U32
    of_first: U32  # how many of its elements are of the first array; these are loaded before the others

    @classmethod
    def of(cls, number: U32, cuts: Storage[U32], params: MergeParams, policy: MergePolicy) -> Tile:
        start = number * policy.tile
        count = minimum(params.first + params.second - start, U32(policy.tile))
        first = cuts[number]
        second = start - first
        # If the arrays are not sorted, the cuts are arbitrary: clamp them, so that all accesses are in bounds.
        least = count - minimum(count, params.second - second)
        of_first = minimum(cuts[number + 1] - first, minimum(count, params.first - first))
        return Tile(start, count, first, second, maximum(of_first, least))


def merge_tile(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], mine: Tile, tile: Workgroup[E],
    places: Workgroup[U32], order: SortOrder, has_ties: bool, by_rank: Bool, policy: MergePolicy,
) -> None:  # fmt: skip
    """Loads a tile, and merges it: `places` is the index in `tile` of each merged element."""
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.of_first:
            tile[i] = first[mine.first + i]
        elif i < mine.count:
            tile[i] = second[mine.second + (i - mine.of_first)]
    cx.barrier()
    of_second = mine.count - mine.of_first
    diagonal = minimum(cx.local_id * policy.items, mine.count)
    one = of_first_before(key, tile, tile, mine.of_first, mine.of_first, of_second, diagonal, order, has_ties, by_rank)
    other = mine.of_first + (diagonal - one)
    last = mine.count - 1
    ours = to_merged(key, tile[minimum(one, last)], order, has_ties, by_rank)
    theirs = to_merged(key, tile[minimum(other, last)], order, has_ties, by_rank)
    for step in dynamic_range(U32(0), U32(policy.items)):
        from_second = (one >= mine.of_first) | ((other < mine.count) & (theirs < ours))
        places[cx.local_id * policy.items + step] = other if from_second else one
        if from_second:
            other = other + 1
        else:
            one = one + 1
        following = to_merged(key, tile[minimum(other if from_second else one, last)], order, has_ties, by_rank)
        if from_second:
            theirs = following
        else:
            ours = following
    cx.barrier()


@kernel
def merge_keys(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    cuts: Storage[U32], tile: Workgroup[E], places: Workgroup[U32], params: MergeParams, order: SortOrder,
    has_ties: bool, policy: MergePolicy,
) -> None:  # fmt: skip
    """Merges a tile of keys."""
    mine = Tile.of(cx.group_id, cuts, params, policy)
    by_rank = cuts[params.tiles + 1] != 0 if has_ties else Bool(False)
    merge_tile(cx, key, first, second, mine, tile, places, order, has_ties, by_rank, policy)
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.count:
            results[mine.start + i] = tile[places[i]]


@kernel
def merge_pairs(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], first_values: Storage[V], second: Storage[E],
    second_values: Storage[V], results: Storage[E], moved: Storage[V], cuts: Storage[U32], tile: Workgroup[E],
    places: Workgroup[U32], params: MergeParams, order: SortOrder, has_ties: bool, policy: MergePolicy,
) -> None:  # fmt: skip
    """Merges a tile of key-value pairs."""
    mine = Tile.of(cx.group_id, cuts, params, policy)
    by_rank = cuts[params.tiles + 1] != 0 if has_ties else Bool(False)
    merge_tile(cx, key, first, second, mine, tile, places, order, has_ties, by_rank, policy)
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
    """Merges the sorted buffers `first` and `second` into `results`; with `values`, a class, also `first_values` and
    `second_values` into `moved`. Raises InvalidArgumentError beyond 2**32 - 1 elements."""
    if first + second > LARGEST_U32:
        raise InvalidArgumentError(
            f"first, second: expected no more than {LARGEST_U32} elements in all, found {first} and {second}"
        )
    one, other, results = keys = _buffers(("first", "second", "results"), key.element, first, second)
    carried = None if values is None else _buffers(("first_values", "second_values", "moved"), values, first, second)
    tiles = -(-(first + second) // policy.tile)
    size, tile, places = policy.group_size, Workgroup(key.element, policy.tile), Workgroup(U32, policy.tile)
    has_ties = isinstance(key, FloatKey)
    checkers = checkers_of(tiles, policy) if has_ties else 0
    cuts, unordered = Buffer("cuts", U32, tiles + 2, Role.SCRATCH), Buffer("unordered", U32, checkers, Role.SCRATCH)
    params = MergeParams(U32(first), U32(second), U32(tiles), U32(checkers))
    searchers = Grid(-(-(tiles + 1) // size), size)
    launches = [
        find_cuts.launch(
            searchers, key, one, other, unordered, cuts, Workgroup(U32, size), params, order, has_ties, policy
        )
    ]
    if isinstance(key, FloatKey):
        launches.insert(0, check_ties(key, one, other, unordered, params, order, policy))
    grid = Grid(tiles, size)
    if size == 1:
        mode = Merged(key.element if values is None else values, values is not None, has_ties)
        by_tiles = serial_merge.launch(grid, key, *keys, *(carried or keys), cuts, params, order, policy, mode)
    elif carried is None:
        by_tiles = merge_keys.launch(grid, key, *keys, cuts, tile, places, params, order, has_ties, policy)
    else:
        by_tiles = merge_pairs.launch(
            grid, key, one, carried[0], other, carried[1], results, carried[2], cuts, tile, places, params, order,
            has_ties, policy,
        )  # fmt: skip
    return Schedule((*keys, *(carried or ()), cuts, unordered), (*launches, by_tiles))


def _buffers(
    names: tuple[str, str, str], element: type[E], first: int, second: int
) -> tuple[Buffer[E], Buffer[E], Buffer[E]]:
    """The buffers of two arrays and of the merged one."""
    return (
        Buffer(names[0], element, first, Role.INPUT),
        Buffer(names[1], element, second, Role.INPUT),
        Buffer(names[2], element, first + second, Role.OUTPUT),
    )
