"""Reductions that end in what people ask for, where the data lies: the finish is fused into the last launch."""

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
    """The least or the greatest element of every row of `data`, in `results`."""
    return reduce_rows(monoid, rows, length, policy, finish_of(monoid))


def places(monoid: ArgMin[E, W] | ArgMax[E, W], rows: int, length: int, policy: ReducePolicy) -> Schedule:
    """Where the first of every row's least or greatest elements stands, in `results`, as 64-bit indices."""
    return reduce_rows(monoid, rows, length, policy, finish_of(monoid))
