"""Monoids over arrays of bools: any nonzero byte counts as 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import attrs

from .elements import fields_of
from .monoids import Monoid, MonoidWrapper
from .scalars import U8, U32

E = TypeVar("E")
F = TypeVar("F")
S = TypeVar("S")


@attrs.frozen
class OverField(MonoidWrapper[E, S], Generic[E, F, S]):
    """A monoid over a newtype, as one over the newtype's field."""

    newtype: Callable[[F], E]
    element: type[F]

    def lift(self, element: F, index: U32) -> S:
        return self.monoid.lift(self.newtype(element), index)


@attrs.frozen
class OverBools(MonoidWrapper[U8, S]):
    """A monoid over bytes, for an array of bools: it sees 0 or 1."""

    element: type[U8] = U8

    def lift(self, element: U8, index: U32) -> S:
        return self.monoid.lift(U8(U32(U32(element) != 0)), index)


def over_bools(monoid: Monoid[E, S]) -> Monoid[U8, S]:
    """Adapts a monoid over bytes, or newtypes of them, to an array of bools."""
    if monoid.element is U8:
        return OverBools(cast("Monoid[U8, S]", monoid))
    (field,) = fields_of(monoid.element).values()
    held = cast("type[object]", field)
    return over_bools(OverField(monoid, cast("Callable[[object], E]", monoid.element), held))
