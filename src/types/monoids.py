"""Monoids: what a reduction combines, and how.

A reduction takes elements in an order that suits the machine, so `combine` must be associative and commutative (for
floats: as nearly as they are), and `identity` must change nothing.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import attrs

from .interned import Interned
from .intrinsics import maximum, minimum
from .numbers import Numeric
from .ranked_keys import RankedKey
from .scalars import F32, F64, I64, U32, U64, Float

E = TypeVar("E")
S = TypeVar("S")
N = TypeVar("N", U64, I64, F32, F64)
W = TypeVar("W", U32, U64)


class Monoid(Protocol[E, S]):
    """The trait of what can be reduced: elements E as they lie in memory, states S that combine.

    A state is a scalar, or a frozen attrs class of scalars.
    """

    @property
    def element(self) -> type[E]:
        """The class of an element in memory."""
        ...

    @property
    def state(self) -> type[S]:
        """The class of a state, `Pair[U32]` for a generic one."""
        ...

    def identity(self) -> S:
        """The state of no elements."""
        ...

    def lift(self, element: E, index: U32, /) -> S:
        """The state of one element; the index counts within its row."""
        ...

    def combine(self, a: S, b: S, /) -> S:
        """The state of the elements of both."""
        ...


@attrs.frozen(cache_hash=True)
class _OfNumbers(Generic[E, N], metaclass=Interned):
    """What monoids over numbers share."""

    number: Numeric[E, N]

    @property
    def element(self) -> type[E]:
        return self.number.element

    @property
    def state(self) -> type[N]:
        return self.number.state

    def lift(self, element: E, index: U32) -> N:
        return self.number.to_number(element)


@attrs.frozen(cache_hash=True)  # each call looks its plan up by it
class Sum(_OfNumbers[E, N]):
    """The sum; integers in 64 bits, modulo two to the 64."""

    def identity(self) -> N:
        return self.number.state(0)

    def combine(self, a: N, b: N) -> N:
        return a + b


@attrs.frozen(cache_hash=True)
class RunningSum(Sum[E, N]):
    """The sum of a cumulative sum, which begins with the first element as it is: -0.0 + -0.0 is -0.0, and 0.0 + -0.0
    is not. (NumPy's sum is 0.0 of negative zeros alone, as Sum's is.)"""

    def identity(self) -> N:
        if issubclass(self.number.state, Float):
            return self.number.state(-0.0)  # type: ignore[arg-type]  # of the states that N may be, only floats come here
        return self.number.state(0)


@attrs.frozen(cache_hash=True)
class Product(_OfNumbers[E, N]):
    """The product; integers in 64 bits, modulo two to the 64."""

    def identity(self) -> N:
        return self.number.state(1)

    def combine(self, a: N, b: N) -> N:
        return a * b


@attrs.frozen
class OfKeys(Generic[E, W]):
    """What monoids over ordered elements share."""

    key: RankedKey[E, W]

    @property
    def element(self) -> type[E]:
        return self.key.element


@attrs.frozen
class _Extremum(OfKeys[E, W]):
    """Those whose state is a word."""

    @property
    def state(self) -> type[W]:
        return self.key.word


@attrs.frozen
class Minimum(_Extremum[E, W]):
    """The least element's word, counted from the first NaN: a NaN or NaT anywhere is the result, as in NumPy."""

    def identity(self) -> W:
        return self.key.word((1 << self.key.word.type.bits) - 1)

    def lift(self, element: E, index: U32) -> W:
        return self.key.to_word(element) - self.key.word(self.key.last) - 1

    def combine(self, a: W, b: W) -> W:
        return minimum(a, b)


@attrs.frozen
class Maximum(_Extremum[E, W]):
    """The greatest element's word; NaN and NaT are the greatest."""

    def identity(self) -> W:
        return self.key.word(0)

    def lift(self, element: E, index: U32) -> W:
        return self.key.to_word(element)

    def combine(self, a: W, b: W) -> W:
        return maximum(a, b)


@attrs.frozen
class Extremes(Generic[W]):
    """The least and the greatest of some words."""

    low: W
    high: W


@attrs.frozen
class MinMax(OfKeys[E, W]):
    """Both extremes in one reading: `low` counts as Minimum's state does, `high` as Maximum's."""

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
class AnyTrue(OfKeys[E, W]):
    """1 where an element is not zero, else 0. NaN is not zero."""

    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: E, index: U32) -> U32:
        return U32(self.key.to_rank(element) != self.key.zero)

    def combine(self, a: U32, b: U32) -> U32:
        return a | b


@attrs.frozen
class AllTrue(OfKeys[E, W]):
    """1 where no element is zero, else 0. NaN is not zero."""

    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(1)

    def lift(self, element: E, index: U32) -> U32:
        return U32(self.key.to_rank(element) != self.key.zero)

    def combine(self, a: U32, b: U32) -> U32:
        return a & b


@attrs.frozen
class Count:
    """The sum of 32-bit counts, which the caller knows to stay below 2**32."""

    element: type[U32] = U32
    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: U32, index: U32) -> U32:
        return element

    def combine(self, a: U32, b: U32) -> U32:
        return a + b


@attrs.frozen
class Around(Generic[E, S]):
    """What monoids share that see a monoid's elements in another way."""

    monoid: Monoid[E, S]

    @property
    def state(self) -> type[S]:
        return self.monoid.state

    def identity(self) -> S:
        return self.monoid.identity()

    def combine(self, a: S, b: S) -> S:
        return self.monoid.combine(a, b)


@attrs.frozen
class Resumed(Around[E, S]):
    """The same monoid over states instead of elements: for what is left after a first launch."""

    @property
    def element(self) -> type[S]:
        return self.monoid.state

    def lift(self, element: S, index: U32) -> S:
        return element
