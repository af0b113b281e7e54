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
from .argsort import INDEX, SortPairs
from .base import Operation, Output, Work, key_of, moved_by
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

    def axes(self, number: int, given: Spec) -> tuple[int, ...]:
        return (0,)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        return Output(x.shape, x.dtype, (0,)), Output(x.shape, INDEX, (0,))

    def between(self, given: tuple[Spec, ...], info: TargetInfo) -> tuple[Output, ...]:
        """The indices before the sort, and the sort's own intermediates."""
        return Output(given[0].shape, INDEX, (0,)), *self._sort(given[0]).between(self._pairs(given[0]), info)

    def works(self, given: tuple[Spec, ...], info: TargetInfo, in_place: bool) -> tuple[Work, ...] | None:
        (x,) = given
        sort, pairs = self._sort(x), self._pairs(x)
        counted = CountedFrom[Any](key_of("x", x, self.key).element, U64(self.first))
        numbered = Scan(0, of=counted).works(given, info, in_place) or ()
        left = {4 + number: 4 + number for number in range(len(sort.between(pairs, info)))}
        sorting = sort.works(pairs, info, in_place) or ()
        return *moved_by(numbered, {0: 0, 1: 3}), *moved_by(sorting, {0: 0, 1: 3, 2: 1, 3: 2, **left})

    def _sort(self, given: Spec) -> SortPairs:
        return SortPairs(self.order, RankKey(key_of("x", given, self.key)))

    @staticmethod
    def _pairs(given: Spec) -> tuple[Spec, ...]:
        return given, attrs.evolve(given, dtype=INDEX)
