"""Reductions of elements shorter than a word, two to a load, and by pairs of pairs four: a device has as many loads in
flight whatever their size, so that of bytes a quarter of the bandwidth would be used."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import attrs

from .finishes import Finish
from .monoids import Monoid, MonoidWrapper
from .scalars import U8, U16, U32

E = TypeVar("E", U8, U16)
S = TypeVar("S")
P = TypeVar("P", U16, U32)
R = TypeVar("R")


@attrs.frozen
class Two(Generic[S]):
    """What is known of two neighbours, apart."""

    low: S
    high: S


def two_of(held: type[S]) -> type[Two[S]]:
    """`Two[held]`, for a class that is known at run time only."""
    return cast("type[Two[S]]", cast(Any, Two)[held])


def lifted(monoid: Monoid[E, S], pair: P) -> Two[S]:
    """The states of two neighbours, the first of which has a pair's low bits. Indices are meaningless."""
    word, element = U32(pair), monoid.element
    return Two(monoid.lift(element(word), U32(0)), monoid.lift(element(word >> element.type.bits), U32(0)))


@attrs.frozen
class Along(MonoidWrapper[E, S], Generic[E, S, P]):
    """A monoid over pairs of neighbours in a row, which are combined."""

    element: type[P]

    def lift(self, pair: P, index: U32) -> S:
        both = lifted(self.monoid, pair)
        return self.monoid.combine(both.low, both.high)


@attrs.frozen
class Across(Generic[E, S, P]):
    """A monoid over pairs of neighbours in two columns, each of which has a state of its own."""

    monoid: Monoid[E, S]
    element: type[P]

    @property
    def state(self) -> type[Two[S]]:
        return two_of(self.monoid.state)

    def identity(self) -> Two[S]:
        return Two(self.monoid.identity(), self.monoid.identity())

    def lift(self, pair: P, index: U32) -> Two[S]:
        return lifted(self.monoid, pair)

    def combine(self, a: Two[S], b: Two[S]) -> Two[S]:
        return Two(self.monoid.combine(a.low, b.low), self.monoid.combine(a.high, b.high))


@attrs.frozen
class FinishTwo(Generic[S, R]):
    """The results of two columns, which are neighbours too."""

    of: Finish[S, R]

    @property
    def state(self) -> type[Two[S]]:
        return two_of(self.of.state)

    @property
    def result(self) -> type[Two[R]]:
        return two_of(self.of.result)

    def finish(self, state: Two[S]) -> Two[R]:
        return Two(self.of.finish(state.low), self.of.finish(state.high))
