"""Cumulative sums of host arrays: a closure for each dtype and axis, made once and called for every array.

Short arrays go to NumPy's loop, long ones to compiled loops, which keep the order of NumPy's additions but for few long
rows of floats: these are added up in pieces of one length, so that the result depends on the shape alone. Rows of
integers are in pieces only where there are many threads for them, since pieces are read twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from ....arrays.recycled import new_array
from ....operations.reduce import Reducer
from ...base import HostArray
from ...counts import count_nonzero
from ..background import background
from ..crew import share_kernel, threads_of_crew
from ..loops import Kernel, place_of
from ..pool import thread_count
from .cumsum_loops import BLOCK, columns, one_by_one, pieces, totals
from .reducers import Summing, rounded, silence, takes
from .regrouped import LEAST_IN_LINES, accumulated, has_short_lines
from .strides import LoopNest, Routes, loops_around, loops_beside, padded, zeros_and_ones

HostScan: TypeAlias = Callable[[HostArray], HostArray]

_LONG = 1 << 11  # elements: below, NumPy is done before anything else has begun
_LONG_INTEGERS = 1 << 14  # the same of one row of those, and twice as many of 64 bits, which NumPy adds up sooner
_LITTLE = 1 << 13  # elements: below, many calls are worth the loading of loops, and no single one
_IN_PIECES = 1 << 14  # elements of a row that is added up in pieces
_FEW = 8  # rows: more keep the order of NumPy's additions
_PIECE = 1 << 12  # at least
_SHORT = 48  # floats of a row: a processor begins with the next ones before it is done
_SHORTEST = 3  # elements of rows of which NumPy adds up all at once in less time
_MANY_THREADS = 3
_SHARED = 1 << 19  # elements: below, waking a thread costs more than it saves
_FEW_SUMS = 1 << 10  # of more, a count of those that are not zero costs more than an addition to all


def host_cumsum(dtype: np.dtype[np.generic], ndim: int, axis: int | None) -> HostScan | None:
    """What adds up host arrays of a dtype and so many dimensions as `np.cumsum` does: of any shape and layout; float16
    in 32 bits, rounded once. Silent about overflow. None where there are no such sums, or no such axis."""
    if not takes(Reducer.SUM, dtype) or not (axis is None or -ndim <= axis < ndim or (ndim == 0 and axis in (0, -1))):
        return None
    if ndim < 2:  # one row
        axis = 0 if ndim else None
    summing, is_float, long = Summing.of(Reducer.SUM, dtype), dtype.kind == "f", None
    if dtype.kind != "m" and dtype.isnative:
        long = LongScan(dtype, 0 if axis is None else axis % ndim)
    made, along, result = summing.state if summing.is_half else None, axis or 0, summing.result
    in_lines = long is not None and not summing.is_half and axis is not None and ndim > 1
    least = _LONG if is_float or ndim > 1 else _LONG_INTEGERS << (dtype.itemsize == 8)

    def add_up(x: HostArray) -> HostArray:
        are_short = False
        if axis is None:  # packed, for NumPy adds what lies apart slowly
            x = x.ravel()
        elif x.shape[along] == 1:
            return x.astype(result)
        elif in_lines and x.size >= LEAST_IN_LINES:
            are_short = has_short_lines(x, along)
        if x.size >= least and long is not None and not (are_short and _are_shortest(x, along)):
            found = long(x)
            if found is not None:
                return found
        if are_short:
            return silence().run(accumulated, x, along, result)
        if not is_float:
            return _accumulate(x, along)
        context = silence()
        sums = context.run(_accumulate, x, along, made)
        return sums if made is None else context.run(rounded, sums, dtype.newbyteorder("="))

    return add_up


def _are_shortest(x: HostArray, axis: int) -> bool:
    return x.shape[axis] <= _SHORTEST and x.size < _SHARED and axis in (x.ndim - 1, -1)


# What the method comes to, in half its time.
_accumulate = cast("Callable[..., HostArray]", np.add.accumulate)


def from_zero(scan: HostScan, axis: int | None) -> HostScan:
    """The same sums, of floats, when zero comes first: -0.0 is 0.0 then, and may be nothing but the first sums."""

    def add_up(x: HostArray) -> HostArray:
        sums = scan(x)
        some = sums[:1] if sums.ndim == 1 else sums
        if some.size <= _FEW_SUMS and count_nonzero(some) == some.size:
            return sums
        if sums.size < _LONG or not sums.swapaxes(0, axis or 0)[0].all():  # `take` would copy all
            np.add(sums, 0.0, out=sums)
        return sums

    return add_up


def shifted(scan: HostScan, axis: int | None) -> HostScan:
    """The sums of all before each element: zero, and all sums but the last."""

    def add_up(x: HostArray) -> HostArray:
        sums = scan(x)
        results, along = np.empty_like(sums), axis or 0 if sums.ndim > 1 else 0
        later, before = results.swapaxes(along, 0), sums.swapaxes(along, 0)
        later[:1], later[1:] = 0, before[:-1]
        return results

    return add_up


@attrs.frozen(eq=False)
class _Route:
    """All that is to be done for arrays of one shape and layout."""

    nest: LoopNest
    plan: npt.NDArray[np.int64]
    tasks: int
    rows: int
    pieces: int  # of each row; 0 where the loop takes whole ones
    loop: Callable[[Summing], Kernel]


class LongScan:
    """Cumulative sums of elements of a dtype along an axis."""

    def __init__(self, dtype: np.dtype[np.generic], axis: int) -> None:
        self._dtype, self._axis = dtype, axis
        self._summing = Summing.of(Reducer.SUM, dtype)
        self._routes = Routes(self._route)

    def __call__(self, x: HostArray) -> HostArray | None:
        """The sums; None where NumPy's loop is to add."""
        if self._dtype.kind == "b":
            if not self._has_loops(x):
                return None
            x = zeros_and_ones(x)
        route = self._routes.of(x)
        if route is None:
            return None
        if self._has_loops(x):
            return self._by_route(x, route)
        if route.pieces < 2 or self._dtype.kind != "f":
            return None
        return silence().run(self._by_numpy, x, int(route.plan[-1]))

    def _has_loops(self, x: HostArray) -> bool:
        return background.has((_loading, self._summing), x.nbytes, is_little=x.size < _LITTLE)

    def _route(self, x: HostArray) -> _Route | None:
        nest, axis = LoopNest.of(x, (), forwards=True), self._axis
        outs = [math.prod(nest.shape[place + 1 :]) for place in nest.order]  # strides of the results
        stays = loops_around(x.shape, axis, axis + 1) if x.flags.c_contiguous else loops_beside(x, outs, axis)
        if len(stays) > 2:
            return None
        length, rows = x.shape[axis], x.size // x.shape[axis]
        is_float = self._dtype.kind == "f"
        divides = rows < _FEW and length >= _IN_PIECES
        if divides and not is_float:
            divides = x.size >= _SHARED and thread_count() >= _MANY_THREADS
        in_rows = outs[axis] == 1 or rows == 1
        two = padded(stays)
        # A number of pieces that can be added up side by side.
        piece = -(-length // (4 * max(1, length // (4 * _PIECE)))) if divides else length
        block = min(BLOCK, two[1].length)
        loops = [number for loop in two for number in (loop.length, loop.stride, loop.out)]
        last = piece if in_rows else block
        plan = np.array([nest.start, *loops, length, x.strides[axis] // x.itemsize, outs[axis], last], np.int64)
        if not in_rows:
            return _Route(nest, plan, two[0].length * -(-two[1].length // block), rows, 0, columns)
        if not divides and (length <= _SHORT or not is_float):
            return _Route(nest, plan, rows, rows, 0, one_by_one)
        count = -(-length // piece)
        return _Route(nest, plan, -(-rows * count // 4), rows, count, pieces)

    def _by_numpy(self, x: HostArray, size: int) -> HostArray:
        """The sums of floats in pieces, added up in the order of the loops, while these are not loaded."""
        state = self._summing.state
        results = np.empty(x.shape, state)
        rows, sums = np.moveaxis(x, self._axis, -1), np.moveaxis(results, self._axis, -1)
        before: HostArray = np.array(-0.0, state)
        for first in range(0, x.shape[self._axis], size):
            of_piece = np.s_[..., first : first + size]
            piece = _accumulate(rows[of_piece], -1, state)
            np.add(piece, before, sums[of_piece])
            before = np.add(before, piece[..., -1:])
        return rounded(results, self._dtype) if self._summing.is_half else results

    def _by_route(self, x: HostArray, route: _Route) -> HostArray:
        nest, summing = route.nest, self._summing
        results: HostArray = new_array(nest.shape, summing.result)
        places, plan = (*nest.span.place(x), *place_of(results)), place_of(route.plan)
        nbytes = results.nbytes if x.size >= _SHARED or threads_of_crew(results.nbytes) > 0 else 0
        if route.pieces == 0:
            share_kernel(route.loop(summing), route.tasks, (*places, *plan), nbytes)
            return nest.arranged(results)
        before: HostArray = np.empty((route.rows, route.pieces), summing.state)
        before[:, 0] = -0.0 if summing.state.kind == "f" else 0  # nothing that keeps the sign of zero
        if route.pieces > 1:
            sums: HostArray = np.empty_like(before)
            share_kernel(totals(summing), route.tasks, (*places, *place_of(sums), *plan), nbytes)
            silence().run(_accumulate, sums[:, :-1], 1, None, before[:, 1:])
        share_kernel(route.loop(summing), route.tasks, (*places, *place_of(before), *plan), nbytes)
        return nest.arranged(results)


def _loading(summing: Summing) -> Iterator[object]:
    """The commonest first."""
    yield from (loop(summing) for loop in (one_by_one, columns, pieces, totals))
