"""A monoid over part of a row: element indices are relative to the whole row."""

from __future__ import annotations

from typing import TypeVar

import attrs

from .monoids import MonoidWrapper
from .scalars import U32

E = TypeVar("E")
S = TypeVar("S")


@attrs.frozen
class StartingAt(MonoidWrapper[E, S]):
    """A monoid whose indices start at `first`."""

    first: U32

    @property
    def element(self) -> type[E]:
        return self.monoid.element

    def lift(self, element: E, index: U32) -> S:
        return self.monoid.lift(element, self.first + index)
