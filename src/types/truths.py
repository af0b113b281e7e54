"""Bools as a monoid sees them: 0 or 1, though in memory a byte of any bits but zero stands for true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import attrs

from .elements import fields_of
from .monoids import Around, Monoid
from .scalars import U8, U32

E = TypeVar("E")
F = TypeVar("F")
S = TypeVar("S")


@attrs.frozen
class OfField(Around[E, S], Generic[E, F, S]):
    """A monoid over a newtype, as one over what the newtype holds."""

    newtype: Callable[[F], E]
    element: type[F]

    def lift(self, element: F, index: U32) -> S:
        return self.monoid.lift(self.newtype(element), index)


@attrs.frozen
class OfTruths(Around[U8, S]):
    """A monoid over bytes, which gets to see 0 or 1."""

    element: type[U8] = U8

    def lift(self, element: U8, index: U32) -> S:
        return self.monoid.lift(U8(U32(U32(element) != 0)), index)


def of_truths(monoid: Monoid[E, S]) -> Monoid[U8, S]:
    """A monoid over bytes, or newtypes of them, as one over an array of bools."""
    if monoid.element is U8:
        return OfTruths(cast("Monoid[U8, S]", monoid))
    (field,) = fields_of(monoid.element).values()
    held = cast("type[object]", field)
    return of_truths(OfField(monoid, cast("Callable[[object], E]", monoid.element), held))
