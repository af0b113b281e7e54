"""Monoids: what a reduction combines, and how.

A reduction takes elements in an order that suits the machine, so `combine` must be associative and commutative (for
floats: as nearly as they are), and `identity` must change nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Protocol, TypeGuard, TypeVar, cast

import attrs

from .interned import Interned
from .intrinsics import maximum, minimum
from .keys import FloatKey, SortableKey
from .numbers import Numeric
from .scalars import F32, F64, I64, U32, U64, Bool, Float

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


class RankedKey(SortableKey[E, W], Protocol[E, W]):
    """A key that also knows which of its words are numbers: what the extrema need."""

    @property
    def last(self) -> int:
        """The greatest word of an ordinary element; those above are NaN or NaT."""
        ...

    @property
    def zero(self) -> W:
        """The rank of the element that is false."""
        ...


@attrs.frozen
class OrdinaryKey(Generic[E, W]):
    """A key of which nothing more is known: it has no NaN or NaT, and none of its elements is false."""

    key: SortableKey[E, W]

    @property
    def element(self) -> type[E]:
        return self.key.element

    @property
    def word(self) -> type[W]:
        return self.key.word

    @property
    def greatest(self) -> W:
        return self.key.greatest

    @property
    def last(self) -> int:
        return (1 << self.key.word.type.bits) - 1

    @property
    def zero(self) -> W:
        return self.key.greatest

    def to_word(self, element: E) -> W:
        return self.key.to_word(element)

    def from_word(self, word: W) -> E:
        return self.key.from_word(word)

    def to_rank(self, element: E) -> W:
        return self.key.to_rank(element)

    def mirrored(self, word: W) -> W:
        return self.key.mirrored(word)


def ranked(key: SortableKey[E, W]) -> RankedKey[E, W]:
    """A user's key as the extrema need it."""
    if hasattr(key, "last") and hasattr(key, "zero"):
        return cast("RankedKey[E, W]", key)
    return OrdinaryKey(key)


@attrs.frozen
class _OfKeys(Generic[E, W]):
    """What monoids over ordered elements share."""

    key: RankedKey[E, W]

    @property
    def element(self) -> type[E]:
        return self.key.element


@attrs.frozen
class _Extremum(_OfKeys[E, W]):
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
class MinMax(_OfKeys[E, W]):
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
class Ranked(Generic[W]):
    """A rank and where it stands. Of equal ranks the first counts."""

    rank: W
    index: U32

    def precedes(self, other: Ranked[W]) -> Bool:
        return (self.rank < other.rank) | ((self.rank == other.rank) & (self.index < other.index))


@attrs.frozen
class Search(_OfKeys[E, W]):
    """Those that tell where an element stands: the first of the least rank.

    A rank tells less than a word: equals share one. So the rank of the least word is the least rank, and of many words
    only that of the least has to be known.
    """

    @property
    def state(self) -> type[Ranked[W]]:
        return Ranked[self.key.word]  # type: ignore[name-defined]  # the alias is made from a class known at run time

    @abstractmethod
    def word(self, element: E) -> W:
        """The less, the sooner the element is found."""

    @abstractmethod
    def rank(self, word: W) -> W:
        """The same of an element with this word, but one for all that are equal."""

    def identity(self) -> Ranked[W]:
        return Ranked(self.key.word((1 << self.key.word.type.bits) - 1), U32(0xFFFFFFFF))

    def lift(self, element: E, index: U32) -> Ranked[W]:
        return Ranked(self.rank(self.word(element)), index)

    def combine(self, a: Ranked[W], b: Ranked[W]) -> Ranked[W]:
        return a if a.precedes(b) else b

    def _word(self, element: E) -> W:
        return self.key.to_word(element) if _tells_ranks(self.key) else self.key.to_rank(element)

    def _rank(self, word: W) -> W:
        return self.key.rank_of(word) if _tells_ranks(self.key) else word


def _tells_ranks(key: RankedKey[E, W]) -> TypeGuard[FloatKey[Any, W]]:
    """Whether a rank is made of a word, and there is something to it. Of a user's key only elements have ranks."""
    return isinstance(key, FloatKey)


@attrs.frozen
class ArgMin(Search[E, W]):
    """Where the least element stands; the first of equals, and the first NaN before anything else."""

    def word(self, element: E) -> W:
        return self._word(element) - self.key.word(self.key.last) - 1

    def rank(self, word: W) -> W:
        return self._rank(word + self.key.word(self.key.last) + 1) - self.key.word(self.key.last) - 1


@attrs.frozen
class ArgMax(Search[E, W]):
    """Where the greatest element stands; the first of equals, and the first NaN before anything else."""

    def word(self, element: E) -> W:
        return ~self._word(element)

    def rank(self, word: W) -> W:
        return ~self._rank(~word)


@attrs.frozen
class AnyTrue(_OfKeys[E, W]):
    """1 where an element is not zero, else 0. NaN is not zero."""

    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: E, index: U32) -> U32:
        return U32(self.key.to_rank(element) != self.key.zero)

    def combine(self, a: U32, b: U32) -> U32:
        return a | b


@attrs.frozen
class AllTrue(_OfKeys[E, W]):
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
