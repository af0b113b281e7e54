"""Merge path (Odeh, Green, Mwassi, Shmueli, Birk 2012): partitions a merge into independent tiles.

How many of the first `d` elements of two merged arrays are of the first array is found by a binary search along a
diagonal, without merging.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.keys import SortableKey, Word
from ..types.memory import Array, Storage
from ..types.params import MergePolicy
from ..types.scalars import U32
from .bitonic import to_ordered

E = TypeVar("E")
W = TypeVar("W", bound=Word)

_MOST_HALVINGS = 32


@attrs.frozen
class MergeParams:
    """The lengths of both arrays, and the tiles of the merged one."""

    first: U32
    second: U32
    tiles: U32


def of_first_before(
    key: SortableKey[E, W], first: Array[E], second: Array[E], start: U32, of_first: U32, of_second: U32,
    diagonal: U32, order: SortOrder,
) -> U32:  # fmt: skip
    """How many of the first `diagonal` merged elements are of the first array; the second starts at index `start`."""
    low = diagonal - of_second if diagonal > of_second else U32(0)
    high = minimum(diagonal, of_first)
    for _ in dynamic_range(U32(0), U32(_MOST_HALVINGS)):  # a `while` would not be known to end, and have to poll
        if low >= high:
            break
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
    """Finds the start of each tile in the first array; after the last one, its length."""
    if cx.global_id < params.tiles:
        diagonal = cx.global_id * policy.tile
        cuts[cx.global_id] = of_first_before(
            key, first, second, U32(0), params.first, params.second, diagonal, order
        )  # fmt: skip
    elif cx.global_id == params.tiles:
        cuts[cx.global_id] = params.first
