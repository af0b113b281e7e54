"""Finishes: from a monoid's state to what NumPy's function returns, fused into the store of the last launch."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, cast

import attrs

from .intrinsics import bitcast, overridable
from .monoids import AllTrue, AnyTrue, Maximum, Minimum, Monoid, OverField, Product, Sum
from .numbers import HalfNumber
from .scalars import F32, U16, U32
from .searches import ArgMax, ArgMin

S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Finish(Protocol[S, R_co]):
    """The trait of an epilogue: from a monoid's state S to a result R in memory."""

    @property
    def state(self) -> type[S]: ...
    @property
    def result(self) -> type[R_co]: ...
    def finish(self, state: S, /) -> R_co: ...


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
class Half:
    """A 32-bit float as the bits of a float16."""

    state: type[F32] = F32
    result: type[U16] = U16

    def finish(self, state: F32) -> U16:
        return float_to_half(state)


@overridable
def float_to_half(number: F32) -> U16:
    """The bits of a float16, rounded to nearest, ties to even; of a NaN, a quiet one of its sign."""
    bits = bitcast(U32, number)
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
    """What gives what NumPy's function returns, for a built-in monoid; AsItIs for any other. Sums and products are in
    NumPy's dtype, extrema are elements, indices have 64 bits, bools are bytes."""
    known: Any = monoid  # its type variables are not known here
    match cast(object, monoid):
        case Minimum() | Maximum() | ArgMin() | ArgMax() | AnyTrue() | AllTrue():
            return cast("Finish[S, Any]", known)
        case Sum() | Product() if isinstance(known.number, HalfNumber):
            return cast("Finish[S, Any]", Half())
        case OverField():
            return cast("Finish[S, Any]", finish_of(known.monoid))
        case _:
            return AsItIs(monoid.state)
