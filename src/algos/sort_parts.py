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
from ..kernel.launch import is_buffer
from ..types.params import BitonicPolicy, PartsParams, RowsParams
from .argsort import Placed, placed_key, take_places
from .batch import looping_grid
from .bitonic import merge_launches, to_ordered
from .sorts import PairsAlgorithm, SortAlgorithm, argsort

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


def compared_parts(count: int) -> Iterator[tuple[int, int]]:
    """The pairs of parts to merge, in order: Batcher's merge exchange sort, for any number of parts."""
    half = 1 << max(0, (count - 1).bit_length() - 1)
    step = half
    while step:
        width, rest, distance = half, 0, step
        while True:
            yield from ((i, i + distance) for i in range(count - distance) if i & step == rest)
            if width == step:
                break
            distance, width, rest = width - step, width >> 1, step
        step >>= 1


def sort_parts(
    key: SortableKey[E, W], lengths: Sequence[int], order: SortOrder, algorithm: SortAlgorithm, policy: BitonicPolicy
) -> Schedule:
    """Sorts a row given in parts, the buffers "data_0" and so on, into "results_0" and so on, or in place in these."""
    elsewhere = Placement.ELSEWHERE in algorithm.placements(key)
    placement = Placement.ELSEWHERE if elsewhere else Placement.IN_PLACE
    buffers: dict[str, Buffer[Any]] = {}
    launches: list[Launch] = []
    for number, length in enumerate(lengths):
        made, own = algorithm.schedule(key, 1, length, order, placement), dict[str, Buffer[Any]]()
        names = {"data": f"data_{number}" if elsewhere else f"results_{number}", "results": f"results_{number}"}
        for buffer in made.buffers:
            if buffer.name in names:
                name = names[buffer.name]
                own[buffer.name] = buffers[name] = Buffer(name, buffer.element, buffer.count, buffer.role)
        launches += renamed(made, own, f"of_{length}", buffers)
    parts = [(buffers[f"results_{number}"], length) for number, length in enumerate(lengths)]
    launches += merged_parts(key, parts, order, policy)
    return Schedule(tuple(buffers.values()), tuple(launches))


def renamed(
    schedule: Schedule, known: Mapping[str, Buffer[Any]], of: str, buffers: dict[str, Buffer[Any]]
) -> tuple[Launch, ...]:
    """A schedule's launches with the `known` buffers replaced. The others are scratch: they are named after `of`, and
    added to `buffers`, so that schedules with the same `of` share them."""
    found = dict(known)
    for buffer in schedule.buffers:
        if buffer.name not in known:
            own = Buffer(f"{buffer.name}_{of}", buffer.element, buffer.count, buffer.role)
            found[buffer.name] = buffers.setdefault(own.name, own)
    return replaced(schedule, found).launches


def replaced(schedule: Schedule, others: Mapping[str, Buffer[Any]]) -> Schedule:
    """A schedule with some buffers replaced, by name: its results may be scratch of a larger schedule."""

    def other(argument: object) -> object:
        return others.get(argument.name, argument) if is_buffer(argument) else argument

    return Schedule(
        tuple(others.get(buffer.name, buffer) for buffer in schedule.buffers),
        tuple(attrs.evolve(one, arguments=tuple(map(other, one.arguments))) for one in schedule.launches),
    )


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
    buffers: dict[str, Buffer[Any]] = {}
    placed: list[tuple[Buffer[Any], int]] = []
    launches: list[Launch] = []
    ends: list[Launch] = []
    for number, (length, sort) in enumerate(zip(lengths, sorts, strict=True)):
        data = Buffer(f"data_{number}", key.element, length, Role.INPUT)
        places = Buffer(f"places_{number}", U64, length, Role.OUTPUT)
        words: Buffer[Any] = Buffer(f"placed_{number}", own.element, length, Role.SCRATCH)
        placed.append((words, length))
        buffers |= {buffer.name: buffer for buffer in (data, places, words)}
        known: dict[str, Buffer[Any]] = {"data": data, "places": places}
        launches += renamed(argsort(sort, key, 1, length, order, policy), known, f"of_{length}", buffers)
        grid, first = looping_grid(length, policy.group_size), U32(sum(lengths[:number]))
        launches.append(place_sorted_part.launch(grid, key, data, places, words, first, order))
        ends.append(take_places.launch(grid, key.word, words, places, RowsParams(U32(1), U32(length))))
    launches += merged_parts(own, placed, SortOrder.ASCENDING, policy)
    return Schedule(tuple(buffers.values()), (*launches, *ends))
