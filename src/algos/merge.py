"""Merges two sorted arrays by merge path, stably: each workgroup writes a tile of the merged array.

The first launches find where each tile starts in both arrays (merge_path.py). In the last, each invocation finds its
own start in a workgroup's tile in the same way and merges serially, with each element's source index for its value. On
CPU cores an invocation merges a tile of its own from both ends at once: two dependency chains, which a core overlaps.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs

from ..kernel.language import *
from ..types.errors import InvalidArgumentError
from ..types.keys import FloatKey, RankKey
from ..types.params import MergeParams, MergePolicy
from .bitonic import to_ordered
from .merge_path import MergeOrder, check_ties, checkers_of, find_cuts, of_first_before
from .sizes import LARGEST_U32

T = TypeVar("T")  # a value of any class, which only moves


@attrs.frozen
class Merged(Generic[T]):
    """Whether keys are merged alone, or with values of a class; and whether they may be tied, as floats."""

    value: type[T]
    takes_values: bool
    has_ties: bool


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
        # If the arrays are not sorted, a cut may be before the last one, or too far behind it: clamp their distance, so
        # that all accesses are in bounds. Each cut by itself leaves as many elements of both as there are.
        of_first = minimum(cuts[number + 1] - first, minimum(count, params.first - first))
        return Tile(start, count, first, second, of_first)


@kernel
def merge_tiles(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    first_values: Storage[T], second_values: Storage[T], moved: Storage[T], cuts: Storage[U32], tile: Workgroup[E],
    places: Workgroup[U32], params: MergeParams, order: SortOrder, policy: MergePolicy, mode: Merged[T],
) -> None:  # fmt: skip
    """Merges a tile by a workgroup: loads it, those of the first array before the others, and finds for each merged
    element its index there, `places`."""
    mine = Tile.of(cx.group_id, cuts, params, policy)
    by = MergeOrder(key, order, mode.has_ties, cuts[params.tiles + 1] != 0 if mode.has_ties else Bool(False))
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.of_first:
            tile[i] = first[mine.first + i]
        elif i < mine.count:
            tile[i] = second[mine.second + (i - mine.of_first)]
    cx.barrier()
    diagonal = minimum(cx.local_id * policy.items, mine.count)
    one = of_first_before(by, tile, tile, mine.of_first, mine.of_first, mine.count - mine.of_first, diagonal)
    other = mine.of_first + (diagonal - one)
    last = mine.count - 1
    ours, theirs = by.word(tile[minimum(one, last)]), by.word(tile[minimum(other, last)])
    for step in dynamic_range(U32(0), U32(policy.items)):
        is_theirs = (one >= mine.of_first) | ((other < mine.count) & (theirs < ours))
        places[cx.local_id * policy.items + step] = other if is_theirs else one
        if is_theirs:
            other = other + 1
        else:
            one = one + 1
        following = by.word(tile[minimum(other if is_theirs else one, last)])
        if is_theirs:
            theirs = following
        else:
            ours = following
    cx.barrier()
    for step in dynamic_range(U32(0), U32(policy.items)):
        i = step * cx.group_size + cx.local_id
        if i < mine.count:
            place = places[i]
            results[mine.start + i] = tile[place]
            if mode.takes_values:
                if place < mine.of_first:
                    moved[mine.start + i] = first_values[mine.first + place]
                else:
                    moved[mine.start + i] = second_values[mine.second + (place - mine.of_first)]


def merge_tile_serially(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    first_values: Storage[T], second_values: Storage[T], moved: Storage[T], cuts: Storage[U32], params: MergeParams,
    order: SortOrder, policy: MergePolicy, mode: Merged[T],
) -> None:  # fmt: skip
    """Merges a workgroup's tile by a key."""
    start = cx.group_id * policy.tile
    count = minimum(params.first + params.second - start, U32(policy.tile))
    from_one, to_one = cuts[cx.group_id], cuts[cx.group_id + 1]
    from_other, to_other = start - from_one, start + count - to_one
    one, other, one_end, other_end = from_one, from_other, to_one, to_other
    for step in dynamic_range(U32(0), (count + 1) // 2):
        place = start + step
        if (one < to_one) & (other < to_other):
            ours, theirs = first[one], second[other]
            is_theirs = to_ordered(key, theirs, order) < to_ordered(key, ours, order)
            results[place] = theirs if is_theirs else ours
            if mode.takes_values:
                my_value, their_value = first_values[one], second_values[other]
                moved[place] = their_value if is_theirs else my_value
            one, other = one + U32(~is_theirs), other + U32(is_theirs)
        elif other < to_other:
            results[place] = second[other]
            if mode.takes_values:
                moved[place] = second_values[other]
            other = other + 1
        else:
            results[place] = first[one]
            if mode.takes_values:
                moved[place] = first_values[one]
            one = one + 1
        place = start + (count - 1 - step)
        if (one_end > from_one) & (other_end > from_other):
            ours, theirs = first[one_end - 1], second[other_end - 1]
            is_ours = to_ordered(key, theirs, order) < to_ordered(key, ours, order)
            results[place] = ours if is_ours else theirs
            if mode.takes_values:
                my_value, their_value = first_values[one_end - 1], second_values[other_end - 1]
                moved[place] = my_value if is_ours else their_value
            one_end, other_end = one_end - U32(is_ours), other_end - U32(~is_ours)
        elif other_end > from_other:
            other_end = other_end - 1
            results[place] = second[other_end]
            if mode.takes_values:
                moved[place] = second_values[other_end]
        else:
            one_end = one_end - 1
            results[place] = first[one_end]
            if mode.takes_values:
                moved[place] = first_values[one_end]


@kernel
def serial_merge(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    first_values: Storage[T], second_values: Storage[T], moved: Storage[T], cuts: Storage[U32], params: MergeParams,
    order: SortOrder, policy: MergePolicy, mode: Merged[T],
) -> None:  # fmt: skip
    """Merges a tile by an invocation."""
    if cuts[params.tiles + 1] != 0 if mode.has_ties else Bool(False):
        ranks: RankKey[E, W] = RankKey(key)
        merge_tile_serially(
            cx, ranks, first, second, results, first_values, second_values, moved, cuts, params, order, policy, mode
        )  # fmt: skip
    else:
        merge_tile_serially(
            cx, key, first, second, results, first_values, second_values, moved, cuts, params, order, policy, mode
        )  # fmt: skip


def merge(
    key: SortableKey[Any, Any], first: int, second: int, order: SortOrder, policy: MergePolicy, values: Any = None
) -> Schedule:
    """Merges the sorted buffers `first` and `second` into `results`; with `values`, a class, also `first_values` and
    `second_values` into `moved`. Raises InvalidArgumentError beyond 2**32 - 1 elements."""
    if first + second > LARGEST_U32:
        raise InvalidArgumentError(
            f"first, second: expected no more than {LARGEST_U32} elements in all, found {first} and {second}"
        )
    one, other, _ = keys = _buffers(("first", "second", "results"), key.element, first, second)
    carried = None if values is None else _buffers(("first_values", "second_values", "moved"), values, first, second)
    tiles = -(-(first + second) // policy.tile)
    size, tile, places = policy.group_size, Workgroup(key.element, policy.tile), Workgroup(U32, policy.tile)
    has_ties = isinstance(key, FloatKey)
    checkers = checkers_of(tiles, policy) if has_ties else 0
    cuts, unordered = Buffer("cuts", U32, tiles + 2, Role.SCRATCH), Buffer("unordered", U32, checkers, Role.SCRATCH)
    params = MergeParams(U32(first), U32(second), U32(tiles), U32(checkers))
    searchers = Grid(-(-(tiles + 1) // size), size)
    launches = [check_ties(key, one, other, unordered, params, order, policy)] if isinstance(key, FloatKey) else []
    shared = Workgroup(U32, size)
    launches.append(
        find_cuts.launch(searchers, key, one, other, unordered, cuts, shared, params, order, has_ties, policy)
    )
    grid, mode = Grid(tiles, size), Merged(key.element if values is None else values, values is not None, has_ties)
    arrays = *keys, *(carried or keys), cuts
    if size == 1:
        by_tiles = serial_merge.launch(grid, key, *arrays, params, order, policy, mode)
    else:
        by_tiles = merge_tiles.launch(grid, key, *arrays, tile, places, params, order, policy, mode)
    return Schedule((*keys, *(carried or ())), (*launches, by_tiles))


def _buffers(
    names: tuple[str, str, str], element: type[E], first: int, second: int
) -> tuple[Buffer[E], Buffer[E], Buffer[E]]:
    one, other = Buffer(names[0], element, first, Role.INPUT), Buffer(names[1], element, second, Role.INPUT)
    return one, other, Buffer(names[2], element, first + second, Role.OUTPUT)
