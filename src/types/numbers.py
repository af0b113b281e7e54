"""Numbers: how an element of an array is widened to what is added and multiplied."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import attrs

from .intrinsics import bitcast, overridable
from .scalars import F32, F64, I64, U8, U16, U32, U64

E = TypeVar("E")
S_co = TypeVar("S_co", U64, I64, F32, F64, covariant=True)
Real = TypeVar("Real", F32, F64)
Memory = TypeVar("Memory", U8, U16, U32, U64)


class Numeric(Protocol[E, S_co]):
    """The trait of what can be added and multiplied: elements E in memory, numbers S to compute with."""

    @property
    def element(self) -> type[E]: ...

    @property
    def state(self) -> type[S_co]: ...

    def to_number(self, element: E, /) -> S_co: ...


@attrs.frozen(cache_hash=True)
class UnsignedNumber(Generic[Memory]):
    """Unsigned integers, in 64 bits."""

    element: type[Memory]
    state: type[U64] = U64

    def to_number(self, element: Memory) -> U64:
        return U64(element)


@attrs.frozen(cache_hash=True)
class FloatNumber(Generic[Real]):
    """Floats, as they are."""

    element: type[Real]

    @property
    def state(self) -> type[Real]:
        return self.element

    def to_number(self, element: Real) -> Real:
        return element


@attrs.frozen(cache_hash=True)
class TruthNumber:
    """bool, as a byte: any nonzero byte is 1."""

    element: type[U8] = U8
    state: type[U64] = U64

    def to_number(self, element: U8) -> U64:
        return U64(U32(element) != 0)


@attrs.frozen(cache_hash=True)
class SignedNumber(Generic[Memory]):
    """Two's complement integers of `bits` bits, sign-extended to 64."""

    element: type[Memory]
    bits: int
    state: type[I64] = I64

    def to_number(self, element: Memory) -> I64:
        if self.bits == 64:
            return I64(element)
        sign = 1 << (self.bits - 1)
        return (I64(element) ^ sign) - sign


@attrs.frozen(cache_hash=True)
class HalfNumber:
    """16-bit floats, computed in 32 bits."""

    element: type[U16] = U16
    state: type[F32] = F32

    def to_number(self, element: U16) -> F32:
        return half_to_float(element)


@overridable
def half_to_float(half: U16) -> F32:
    """The float of a float16's bits, which is exact."""
    bits = U32(half)
    sign = (bits & 0x8000) << 16
    rest = bits & 0x7FFF
    if rest >= 0x7C00:  # infinity and NaN
        return bitcast(F32, sign | 0x7F800000 | (rest << 13))
    if rest < 0x0400:  # zero and subnormals, multiples of 2**-24, which are normal as 32-bit floats
        magnitude = bitcast(U32, F32(rest) * 5.9604644775390625e-08)
        return bitcast(F32, sign | magnitude)
    return bitcast(F32, sign | ((rest << 13) + (112 << 23)))
