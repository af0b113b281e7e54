"""Bools as a monoid sees them: 0 or 1, though in memory a byte of any bits but zero stands for true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import attrs

from .elements import fields_of
from .monoids import Monoid
from .scalars import U8, U32

E = TypeVar("E")
F = TypeVar("F")
S = TypeVar("S")


@attrs.frozen
class OfField(Generic[E, F, S]):
    """A monoid over a newtype, as one over what the newtype holds."""

    monoid: Monoid[E, S]
    newtype: Callable[[F], E]
    element: type[F]

    @property
    def state(self) -> type[S]:
        return self.monoid.state

    def identity(self) -> S:
        return self.monoid.identity()

    def lift(self, element: F, index: U32) -> S:
        return self.monoid.lift(self.newtype(element), index)

    def combine(self, a: S, b: S) -> S:
        return self.monoid.combine(a, b)


@attrs.frozen
class OfTruths(Generic[S]):
    """A monoid over bytes, which gets to see 0 or 1."""

    monoid: Monoid[U8, S]
    element: type[U8] = U8

    @property
    def state(self) -> type[S]:
        return self.monoid.state

    def identity(self) -> S:
        return self.monoid.identity()

    def lift(self, element: U8, index: U32) -> S:
        return self.monoid.lift(U8(U32(U32(element) != 0)), index)

    def combine(self, a: S, b: S) -> S:
        return self.monoid.combine(a, b)


def of_truths(monoid: Monoid[E, S]) -> Monoid[U8, S]:
    """A monoid over bytes, or newtypes of them, as one over an array of bools."""
    if monoid.element is U8:
        return OfTruths(cast("Monoid[U8, S]", monoid))
    (field,) = fields_of(monoid.element).values()
    held = cast("type[object]", field)
    return of_truths(OfField(monoid, cast("Callable[[object], E]", monoid.element), held))
