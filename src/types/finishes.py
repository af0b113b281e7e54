"""Finishes: what becomes of a state when it is written as a result, in the same launch, where the data lies.

A monoid says what elements combine to; a finish says what people get to see of that: the least element instead of its
word, a 64-bit index, a byte for a truth, a float16 rounded once.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, cast

import attrs

from .intrinsics import bitcast
from .monoids import AllTrue, AnyTrue, Maximum, Minimum, Monoid, Product, Sum
from .numbers import HalfNumber
from .ranked_keys import RankedKey
from .scalars import F32, U8, U16, U32, U64
from .searches import ArgMax, ArgMin, Ranked
from .truths import OfField, OfTruths

E = TypeVar("E")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)
W = TypeVar("W", U32, U64)


class Finish(Protocol[S, R_co]):
    """The trait of what a state becomes: states S as a monoid leaves them, results R as they lie in memory."""

    @property
    def state(self) -> type[S]:
        """The class of a state: the monoid's own."""
        ...

    @property
    def result(self) -> type[R_co]:
        """The class of a result in memory."""
        ...

    def finish(self, state: S, /) -> R_co:
        """The result that stands for a state."""
        ...


@attrs.frozen
class AsItIs(Generic[S]):
    """The state itself."""

    state: type[S]

    @property
    def result(self) -> type[S]:
        return self.state

    def finish(self, state: S) -> S:
        return state


@attrs.frozen
class _OfWords(Generic[E, W]):
    """What is made of a key's words."""

    key: RankedKey[E, W]

    @property
    def state(self) -> type[W]:
        return self.key.word

    @property
    def result(self) -> type[E]:
        return self.key.element


@attrs.frozen
class Least(_OfWords[E, W]):
    """The element that Minimum's state stands for: it counts from the first NaN."""

    def finish(self, state: W) -> E:
        return self.key.from_word(state + self.key.word(self.key.last) + 1)


@attrs.frozen
class Greatest(_OfWords[E, W]):
    """The element that Maximum's state stands for."""

    def finish(self, state: W) -> E:
        return self.key.from_word(state)


@attrs.frozen
class Place(Generic[W]):
    """Where the element of ArgMin's or ArgMax's state stands, as the host counts: in 64 bits."""

    state: type[Ranked[W]]
    result: type[U64] = U64

    def finish(self, state: Ranked[W]) -> U64:
        return U64(state.index)


@attrs.frozen
class Truth:
    """The state of AnyTrue or AllTrue as a bool lies in memory."""

    state: type[U32] = U32
    result: type[U8] = U8

    def finish(self, state: U32) -> U8:
        return U8(state)


@attrs.frozen
class Half:
    """A 32-bit float as the bits of a float16: rounded to nearest, ties to even, once."""

    state: type[F32] = F32
    result: type[U16] = U16

    def finish(self, state: F32) -> U16:
        bits = bitcast(U32, state)
        sign = (bits >> 16) & 0x8000
        magnitude = bits & 0x7FFFFFFF
        if magnitude > 0x7F800000:  # NaN, quiet
            return U16(sign | 0x7E00)
        if magnitude >= 0x47800000:  # 65536 and above, infinity
            return U16(sign | 0x7C00)
        if magnitude >= 0x38800000:  # the normal ones; what is rounded up to 65536 is infinity's bits
            even = (magnitude >> 13) & 1
            return U16(sign | ((magnitude - (112 << 23) + 0xFFF + even) >> 13))
        exponent = magnitude >> 23
        if exponent < 102:  # less than half of the least subnormal
            return U16(sign)
        shift = 126 - exponent  # subnormals: multiples of 2**-24
        significand = (magnitude & 0x7FFFFF) | 0x800000
        even = (significand >> shift) & 1
        return U16(sign | ((significand + (U32(1) << (shift - 1)) - 1 + even) >> shift))


def finish_of(monoid: Monoid[Any, S]) -> Finish[S, Any]:
    """What NumPy's function of the name gives for a monoid's state: sums and products in NumPy's dtype, extremes as
    elements, places in 64 bits, truths as bytes; of any other monoid the state as it is.
    """
    return cast("Finish[S, Any]", _finish_of(monoid))


def _finish_of(monoid: object) -> object:
    known = cast(Any, monoid)  # its type variables are not known here
    match monoid:
        case Minimum():
            return Least(cast("RankedKey[Any, Any]", known.key))
        case Maximum():
            return Greatest(cast("RankedKey[Any, Any]", known.key))
        case ArgMin() | ArgMax():
            return Place(cast("type[Ranked[Any]]", known.state))
        case AnyTrue() | AllTrue():
            return Truth()
        case Sum() | Product() if isinstance(known.number, HalfNumber):
            return Half()
        case OfTruths() | OfField():
            return _finish_of(known.monoid)
        case _:
            return AsItIs(cast("type[object]", known.state))
