"""Keys whose transform a launch turns on, so that all passes of a radix sort, in either order, share one kernel."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs

from .indices import SortOrder
from .keys import SortableKey
from .scalars import U8, U16, U32, U64, Bool

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class TurnedKey(Generic[A, W]):
    """A key where it is on; where it is not, elements are words that are in order already."""

    key: SortableKey[A, W]
    is_on: Bool
    mirrors: Bool  # for descending order, which is part of the word then

    @property
    def element(self) -> type[A]:
        return self.key.element

    @property
    def word(self) -> type[W]:
        return self.key.word

    @property
    def greatest(self) -> W:
        return self.key.greatest

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

    def mirrored(self, word: W) -> W:
        return self.key.mirrored(word)


def turned(key: SortableKey[Any, Any], is_on: bool, order: SortOrder) -> TurnedKey[Any, Any]:
    """A key for one pass, with the order made part of it."""
    made: TurnedKey[Any, Any] = TurnedKey(key, Bool(is_on), Bool(is_on and order is SortOrder.DESCENDING))
    return made
