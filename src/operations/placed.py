"""Steps of an external argsort: runs of keys with their original indices, and buckets of which only the indices stay.
Indices are moved in 32 bits where these count a row, and are widened to NumPy's at the end."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..machine import TargetInfo
from ..types.indices import SortOrder
from ..types.intrinsics import maximum
from ..types.keys import RankKey, SortableKey
from ..types.scalars import U32, U64
from ..types.specs import DType, Spec
from .argsort import SortPairs
from .base import INDEX, Operation, Output, Part, Works, key_of, single
from .scan import Scan

E = TypeVar("E")
P = TypeVar("P", U32, U64)

SHORT_INDEX: DType = np.dtype(np.uint32)


def index_within(length: int) -> DType:
    """The dtype of the indices that are moved, for rows of a length."""
    return SHORT_INDEX if length <= LARGEST_U32 else INDEX


@attrs.frozen
class CountedFrom(Generic[E, P]):
    """The monoid of the greatest index, counted from `first`: its scan numbers the elements of a row."""

    element: type[E]
    state: type[P]
    first: P

    def identity(self) -> P:
        return self.state(0)

    def lift(self, element: E, index: U32) -> P:
        return self.first + self.state(index)

    def combine(self, a: P, b: P) -> P:
        return maximum(a, b)


@attrs.frozen
class SortPlaced(Operation):
    """Sorted keys with their indices, counted from `first`. Stable; equal keys may come back as one of them."""

    first: int
    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    index: DType = INDEX

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        return Output(x.shape, x.dtype, (0,)), Output(x.shape, self.index, (0,))

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (x,) = given
        key, indices = key_of("x", x, self.key), 3  # those before the sort
        state: Any = U64 if self.index == INDEX else U32
        numbering = Scan(0, of=CountedFrom[Any, Any](key.element, state, state(self.first))).works(given, info)
        sorting = SortPairs(self.order, RankKey(key)).works((x, attrs.evolve(x, dtype=self.index)), info)
        works = (
            *numbering.within((0, indices), 4),
            *sorting.within((0, indices, 1, 2), 4 + len(numbering.between)),
        )
        return Works(works, (Output(x.shape, self.index, (0,)), *numbering.between, *sorting.between))


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
