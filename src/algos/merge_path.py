"""Merge path (Odeh, Green, Mwassi, Shmueli, Birk 2012): partitions a merge into independent tiles.

How many of the first `d` elements of two merged arrays are of the first array is found by a binary search along a
diagonal, without merging.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.keys import SortableKey, Word
from ..types.memory import Array, Storage, Workgroup
from ..types.params import MergeParams, MergePolicy
from ..types.scalars import U32, Bool
from .merge_ties import any_unordered, to_merged

E = TypeVar("E")
W = TypeVar("W", bound=Word)

_MOST_HALVINGS = 32


def of_first_before(
    key: SortableKey[E, W], first: Array[E], second: Array[E], start: U32, of_first: U32, of_second: U32,
    diagonal: U32, order: SortOrder, has_ties: bool, by_rank: Bool,
) -> U32:  # fmt: skip
    """How many of the first `diagonal` merged elements are of the first array; the second starts at index `start`."""
    low = diagonal - of_second if diagonal > of_second else U32(0)
    high = minimum(diagonal, of_first)
    for _ in dynamic_range(U32(0), U32(_MOST_HALVINGS)):  # a `while` would not be known to end, and have to poll
        if low >= high:
            break
        middle = low + (high - low) // 2
        theirs = to_merged(key, second[start + (diagonal - 1 - middle)], order, has_ties, by_rank)
        if theirs < to_merged(key, first[middle], order, has_ties, by_rank):
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
    if cx.global_id < params.tiles:
        diagonal = cx.global_id * policy.tile
        cuts[cx.global_id] = of_first_before(
            key, first, second, U32(0), params.first, params.second, diagonal, order, has_ties, by_rank
        )  # fmt: skip
    elif cx.global_id == params.tiles:
        cuts[cx.global_id] = params.first
        cuts[cx.global_id + 1] = U32(by_rank)
