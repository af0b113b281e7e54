"""A monoid over a piece of a row, whose elements know where in the row they stand."""

from __future__ import annotations

from typing import TypeVar

import attrs

from .monoids import Around
from .scalars import U32

E = TypeVar("E")
S = TypeVar("S")


@attrs.frozen
class StartingAt(Around[E, S]):
    """The same monoid, for what is counted from a later element of the row on."""

    first: U32

    @property
    def element(self) -> type[E]:
        return self.monoid.element

    def lift(self, element: E, index: U32) -> S:
        return self.monoid.lift(element, self.first + index)
