"""Monoids: what reductions and scans combine, and how. `combine` must be associative and, for reductions, which reorder
elements, commutative (for floats approximately)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, cast

import attrs

from .bounded import Interned
from .elements import fields_of
from .intrinsics import maximum, minimum
from .keys import RankedKey
from .numbers import Numeric
from .scalars import F32, F64, I64, U8, U32, U64, Float

E = TypeVar("E")
F = TypeVar("F")
S = TypeVar("S")
N = TypeVar("N", U64, I64, F32, F64)
W = TypeVar("W", U32, U64)


class Monoid(Protocol[E, S]):
    """The trait of what can be reduced: elements E in memory, states S that combine. A state is a scalar, or a frozen
    attrs class of scalars."""

    @property
    def element(self) -> type[E]:
        """The class of an element in memory."""
        ...

    @property
    def state(self) -> type[S]:
        """The class of a state; `Pair[U32]` for a generic one."""
        ...

    def identity(self) -> S:
        """The state of no elements."""
        ...

    def lift(self, element: E, index: U32, /) -> S:
        """The state of one element; `index` is its index in the row."""
        ...

    def combine(self, a: S, b: S, /) -> S:
        """The state of both's elements together."""
        ...


@attrs.frozen(cache_hash=True)
class _OfNumbers(Generic[E, N], metaclass=Interned):
    """The base of monoids over numbers."""

    number: Numeric[E, N]

    @property
    def element(self) -> type[E]:
        return self.number.element

    @property
    def state(self) -> type[N]:
        return self.number.state

    def lift(self, element: E, index: U32) -> N:
        return self.number.to_number(element)


@attrs.frozen(cache_hash=True)  # part of every plan's key
class Sum(_OfNumbers[E, N]):
    """The sum; of integers modulo 2**64."""

    def identity(self) -> N:
        return self.number.state(0)

    def combine(self, a: N, b: N) -> N:
        return a + b


@attrs.frozen(cache_hash=True)
class RunningSum(Sum[E, N]):
    """The sum for cumsum, whose identity is -0.0, so that a row that starts with -0.0 keeps it, as with NumPy."""

    def identity(self) -> N:
        if issubclass(self.number.state, Float):
            return self.number.state(-0.0)  # type: ignore[arg-type]  # of the states that N may be, only floats come here
        return self.number.state(0)


@attrs.frozen(cache_hash=True)
class Product(_OfNumbers[E, N]):
    """The product; of integers modulo 2**64."""

    def identity(self) -> N:
        return self.number.state(1)

    def combine(self, a: N, b: N) -> N:
        return a * b


@attrs.frozen
class OfKeys(Generic[E, W]):
    """The base of monoids over ordered elements."""

    key: RankedKey[E, W]

    @property
    def element(self) -> type[E]:
        return self.key.element


@attrs.frozen
class _Extremum(OfKeys[E, W]):
    """The base of extrema: the state is a word, and the result its element."""

    @property
    def state(self) -> type[W]:
        return self.key.word

    @property
    def result(self) -> type[E]:
        return self.key.element


@attrs.frozen
class Minimum(_Extremum[E, W]):
    """The least element's word relative to the first NaN's, so that any NaN or NaT is the least, as in NumPy."""

    def identity(self) -> W:
        return self.key.word((1 << self.key.word.type.bits) - 1)

    def lift(self, element: E, index: U32) -> W:
        return self.key.to_word(element) - self.key.word(self.key.last) - 1

    def combine(self, a: W, b: W) -> W:
        return minimum(a, b)

    def finish(self, state: W) -> E:
        return self.key.from_word(state + self.key.word(self.key.last) + 1)


@attrs.frozen
class Maximum(_Extremum[E, W]):
    """The greatest element's word; NaN and NaT are the greatest."""

    def identity(self) -> W:
        return self.key.word(0)

    def lift(self, element: E, index: U32) -> W:
        return self.key.to_word(element)

    def combine(self, a: W, b: W) -> W:
        return maximum(a, b)

    def finish(self, state: W) -> E:
        return self.key.from_word(state)


