"""Argsort of a row that exceeds the largest buffer binding: sorts (word, index) pairs in parts, and merges the parts.

As sort_parts.py does with elements. Each part is argsorted by the fastest algorithm, or by the bitonic network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Storage
from ..types.params import BitonicPolicy, RowsParams
from ..types.scalars import U32, U64
from .argsort import Placed, placed_key, take_places
from .bitonic import bitonic_launches, to_ordered
from .sort_parts import merged_parts, renamed
from .sorts import PairsAlgorithm

E = TypeVar("E")
W = TypeVar("W", U32, U64)

_MOST_GROUPS = 1 << 10


@attrs.frozen
class PartParams:
    """A part of a row: the index of its first element, and its length."""

    first: U32
    count: U32


@kernel
def place_part(
    cx: Invocation, key: SortableKey[E, W], data: Storage[E], placed: Storage[Placed[W]], params: PartParams,
    order: SortOrder,
) -> None:  # fmt: skip
    """Writes every element's word with its index in the row."""
    for i in dynamic_range(cx.global_id, params.count, cx.num_groups * cx.group_size):
        placed[i] = Placed(to_ordered(key, data[i], order), params.first + i)


@kernel
def place_sorted_part(
    cx: Invocation, key: SortableKey[E, W], data: Storage[E], places: Storage[U64], placed: Storage[Placed[W]],
    params: PartParams, order: SortOrder,
) -> None:  # fmt: skip
    """The same in sorted order, by the permutation of the part."""
    for i in dynamic_range(cx.global_id, params.count, cx.num_groups * cx.group_size):
        place = U32(places[i])
        placed[i] = Placed(to_ordered(key, data[place], order), params.first + place)


def argsort_parts(
    key: SortableKey[E, W], lengths: Sequence[int], order: SortOrder, policy: BitonicPolicy,
    sorts: Sequence[PairsAlgorithm | None],
) -> Schedule:  # fmt: skip
    """Argsorts a row given in parts, the buffers "data_0", "data_1" and so on, into "places_0" and so on; stable.

    `sorts` has an algorithm for each part, or None for the bitonic network.
    """
    own: SortableKey[Any, Any] = placed_key(key.word)
    buffers: dict[str, Buffer[Any]] = {}
    placed: list[tuple[Buffer[Any], int]] = []
    launches: list[Launch] = []
    for number, (length, sort) in enumerate(zip(lengths, sorts, strict=True)):
        data = Buffer(f"data_{number}", key.element, length, Role.INPUT)
        places = Buffer(f"places_{number}", U64, length, Role.OUTPUT)
        words: Buffer[Any] = Buffer(f"placed_{number}", own.element, length, Role.SCRATCH)
        placed.append((words, length))
        buffers |= {buffer.name: buffer for buffer in (data, places, words)}
        params = PartParams(U32(sum(lengths[:number])), U32(length))
        grid = _grid(length, policy)
        if sort is None:
            launches.append(place_part.launch(grid, key, data, words, params, order))
            launches += bitonic_launches(own, words, 1, length, SortOrder.ASCENDING, policy)
        else:
            names: dict[str, Buffer[Any]] = {"data": data, "places": places}
            launches += renamed(sort.argsort(key, 1, length, order), names, f"of_{length}", buffers)
            launches.append(place_sorted_part.launch(grid, key, data, places, words, params, order))
    launches += merged_parts(own, placed, SortOrder.ASCENDING, policy)
    for number, (words, length) in enumerate(placed):
        rows = RowsParams(U32(1), U32(length))
        launches.append(
            take_places.launch(_grid(length, policy), key.word, words, buffers[f"places_{number}"], rows)
        )  # fmt: skip
    return Schedule(tuple(buffers.values()), tuple(launches))


def _grid(length: int, policy: BitonicPolicy) -> Grid:
    return Grid(min(_MOST_GROUPS, -(-length // policy.group_size)), policy.group_size)
