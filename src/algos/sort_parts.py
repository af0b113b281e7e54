"""Sorts and argsorts rows beyond the largest buffer binding: sorts parts in buffers of their own, and merges these.

A network that sorts elements also sorts sorted blocks, with merge-and-split in place of compare-and-swap (Knuth 5.3.4).
Two parts are merged as in a stage of the bitonic network: the mirrored pass between them, then the other passes within
each. Parts have the same power of two of elements, but the last may have fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..kernel.language import *
from ..kernel.launch import is_buffer, unbound
from ..types.params import BitonicPolicy, PartsParams, RowsParams
from .argsort import Placed, placed_key, take_places
from .batch import PairsAlgorithm, looping_grid
from .bitonic import merge_launches, to_ordered
from .merge_exchange import compared_parts
from .sorts import SortAlgorithm, argsort

_MOST_GROUPS = 1 << 12  # in the mirrored pass


@kernel
def bitonic_across(
    cx: Invocation, key: SortableKey[E, W], lower: Storage[E], upper: Storage[E], params: PartsParams
) -> None:
    """The mirrored pass of a merge: compares every element of the upper part with its mirror image in the lower one."""
    for i in dynamic_range(cx.global_id, params.num_upper, cx.num_groups * cx.group_size):
        image = params.num_lower - 1 - i
        low, high = lower[image], upper[i]
        if to_ordered(key, high, params.order) < to_ordered(key, low, params.order):
            lower[image] = high
            upper[i] = low


def sort_parts(
    key: SortableKey[E, W], lengths: Sequence[int], order: SortOrder, algorithm: SortAlgorithm, policy: BitonicPolicy
) -> Schedule:
    """Sorts a row given in parts, the buffers "data_0" and so on, into "results_0" and so on, or in place in these."""
    elsewhere = Placement.ELSEWHERE in algorithm.placements(key)
    placement = Placement.ELSEWHERE if elsewhere else Placement.IN_PLACE
    given, parts, launches = list[Buffer[Any]](), list[tuple[Buffer[Any], int]](), list[Launch]()
    for number, length in enumerate(lengths):
        made = algorithm.schedule(key, 1, length, order, placement)
        names = {"data": f"data_{number}" if elsewhere else f"results_{number}", "results": f"results_{number}"}
        own = {b.name: Buffer(names[b.name], b.element, b.count, b.role) for b in made.buffers if b.name in names}
        given += own.values()
        parts.append((own["results" if elsewhere else "data"], length))
        launches += within(made, own, f"of_{length}")
    launches += merged_parts(key, parts, order, policy)
    return Schedule(tuple(given), tuple(launches))


def within(schedule: Schedule, known: Mapping[str, Buffer[Any]], of: str) -> Iterator[Launch]:
    """A schedule's launches as those of a larger one, with the `known` buffers, by name, in place of its own. The
    others are scratch: they are named after `of`, and shared by schedules with the same one."""

    def other(argument: object) -> object:
        if not is_buffer(argument) or argument.name == unbound(U32).name:
            return argument
        scratch = Buffer(f"{argument.name}_{of}", argument.element, argument.count, argument.role)
        return known.get(argument.name, scratch)

    return (attrs.evolve(one, arguments=tuple(map(other, one.arguments))) for one in schedule.launches)


def merged_parts(
    key: SortableKey[Any, Any], parts: Sequence[tuple[Buffer[Any], int]], order: SortOrder, policy: BitonicPolicy
) -> Iterator[Launch]:
    """Merges sorted parts in place, given as buffers with their lengths."""
    for pair in compared_parts(len(parts)):
        both = [parts[number] for number in pair]
        (lower, num_lower), (upper, num_upper) = both
        grid = looping_grid(num_upper, policy.group_size, _MOST_GROUPS)
        yield bitonic_across.launch(grid, key, lower, upper, PartsParams(U32(num_lower), U32(num_upper), order))
        for data, length in both:
            yield from merge_launches(key, data, length, order, policy)


@kernel
def place_sorted_part(
    cx: Invocation, key: SortableKey[E, N], data: Storage[E], places: Storage[U64], placed: Storage[Placed[N]],
    first: U32, order: SortOrder,
) -> None:  # fmt: skip
    """Writes the words of a part in sorted order, by its permutation, with their indices counted from `first`."""
    for i in dynamic_range(cx.global_id, places.length, cx.num_groups * cx.group_size):
        place = U32(places[i])
        placed[i] = Placed(to_ordered(key, data[place], order), first + place)


def argsort_parts(
    key: SortableKey[E, N], lengths: Sequence[int], order: SortOrder, policy: BitonicPolicy,
    sorts: Sequence[PairsAlgorithm | None],
) -> Schedule:  # fmt: skip
    """Argsorts a row given in parts, the buffers "data_0", "data_1" and so on, into "places_0" and so on; stable.
    `sorts` has an algorithm for each part, or None for the bitonic network."""
    own: SortableKey[Any, Any] = placed_key(key.word)
    given, placed = list[Buffer[Any]](), list[tuple[Buffer[Any], int]]()
    launches: list[Launch] = []
    ends: list[Launch] = []
    for number, (length, sort) in enumerate(zip(lengths, sorts, strict=True)):
        data = Buffer(f"data_{number}", key.element, length, Role.INPUT)
        places = Buffer(f"places_{number}", U64, length, Role.OUTPUT)
        words: Buffer[Any] = Buffer(f"placed_{number}", own.element, length, Role.SCRATCH)
        given += data, places
        placed.append((words, length))
        permutation = argsort(sort, key, 1, length, order, policy)
        launches += within(permutation, {"data": data, "places": places}, f"of_{length}")
        grid, first = looping_grid(length, policy.group_size), U32(sum(lengths[:number]))
        launches.append(place_sorted_part.launch(grid, key, data, places, words, first, order))
        ends.append(take_places.launch(grid, key.word, words, places, RowsParams(U32(1), U32(length))))
    launches += merged_parts(own, placed, SortOrder.ASCENDING, policy)
    return Schedule(tuple(given), (*launches, *ends))
