"""Reductions with NumPy's results: min, max, argmin and argmax with their finish fused into the last launch."""

from __future__ import annotations

from typing import TypeVar

from ..kernel.launch import Schedule
from ..types.finishes import finish_of
from ..types.monoids import Maximum, Minimum
from ..types.params import ReducePolicy
from ..types.scalars import U32, U64
from ..types.searches import ArgMax, ArgMin
from .reduce import reduce_rows

E = TypeVar("E")
W = TypeVar("W", U32, U64)


def extremes(monoid: Minimum[E, W] | Maximum[E, W], rows: int, length: int, policy: ReducePolicy) -> Schedule:
    """Writes the least or the greatest element of every row of `data` to `results`."""
    return reduce_rows(monoid, rows, length, policy, finish_of(monoid))


def places(monoid: ArgMin[E, W] | ArgMax[E, W], rows: int, length: int, policy: ReducePolicy) -> Schedule:
    """Writes the index of every row's first least or greatest element to `results`, in 64 bits."""
    return reduce_rows(monoid, rows, length, policy, finish_of(monoid))
