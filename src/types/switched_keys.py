"""Keys with a run-time switch for their transform: all passes of a radix sort, in either order, share one kernel."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from .indices import SortOrder
from .keys import KeyWrapper, SortableKey
from .scalars import U8, U16, U32, U64, Bool

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class SwitchedKey(KeyWrapper[A, W]):
    """A key that transforms if `is_on`; otherwise elements are words already, as between passes."""

    is_on: Bool
    mirrors: Bool  # whether words are mirrored too, for descending order

    def to_word(self, element: A) -> W:
        word = self.key.word(element)
        if self.is_on:
            word = self.key.to_word(element)
        if self.mirrors:
            word = self.key.mirrored(word)
        return word

    def from_word(self, word: W) -> A:
        if self.mirrors:
            word = self.key.mirrored(word)
        element = self.key.element(word)
        if self.is_on:
            element = self.key.from_word(word)
        return element

    def to_rank(self, element: A) -> W:
        return self.to_word(element)


def switched(key: SortableKey[Any, Any], is_on: bool, order: SortOrder) -> SwitchedKey[Any, Any]:
    """A key for one pass; the order is part of its words."""
    made: SwitchedKey[Any, Any] = SwitchedKey(key, Bool(is_on), Bool(is_on and order is SortOrder.DESCENDING))
    return made
