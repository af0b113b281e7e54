"""From the states of a reduction to what people ask for, where the data lies: one more launch, no way to the host."""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.invocation import Invocation
from ..types.memory import Storage
from ..types.monoids import ArgMax, ArgMin, Maximum, Minimum, Ranked, RankedKey
from ..types.params import ReducePolicy
from ..types.scalars import U32, U64
from .reduce import reduce_rows

E = TypeVar("E")
W = TypeVar("W", U32, U64)

_GROUP = 64


@kernel
def finish_least(cx: Invocation, key: RankedKey[E, W], states: Storage[W], results: Storage[E]) -> None:
    """The elements that Minimum's states stand for: they count from the first NaN."""
    if cx.global_id < states.length:
        results[cx.global_id] = key.from_word(states[cx.global_id] + key.word(key.last) + 1)


@kernel
def finish_greatest(cx: Invocation, key: RankedKey[E, W], states: Storage[W], results: Storage[E]) -> None:
    """The elements that Maximum's states stand for."""
    if cx.global_id < states.length:
        results[cx.global_id] = key.from_word(states[cx.global_id])


@kernel
def finish_place(cx: Invocation, states: Storage[Ranked[W]], results: Storage[U64]) -> None:
    """The places in the states of ArgMin and ArgMax, as the host counts them."""
    if cx.global_id < states.length:
        results[cx.global_id] = U64(states[cx.global_id].index)


def extremes(monoid: Minimum[E, W] | Maximum[E, W], rows: int, length: int, policy: ReducePolicy) -> Schedule:
    """The least or the greatest element of every row of `data`, in `results`."""
    states = Buffer("states", monoid.state, rows, Role.SCRATCH)
    results = Buffer("results", monoid.element, rows, Role.OUTPUT)
    finish = finish_least if isinstance(monoid, Minimum) else finish_greatest
    last = finish.launch(Grid(-(-rows // _GROUP), _GROUP), monoid.key, states, results)
    return _extended(reduce_rows(monoid, rows, length, policy, states), results, last)


def places(monoid: ArgMin[E, W] | ArgMax[E, W], rows: int, length: int, policy: ReducePolicy) -> Schedule:
    """Where the first of every row's least or greatest elements stands, in `results`."""
    states = Buffer("states", monoid.state, rows, Role.SCRATCH)
    results = Buffer("results", U64, rows, Role.OUTPUT)
    last = finish_place.launch(Grid(-(-rows // _GROUP), _GROUP), states, results)
    return _extended(reduce_rows(monoid, rows, length, policy, states), results, last)


def _extended(reduction: Schedule, results: Buffer[E], last: Launch) -> Schedule:
    return Schedule((*reduction.buffers, results), (*reduction.launches, last))
