"""Finishes: from a monoid's state to the result, fused into the store of the last launch (an epilogue).

A monoid combines states; a finish makes of the last one what NumPy's function returns: the least element instead of
its word, a 64-bit index, a bool as a byte, a float16 rounded once.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, cast

import attrs

from .intrinsics import bitcast
from .keys import RankedKey
from .monoids import AllTrue, AnyTrue, Maximum, Minimum, Monoid, OverBools, OverField, Product, Sum
from .numbers import HalfNumber
from .scalars import F32, U8, U16, U32, U64
from .searches import ArgMax, ArgMin, Ranked

E = TypeVar("E")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)
W = TypeVar("W", U32, U64)


class Finish(Protocol[S, R_co]):
    """The trait of an epilogue: from a monoid's state S to a result R in memory."""

    @property
    def state(self) -> type[S]:
        """The class of the monoid's state."""
        ...

    @property
    def result(self) -> type[R_co]:
        """The class of a result in memory."""
        ...

    def finish(self, state: S, /) -> R_co:
        """The result for a state."""
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
    """A finish that turns a key's word into an element."""

    key: RankedKey[E, W]

    @property
    def state(self) -> type[W]:
        return self.key.word

    @property
    def result(self) -> type[E]:
        return self.key.element


@attrs.frozen
class Least(_OfWords[E, W]):
    """The element of Minimum's state, which is a word relative to the first NaN's."""

    def finish(self, state: W) -> E:
        return self.key.from_word(state + self.key.word(self.key.last) + 1)


@attrs.frozen
class Greatest(_OfWords[E, W]):
    """The element of Maximum's state."""

    def finish(self, state: W) -> E:
        return self.key.from_word(state)


@attrs.frozen
class FoundIndex(Generic[W]):
    """The index in ArgMin's or ArgMax's state, in 64 bits as NumPy's."""

    state: type[Ranked[W]]
    result: type[U64] = U64

    def finish(self, state: Ranked[W]) -> U64:
        return U64(state.index)


@attrs.frozen
class Truth:
    """The state of AnyTrue or AllTrue as a bool: a byte."""

    state: type[U32] = U32
    result: type[U8] = U8

    def finish(self, state: U32) -> U8:
        return U8(state)


@attrs.frozen
class Half:
    """A 32-bit float as the bits of a float16, rounded to nearest, ties to even."""

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
    """The finish that gives what NumPy's function returns, for a built-in monoid; AsItIs for any other.

    Sums and products are in NumPy's dtype, extrema are elements, indices have 64 bits, bools are bytes.
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
            return FoundIndex(cast("type[Ranked[Any]]", known.state))
        case AnyTrue() | AllTrue():
            return Truth()
        case Sum() | Product() if isinstance(known.number, HalfNumber):
            return Half()
        case OverBools() | OverField():
            return _finish_of(known.monoid)
        case _:
            return AsItIs(cast("type[object]", known.state))
