"""Steps of an external argsort: runs of keys with their original indices, and buckets of which only the indices stay.
Indices are moved in 32 bits where these count a row, and are widened to NumPy's at the end."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..machine import TargetInfo
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey
from ..types.scalars import U32, U64
from ..types.specs import DType, Spec
from .argsort import SortPairs
from .base import INDEX, Operation, Output, Part, Works, key_of, single

SHORT_INDEX: DType = np.dtype(np.uint32)


def index_within(length: int) -> DType:
    """The dtype of the indices that are moved, for rows of a length."""
    return SHORT_INDEX if length <= LARGEST_U32 else INDEX


@attrs.frozen
class SortPlaced(Operation):
    """Sorted keys with their indices, counted from the one that is given. Stable; equal keys may come back as one of
    them."""

    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    names = "keys", "first"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        keys, first = given
        return Output(keys.shape, keys.dtype, (0,)), Output(keys.shape, first.dtype, (0,))

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.numbering import numbered

        keys, first = given
        unsorted = 4  # the number of the indices before the sort
        numbering = numbered(keys.size, U64 if first.dtype == INDEX else U32)
        pairs = (keys, attrs.evolve(keys, dtype=first.dtype))
        sorting = SortPairs(self.order, RankKey(key_of("keys", keys, self.key))).works(pairs, info)
        works = (
            single(numbering, {"first": Part(1, 1), "indices": Part(unsorted, keys.size)}),
            *sorting.within((0, unsorted, 2, 3), 1 + unsorted),
        )
        return Works(works, (Output(keys.shape, first.dtype, (0,)), *sorting.between))


@attrs.frozen
class SortIndices(Operation):
    """The indices that come with keys, in the order of these, as NumPy's; stable."""

    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    names = "keys", "indices"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output(given[0].shape, INDEX, (0,)),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.radix_sorts import widened

        keys, indices = given
        sorting = SortPairs(self.order, RankKey(key_of("keys", keys, self.key))).works(given, info)
        is_wide = indices.dtype == INDEX
        between = [Output(keys.shape, keys.dtype, (0,))]
        if not is_wide:
            between.append(Output(keys.shape, indices.dtype, (0,)))
        to = 2 if is_wide else 4
        works = sorting.within((0, 1, 3, to), 3 + len(between))
        if not is_wide:
            parts = {"places": Part(4, keys.size), "wide": Part(2, keys.size)}
            works += (single(widened(keys.size), parts),)
        return Works(works, (*between, *sorting.between))
