"""Keys that also know which words are numbers and which is zero, as extrema and truth tests need."""

from __future__ import annotations

from typing import Protocol, TypeVar, cast

import attrs

from .keys import KeyWrapper, SortableKey
from .scalars import U32, U64

E = TypeVar("E")
W = TypeVar("W", U32, U64)


class RankedKey(SortableKey[E, W], Protocol[E, W]):
    """A key that also knows its NaNs and its zero."""

    @property
    def last(self) -> int:
        """The greatest word of a number; greater ones are NaN or NaT."""
        ...

    @property
    def zero(self) -> W:
        """The rank of zero, the element that is false."""
        ...


@attrs.frozen
class OrdinaryKey(KeyWrapper[E, W]):
    """Wraps a user's key, which has no NaN or NaT, and of whose elements none is false."""

    @property
    def last(self) -> int:
        return (1 << self.key.word.type.bits) - 1

    @property
    def zero(self) -> W:
        return self.key.greatest

    def to_word(self, element: E) -> W:
        return self.key.to_word(element)

    def to_rank(self, element: E) -> W:
        return self.key.to_rank(element)


def ranked(key: SortableKey[E, W]) -> RankedKey[E, W]:
    """A key as it is if it has `last` and `zero`, else wrapped."""
    if hasattr(key, "last") and hasattr(key, "zero"):
        return cast("RankedKey[E, W]", key)
    return OrdinaryKey(key)
