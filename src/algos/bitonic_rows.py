"""Bitonic sort of many short rows in one launch, in registers: a few lanes of a subgroup hold a row.

Each lane holds a block of the row, so passes over short distances are within a lane, and those over longer ones
exchange words by shuffles. Loads are coalesced, as a sort may start from any permutation; sorted blocks are transposed
in workgroup memory, with a word of padding each against bank conflicts, so that stores are too.
"""

from __future__ import annotations

from typing import Any

from ..kernel.language import *
from ..types.errors import InvalidArgumentError
from ..types.params import RowsParams, RowsPolicy
from .argsort import Placed, placed_key
from .batch import Batch, Mode
from .bitonic import compare_and_swap, from_ordered, to_ordered
from .sizes import require_countable


@kernel
def bitonic_rows(
    cx: Invocation, key: SortableKey[E, N], own: SortableKey[Any, W], data: Storage[E], results: Storage[E],
    values: Storage[V], moved: Storage[V], tile: Workgroup[W], params: RowsParams, order: SortOrder, mode: Mode[V],
    policy: RowsPolicy,
) -> None:  # fmt: skip
    """Sorts every row: its words, or where values or indices go along its words with their indices, by their `own` key;
    then it is stable. In place, `results` is `data`."""
    entries: Registers[W] = Registers(own.word, policy.items)
    row, lane = cx.group_id * policy.rows + cx.local_id // policy.lanes, cx.local_id % policy.lanes
    first, count = row * params.length, params.length if row < params.num_rows else U32(0)
    begin = minimum(row, params.num_rows - 1) * params.length  # where all may load, and wait for no branch
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        loaded = entry_of(key, data[begin + minimum(element, params.length - 1)], element, order, mode)
        entries[i] = loaded if element < count else own.greatest
    sort_rows(cx, entries, policy)
    staged = cx.local_id // policy.lanes * (policy.lanes * policy.padded)  # where the row begins in the tile
    for i in dynamic_range(U32(0), U32(policy.items)):
        tile[staged + lane * policy.padded + i] = entries[i]
    cx.barrier()
    to, kept = row * params.kept, params.kept if row < params.num_rows else U32(0)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        if element < kept:
            found: Any = tile[staged + element // policy.items * policy.padded + element % policy.items]
            word = found.word if mode.takes_values else found
            if mode.keeps_keys:
                results[to + element] = (  # of ranks, which do not tell all bits, the element itself
                    data[first + found.place] if mode.counts_places else from_ordered(key, word, order)
                )
            if mode.takes_values:
                moved[to + element] = mode.value(found.place) if mode.counts_places else values[first + found.place]


def entry_of(key: SortableKey[E, N], element: E, place: U32, order: SortOrder, mode: Mode[V]) -> Any:
    """What is sorted for an element: its word, or that with its index."""
    word: Any = to_ordered(key, element, order)
    return Placed(word, place) if mode.takes_values else word


def sort_rows(cx: Invocation, words: Registers[W], policy: RowsPolicy) -> None:
    """The bitonic network over the lanes of a row."""
    lane = cx.local_id % policy.lanes
    for stage in range(policy.stages):
        for pass_ in range(stage + 1):
            distance = 1 << (stage - pass_)
            mask = 2 * distance - 1 if pass_ == 0 else distance
            if distance < policy.items:
                pass_in_registers(words, distance, mask, policy)
            else:
                pass_across_lanes(cx, words, lane, distance // policy.items, mask // policy.items, pass_ == 0, policy)


def pass_in_registers(words: Registers[W], distance: int, mask: int, policy: RowsPolicy) -> None:
    for k in dynamic_range(U32(0), U32(policy.items // 2)):
        lower = k + (k & ~U32(distance - 1))
        compare_and_swap(words, lower, lower ^ mask)


def pass_across_lanes(
    cx: Invocation, words: Registers[W], lane: U32, distance: int, mask: int, mirrored: bool, policy: RowsPolicy
) -> None:
    """Both lanes of a pair compare the same two words; the lower lane keeps the lesser."""
    is_lower = (lane & distance) == 0
    if mirrored and policy.items > 1:
        for i in dynamic_range(U32(0), U32(policy.items // 2)):
            first, last = words[i], words[policy.items - 1 - i]
            over_first, over_last = cx.shuffle_xor(last, U32(mask)), cx.shuffle_xor(first, U32(mask))
            words[i] = over_first if (over_first < first) == is_lower else first
            words[policy.items - 1 - i] = over_last if (over_last < last) == is_lower else last
    else:
        for i in dynamic_range(U32(0), U32(policy.items)):
            mine = words[i]
            other = cx.shuffle_xor(mine, U32(mask))
            words[i] = other if (other < mine) == is_lower else mine


def bitonic_rows_sort(batch: Batch, policy: RowsPolicy) -> Schedule:
    """Sorts every row in one launch, stably; with values, or for its permutation, by words with their indices."""
    require_countable(batch.rows, batch.length, policy.rows)
    if batch.length > policy.lanes * policy.items:
        held = f"{policy.lanes} lanes with {policy.items} elements each"
        raise InvalidArgumentError(f"length: expected no more than {held} hold, found {batch.length}")
    key, mode = batch.key, batch.mode()
    own: SortableKey[Any, Any] = placed_key(key.word) if mode.takes_values else key
    tile: Workgroup[Any] = Workgroup(own.word, policy.group_size * policy.padded)
    launch = bitonic_rows.launch(
        Grid(-(-batch.rows // policy.rows), policy.group_size), key, own, *batch.arguments, tile, batch.params,
        batch.order, mode, policy,
    )  # fmt: skip
    return batch.schedule((launch,))
