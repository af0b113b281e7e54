"""A monoid over a piece of a row, whose elements know where in the row they stand."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from .monoids import Monoid
from .scalars import U32

E = TypeVar("E")
S = TypeVar("S")


@attrs.frozen
class StartingAt(Generic[E, S]):
    """The same monoid, for what is counted from a later element of the row on."""

    monoid: Monoid[E, S]
    first: U32

    @property
    def element(self) -> type[E]:
        return self.monoid.element

    @property
    def state(self) -> type[S]:
        return self.monoid.state

    def identity(self) -> S:
        return self.monoid.identity()

    def lift(self, element: E, index: U32) -> S:
        return self.monoid.lift(element, self.first + index)

    def combine(self, a: S, b: S) -> S:
        return self.monoid.combine(a, b)
