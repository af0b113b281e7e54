"""Selection in registers: lanes of a subgroup go through a row, each with the first k of what it has seen.

A lane sorts block after block of its row's elements, and merges each with what it has: of two sorted blocks, the lesser
of each element and its mirror image are the first, which half a stage of the bitonic network sorts. At last lanes merge
what they have. So only few elements of a row ever cross lanes, and none are written but the first.
"""

from __future__ import annotations

from typing import Any

from ..kernel.language import *
from ..types.keys import RankKey
from ..types.params import FirstParams, RowsPolicy
from .argsort import Placed, placed_key
from .bitonic import to_ordered
from .bitonic_rows import pass_in_registers, sort_rows


@kernel
def select_in_lanes(
    cx: Invocation, key: SortableKey[E, N], own: SortableKey[Any, W], data: Storage[E], values: Storage[E],
    indices: Storage[U64], params: FirstParams, order: SortOrder, policy: RowsPolicy,
) -> None:  # fmt: skip
    """Writes the first k of every row, at most as many as a lane holds."""
    row, lane = cx.group_id * policy.rows + cx.local_id // policy.lanes, cx.local_id % policy.lanes
    begin = minimum(row, params.num_rows - 1) * params.length  # where all may load, and wait for no branch
    first: Registers[W] = Registers(own.word, policy.items)
    block: Registers[W] = Registers(own.word, policy.items)
    load_block(cx, key, own, data, begin, U32(0), first, params, order, policy)
    for start in dynamic_range(U32(policy.held), params.length, U32(policy.held)):
        load_block(cx, key, own, data, begin, start, block, params, order, policy)
        merge_first(first, block, policy)
    for step in range(policy.stages - policy.of_lane.stages):
        for i in dynamic_range(U32(0), U32(policy.items)):
            block[i] = cx.shuffle_xor(first[i], U32(1 << step))
        merge_first(first, block, policy)
    for before in range(0, policy.items, policy.lanes):  # all lanes have the same ones: neighbours store neighbours
        mine: Any = first[before]
        for other in range(1, min(policy.lanes, policy.items)):
            mine = first[before + other] if lane == other else mine
        if (row < params.num_rows) & (before + lane < params.k):
            to = row * params.k + before + lane
            indices[to] = U64(mine.place)
            values[to] = data[begin + mine.place]


def load_block(
    cx: Invocation, key: SortableKey[E, N], own: SortableKey[Any, W], data: Storage[E], begin: U32, start: U32,
    block: Registers[W], params: FirstParams, order: SortOrder, policy: RowsPolicy,
) -> None:  # fmt: skip
    """Loads a lane's part of a row's elements from `start` on, as words with their indices, and sorts it."""
    for i in dynamic_range(U32(0), U32(policy.items)):
        place = start + i * policy.lanes + cx.local_id % policy.lanes
        loaded: Any = Placed(to_ordered(key, data[begin + minimum(place, params.length - 1)], order), place)
        block[i] = loaded if place < params.length else own.greatest
    sort_rows(cx, block, policy.of_lane)


def merge_first(first: Registers[W], block: Registers[W], policy: RowsPolicy) -> None:
    """Puts the first of two sorted blocks into the one, sorted."""
    for i in dynamic_range(U32(0), U32(policy.items)):
        mine, image = first[i], block[policy.items - 1 - i]
        first[i] = image if image < mine else mine
    for step in range(policy.of_lane.stages):
        distance = policy.items >> (step + 1)
        pass_in_registers(first, distance, distance, policy)


def select_by_lanes(
    key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder,
    buffers: tuple[Buffer[E], Buffer[E], Buffer[U64]], policy: RowsPolicy,
) -> Schedule:  # fmt: skip
    """The one launch; k is at most `policy.items`."""
    own: SortableKey[Any, Any] = placed_key(key.word)
    params = FirstParams(U32(rows), U32(length), U32(k))
    grid = Grid(-(-rows // policy.rows), policy.group_size)
    return Schedule(buffers, (select_in_lanes.launch(grid, RankKey(key), own, *buffers, params, order, policy),))
