"""The sum of times, for arrays that only a device can add up."""

from __future__ import annotations

import attrs

from .scalars import I64, U32, U64

_NAT = -(1 << 63)


@attrs.frozen(cache_hash=True)
class SumOfTimes:
    """The sum of timedelta64, of which the least number is NaT, and stays so whatever is added."""

    element: type[U64] = U64
    state: type[I64] = I64

    def identity(self) -> I64:
        return I64(0)

    def lift(self, element: U64, index: U32) -> I64:
        return I64(element)

    def combine(self, a: I64, b: I64) -> I64:
        return a if a == _NAT else b if b == _NAT else a + b
