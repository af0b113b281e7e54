"""Tied floats in merges: whether the zeros and the NaNs of two sorted arrays are in the order of their bits.

`sort` puts -0.0 before 0.0, and NaNs in the order of their bits; stable sorts and `np.sort` leave them as they come. By
their bits, merge path would then cut both arrays inconsistently and lose elements. So a first launch finds the ties by
binary search and compares neighbours; if any are out of order, the merge compares ranks, by which ties are equal.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.keys import FloatKey, RankKey, SortableKey, Word
from ..types.memory import Array, Storage, Workgroup
from ..types.monoids import Count
from ..types.params import MergeParams
from ..types.scalars import U8, U16, U32, U64, Bool
from .bitonic import to_ordered
from .reduce import reduce_workgroup
from .ties import lesser_zero

A = TypeVar("A", U8, U16, U32, U64)
N = TypeVar("N", U32, U64)
E = TypeVar("E")
W = TypeVar("W", bound=Word)

MOST_HALVINGS = 32  # of a binary search: a `while` would not be known to end, and have to poll
MOST_GROUPS = 32  # every search for cuts reads what all of them found


def to_merged(key: SortableKey[E, W], element: E, order: SortOrder, has_ties: bool, by_rank: Bool) -> W:
    """The word by which an element is merged. Only keys that have ties are asked whether to merge by rank."""
    word = to_ordered(key, element, order)
    if has_ties:
        ranks: RankKey[E, W] = RankKey(key)
        rank = to_ordered(ranks, element, order)
        return rank if by_rank else word
    return word


def lower_bound(key: FloatKey[A, N], data: Array[A], length: U32, bound: N, order: SortOrder) -> U32:
    """How many elements of a sorted array are less than a word."""
    low, high = U32(0), length
    for _ in dynamic_range(U32(0), U32(MOST_HALVINGS)):
        if low >= high:
            break
        middle = low + (high - low) // 2
        if to_ordered(key, data[middle], order) < bound:
            low = middle + 1
        else:
            high = middle
    return minimum(low, length)  # as is known to the checks of bounds, then


def is_unordered(
    cx: Invocation, key: FloatKey[A, N], data: Array[A], length: U32, groups: U32, order: SortOrder
) -> Bool:
    """Whether any pair of neighbours in an invocation's share of the ties is out of order."""
    stride = groups * cx.group_size
    found = Bool(False)
    lesser = lesser_zero(key, order)
    zeros = lower_bound(key, data, length, lesser, order)
    numbers = lower_bound(key, data, length, lesser + 2, order)
    nans = lower_bound(key, data, length, key.word(key.last + 1), order)
    for i in dynamic_range(zeros + 1 + cx.global_id, numbers, stride):
        found = found | (to_ordered(key, data[i], order) < to_ordered(key, data[i - 1], order))
    for i in dynamic_range(nans + 1 + cx.global_id, length, stride):
        found = found | (to_ordered(key, data[i], order) < to_ordered(key, data[i - 1], order))
    return found


@kernel
def find_unordered_ties(
    cx: Invocation, key: FloatKey[A, N], first: Storage[A], second: Storage[A], unordered: Storage[U32],
    shared: Workgroup[U32], params: MergeParams, order: SortOrder,
) -> None:  # fmt: skip
    """Each workgroup writes whether any of its share of the ties of both arrays are out of order: not 0 if so."""
    in_first = is_unordered(cx, key, first, params.first, params.groups, order)
    in_second = is_unordered(cx, key, second, params.second, params.groups, order)
    shared[cx.local_id] = U32(in_first | in_second)
    cx.barrier()
    reduce_workgroup(cx, Count(), shared, cx.group_size)
    if cx.local_id == 0:
        unordered[cx.group_id] = shared[0]


def any_unordered(unordered: Storage[U32], groups: U32) -> Bool:
    """Whether any workgroup found ties out of order."""
    found = U32(0)
    for group in dynamic_range(U32(0), groups):
        found = found | unordered[group]
    return found != 0
