"""Merges two sorted arrays on CPU cores: each merges a tile serially, from both ends at once (a bidirectional merge).

The front and the back are independent dependency chains, which a superscalar core overlaps; comparisons select and do
not branch. Where tiles start is found by merge path.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.keys import RankKey, SortableKey, Word
from ..types.memory import Storage
from ..types.params import MergeParams, MergePolicy
from ..types.scalars import U32, Bool
from .bitonic import to_ordered

E = TypeVar("E")
V = TypeVar("V")
W = TypeVar("W", bound=Word)


@attrs.frozen
class Merged(Generic[V]):
    """Whether keys are merged alone, or with values of a class; and whether they may be tied, as floats."""

    value: type[V]
    takes_values: bool
    has_ties: bool


def merge_tile_serially(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    first_values: Storage[V], second_values: Storage[V], moved: Storage[V], cuts: Storage[U32], params: MergeParams,
    order: SortOrder, policy: MergePolicy, mode: Merged[V],
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
            results[place] = first[minimum(one, params.first - 1)]
            if mode.takes_values:
                moved[place] = first_values[minimum(one, params.first - 1)]
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
            results[place] = first[minimum(one_end, params.first - 1)]
            if mode.takes_values:
                moved[place] = first_values[minimum(one_end, params.first - 1)]


@kernel
def serial_merge(
    cx: Invocation, key: SortableKey[E, W], first: Storage[E], second: Storage[E], results: Storage[E],
    first_values: Storage[V], second_values: Storage[V], moved: Storage[V], cuts: Storage[U32], params: MergeParams,
    order: SortOrder, policy: MergePolicy, mode: Merged[V],
) -> None:  # fmt: skip
    """Merges a tile; stable: of equal elements, those of the first array come first."""
    if cuts[params.tiles + 1] != 0 if mode.has_ties else Bool(False):
        ranks: RankKey[E, W] = RankKey(key)
        merge_tile_serially(
            cx, ranks, first, second, results, first_values, second_values, moved, cuts, params, order, policy, mode
        )  # fmt: skip
    else:
        merge_tile_serially(
            cx, key, first, second, results, first_values, second_values, moved, cuts, params, order, policy, mode
        )  # fmt: skip