@attrs.frozen
class Extremes(Generic[W]):
    """A least and a greatest word."""

    low: W
    high: W


@attrs.frozen
class MinMax(OfKeys[E, W]):
    """Both extrema in one pass: `low` is Minimum's state, `high` Maximum's."""

    @property
    def state(self) -> type[Extremes[W]]:
        return Extremes[self.key.word]  # type: ignore[name-defined]  # the alias is made from a class known at run time

    def identity(self) -> Extremes[W]:
        return Extremes(Minimum(self.key).identity(), Maximum(self.key).identity())

    def lift(self, element: E, index: U32) -> Extremes[W]:
        return Extremes(Minimum(self.key).lift(element, index), Maximum(self.key).lift(element, index))

    def combine(self, a: Extremes[W], b: Extremes[W]) -> Extremes[W]:
        return Extremes(minimum(a.low, b.low), maximum(a.high, b.high))


@attrs.frozen
class _OfTruths(OfKeys[E, W]):
    """The base of both below: 1 for an element that is not zero, as NaN is not, else 0. The result is a bool's byte."""

    state: type[U32] = U32
    result: type[U8] = U8

    def lift(self, element: E, index: U32) -> U32:
        return U32(self.key.to_rank(element) != self.key.zero)

    def finish(self, state: U32) -> U8:
        return U8(state)


@attrs.frozen
class AnyTrue(_OfTruths[E, W]):
    """1 if any element is nonzero, else 0."""

    def identity(self) -> U32:
        return U32(0)

    def combine(self, a: U32, b: U32) -> U32:
        return a | b


@attrs.frozen
class AllTrue(_OfTruths[E, W]):
    """1 if all elements are nonzero, else 0."""

    def identity(self) -> U32:
        return U32(1)

    def combine(self, a: U32, b: U32) -> U32:
        return a & b


@attrs.frozen
class Count:
    """The sum of 32-bit counts, which must stay below 2**32."""

    element: type[U32] = U32
    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: U32, index: U32) -> U32:
        return element

    def combine(self, a: U32, b: U32) -> U32:
        return a + b


@attrs.frozen
class MonoidWrapper(Generic[E, S]):
    """The base of adapters: a monoid's state and combine, with another element or lift."""

    monoid: Monoid[E, S]

    @property
    def state(self) -> type[S]:
        return self.monoid.state

    def identity(self) -> S:
        return self.monoid.identity()

    def combine(self, a: S, b: S) -> S:
        return self.monoid.combine(a, b)


@attrs.frozen
class OverStates(MonoidWrapper[E, S]):
    """A monoid over its own states: for the second launch of a reduction, which combines partial results."""

    @property
    def element(self) -> type[S]:
        return self.monoid.state

    def lift(self, element: S, index: U32) -> S:
        return element


@attrs.frozen
class StartingAt(MonoidWrapper[E, S]):
    """A monoid over part of a row, whose indices are those in the whole row: they start at `first`."""

    first: U32

    @property
    def element(self) -> type[E]:
        return self.monoid.element

    def lift(self, element: E, index: U32) -> S:
        return self.monoid.lift(element, self.first + index)


@attrs.frozen
class OverField(MonoidWrapper[E, S], Generic[E, F, S]):
    """A monoid over a newtype, as one over the newtype's field."""

    newtype: Callable[[F], E]
    element: type[F]

    def lift(self, element: F, index: U32) -> S:
        return self.monoid.lift(self.newtype(element), index)


def _flag(element: U8) -> U8:
    """The byte of a bool: 1 for any that is not zero."""
    return U8(U32(U32(element) != 0))


def over_bools(monoid: Monoid[E, S]) -> Monoid[U8, S]:
    """Adapts a monoid over bytes, or newtypes of them, to an array of bools: it sees 0 or 1."""
    if monoid.element is U8:
        return OverField(cast("Monoid[U8, S]", monoid), _flag, U8)
    (field,) = fields_of(monoid.element).values()
    held = cast("type[object]", field)
    return over_bools(OverField(monoid, cast("Callable[[object], E]", monoid.element), held))
