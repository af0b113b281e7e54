"""Sorted runs of an external argsort: keys in order, with their original indices."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs

from ..machine import TargetInfo
from ..types.indices import SortOrder
from ..types.intrinsics import maximum
from ..types.keys import RankKey, SortableKey
from ..types.scalars import U32, U64
from ..types.specs import Spec
from .argsort import SortPairs
from .base import INDEX, Operation, Output, Works, key_of
from .scan import Scan

E = TypeVar("E")


@attrs.frozen
class CountedFrom(Generic[E]):
    """The monoid of the greatest index, counted from `first`: its scan numbers the elements of a row."""

    element: type[E]
    first: U64
    state: type[U64] = U64

    def identity(self) -> U64:
        return U64(0)

    def lift(self, element: E, index: U32) -> U64:
        return self.first + U64(index)

    def combine(self, a: U64, b: U64) -> U64:
        return maximum(a, b)


@attrs.frozen
class SortPlaced(Operation):
    """Sorted keys with their indices, counted from `first`. Stable; equal keys may come back as one of them: -0.0 as
    0.0, one NaN as another."""

    first: int
    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        return Output(x.shape, x.dtype, (0,)), Output(x.shape, INDEX, (0,))

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (x,) = given
        key, indices = key_of("x", x, self.key), 3  # those before the sort
        numbering = Scan(0, of=CountedFrom[Any](key.element, U64(self.first))).works(given, info)
        sorting = SortPairs(self.order, RankKey(key)).works((x, attrs.evolve(x, dtype=INDEX)), info)
        works = (
            *numbering.within((0, indices), 4),
            *sorting.within((0, indices, 1, 2), 4 + len(numbering.between)),
        )
        return Works(works, (Output(x.shape, INDEX, (0,)), *numbering.between, *sorting.between))
