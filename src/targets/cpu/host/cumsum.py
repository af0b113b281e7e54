"""Cumulative sums of host arrays: a closure for each dtype and axis, made once and called for every array.

Short arrays go to NumPy's loop, long ones to compiled loops, which keep the order of NumPy's additions but for few long
rows of floats: these are added up in pieces of one length, so that the result depends on the shape alone.

A loop's plan is an array of integers: start; two loops over the other axes (length, stride, stride of the results
each); the same of the axis to sum along; the size of a task, in neighbours or in elements of a row. `columns` adds a
row of elements to the row of sums before it. `pieces` adds up rows in pieces, four side by side, as each sum has to
wait for the one before it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from ....arrays.recycled import new_array
from ....operations.reduce import Reducer
from ....types.dtypes import name_of
from ...base import HostArray
from ...counts import count_nonzero
from ..background import background
from ..crew import share_kernel, threads_of_crew
from ..loops import Kernel, compiled, inside, numbers_of_plan, place_of, text_of
from .autotuned import Choices, Ways
from .reducers import Summing, rounded, silence, takes
from .regrouped import LEAST_IN_LINES, accumulated, has_short_lines
from .strides import LoopNest, Routes, loops_around, loops_beside, padded, zeros_and_ones

HostScan: TypeAlias = Callable[[HostArray], HostArray]

_LONG = 1 << 13  # elements: below, NumPy is done before anything else has begun
_IN_PIECES = 1 << 14  # elements of a row that is added up in pieces
_FEW = 8  # rows: more keep the order of NumPy's additions
_ALONG, _BESIDE = 1 << 8, 5  # integers along an axis, and neighbours beside it, of which NumPy adds so few sooner
_PIECE = 1 << 12  # at least
_SHARED = 1 << 19  # elements: below, waking a thread costs more than it saves
_BLOCK = 1 << 11  # sums at most that a task keeps at hand where neighbours stay
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
    most = _SHARED if is_float else sys.maxsize

    def add_up(x: HostArray) -> HostArray:
        if axis is None:  # packed, for NumPy adds what lies apart slowly
            x = x.ravel()
        elif x.shape[along] == 1:
            return x.astype(result)
        elif in_lines and LEAST_IN_LINES <= x.size < most and has_short_lines(x, along):
            return silence().run(accumulated, x, along, result)
        found = long(x) if long is not None and x.size >= _LONG else None
        if found is not None:
            return found
        if not is_float:
            return _accumulate(x, along)
        context = silence()
        sums = context.run(_accumulate, x, along, made)
        return sums if made is None else context.run(rounded, sums, dtype.newbyteorder("="))

    return add_up


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
    pieces: int  # of each row; 0 where neighbours stay
    ways: Ways | None = None  # to the sums of integers, which are the same in any order


class LongScan:
    """Cumulative sums of elements of a dtype along an axis."""

    def __init__(self, dtype: np.dtype[np.generic], axis: int) -> None:
        self._dtype, self._axis = dtype, axis
        self._summing = Summing.of(Reducer.SUM, dtype)
        self._routes, self._choices = Routes(self._route), Choices()

    def __call__(self, x: HostArray) -> HostArray | None:
        """The sums; None where NumPy's loop is to add."""
        if self._dtype.kind == "b":
            if not background.has((_loading, self._summing), x.nbytes):
                return None
            x = zeros_and_ones(x)
        route = self._routes.of(x)
        if route is None:
            return None
        if background.has((_loading, self._summing), x.nbytes):
            return self._by_route(x, route) if route.ways is None else route.ways(x)
        if route.pieces < 2 or self._dtype.kind != "f":
            return None
        return silence().run(self._by_numpy, x, int(route.plan[-1]))

    def _route(self, x: HostArray) -> _Route | None:
        nest, axis = LoopNest.of(x, (), forwards=True), self._axis
        outs = [math.prod(nest.shape[place + 1 :]) for place in nest.order]  # strides of the results
        stays = loops_around(x.shape, axis, axis + 1) if x.flags.c_contiguous else loops_beside(x, outs, axis)
        if len(stays) > 2:
            return None
        length, rows = x.shape[axis], x.size // x.shape[axis]
        divides = rows < _FEW and length >= _IN_PIECES
        in_rows = outs[axis] == 1 or rows == 1
        two = padded(stays)
        # NumPy converts narrower ones on the way, in five times as long if its buffers lie badly.
        suits_numpy = x.itemsize == 8 and (x.strides[axis] != 8 if in_rows else two[1].length <= _BESIDE)
        if suits_numpy and self._dtype.kind in "iu" and length >= _ALONG and (rows < _FEW or x.size < _SHARED):
            return None
        # A number of pieces that can be added up side by side.
        piece = -(-length // (4 * max(1, length // (4 * _PIECE)))) if divides else length
        block = min(_BLOCK, two[1].length)
        loops = [number for loop in two for number in (loop.length, loop.stride, loop.out)]
        last = piece if in_rows else block
        plan = np.array([nest.start, *loops, length, x.strides[axis] // x.itemsize, outs[axis], last], np.int64)
        pieces = -(-length // piece) if in_rows else 0
        tasks = -(-rows * pieces // 4) if in_rows else two[0].length * -(-two[1].length // block)
        route = _Route(nest, plan, tasks, rows, pieces)
        if self._dtype.kind in "fb" or 0 in x.strides:  # of which NumPy's results lie in another way
            return route
        own, numpys = partial(self._by_route, route=route), partial(_accumulate, axis=axis)
        # Which elements are neighbours, as a packed array's nest does not tell along which axis it is added up.
        alike = nest.alike, in_rows, length.bit_length(), two[1].length.bit_length()
        return attrs.evolve(route, ways=self._choices.among(alike, loops=own, numpy=numpys))

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
            share_kernel(columns(summing), route.tasks, (*places, *plan), nbytes)
            return nest.arranged(results)
        before: HostArray = np.empty((route.rows, route.pieces), summing.state)
        before[:, 0] = -0.0 if summing.state.kind == "f" else 0  # nothing that keeps the sign of zero
        if route.pieces > 1:
            sums: HostArray = np.empty_like(before)
            share_kernel(pieces(summing, False), route.tasks, (*places, *place_of(sums), *plan), nbytes)
            silence().run(_accumulate, sums[:, :-1], 1, None, before[:, 1:])
        share_kernel(pieces(summing, True), route.tasks, (*places, *place_of(before), *plan), nbytes)
        return nest.arranged(results)


def _loading(summing: Summing) -> Iterator[object]:
    """The commonest first."""
    yield pieces(summing, True)
    yield columns(summing)
    yield pieces(summing, False)


# -- the loops ---------------------------------------------------------------------------------------------

_PLAN = ("start", "n0", "s0", "o0", "n1", "s1", "o1", "length", "step", "out_step", "size")
_COUNTS = frozenset(["n0", "n1", "length", "size"])  # unsigned, so that they are divided as such

# What a row of sums is made of is kept at hand: LLVM would ask for all rows at once whether results lie apart from it.
_COLUMNS = """
    sums = stack({state}, {block})
    blocks = (n1 + size - 1) // size
    for at in range(first, last):
        outer = u8(at)
        begin = u8(0)
        if blocks > 1:
            begin = outer % blocks * size
            outer = outer // blocks
        count = i8(min(size, n1 - begin))
        source = start + i8(outer) * s0 + i8(begin) * s1
        place = i8(outer) * o0 + i8(begin) * o1
        for j in range(count):
            sums[j] = {nothing}
        for r in range(i8(length)):
            base = source + r * step
            to = place + r * out_step
            if (o1 == 1) & (s1 == 1):
                for j in range(count):
                    element = flat[base + j]
                    sum = {state}(sums[j] + {lifted})
                    sums[j] = sum
                    out[to + j] = {lowered}
            else:
                for j in range(count):
                    element = flat[base + j * s1]
                    sum = {state}(sums[j] + {lifted})
                    sums[j] = sum
                    out[to + j * o1] = {lowered}
"""


@cache
def columns(summing: Summing) -> Kernel:
    """For neighbours that stay; a task is a block of them."""
    lifted, lowered = summing.lifted("element"), summing.lowered("sum")
    body = _COLUMNS.format(
        state=name_of(summing.state), nothing=summing.nothing, block=_BLOCK, lifted=lifted, lowered=lowered
    )
    return _kernel("cumsum_columns", f"{_arrays(summing)}, plan: i8[]", body)


@cache
def pieces(summing: Summing, writes: bool) -> Kernel:
    """For neighbours that go; a task is four pieces. It writes the sums of pieces, with what came before each; or only
    adds them up, into what is to come before the next."""
    state = name_of(summing.state)
    least = "least = min(min(count_0, count_1), min(count_2, count_3))"

    def element(n: int) -> Iterator[str]:
        yield f"element = flat[source_{n} + i * step]"
        yield f"sum_{n} = {state}(sum_{n} + {summing.lifted('element')})"
        if writes:
            yield f"sum = {state}(before_{n} + sum_{n})"
            yield f"out[place_{n} + i * out_step] = {summing.lowered('sum')}"

    def of_pieces(pieces: dict[int, str], count: str) -> Iterator[str]:
        """Of these numbers, side by side as long as each goes on."""
        for n, number in pieces.items():
            yield from (f"before_{n} = sums[{number}]", f"sum_{n} = {summing.nothing}")
        yield from inside(f"for i in range({count}):", [line for n in pieces for line in element(n)])
        for n in pieces if len(pieces) > 1 else ():
            yield from inside(f"for i in range({count}, count_{n}):", element(n))
        if not writes:
            yield from (f"sums[{number}] = sum_{n}" for n, number in pieces.items())

    places = (line for n in range(4) for line in _place(n, f"min(four + {n}, len(sums) - 1)"))
    alone = inside(
        "for number in range(four, min(four + 4, len(sums))):",
        [*_place(1, "number"), *of_pieces({1: "number"}, "count_1")],
    )
    four = inside("if four + 3 < len(sums):", [least, *of_pieces({n: f"four + {n}" for n in range(4)}, "least")])
    tasks = inside("for at in range(first, last):", ["four = 4 * at", *places, *four, *inside("else:", alone)])
    body = text_of(["pieces = (length + size - 1) // size", *tasks])
    arrays = f"{_arrays(summing)}, sums: {state}[], plan: i8[]"
    return _kernel("cumsum_pieces" if writes else "cumsum_totals", arrays, f"\n{body}")


def _arrays(summing: Summing) -> str:
    left_as = summing.seen_as if summing.is_half else summing.result
    return f"flat: {name_of(summing.seen_as)}[], out: {name_of(left_as)}[]"


def _kernel(name: str, arrays: str, body: str) -> Kernel:
    return compiled(name, f"first: i8, last: i8, {arrays}", numbers_of_plan(_PLAN, _COUNTS) + body)


def _place(n: int, number: str) -> Iterator[str]:
    """Where a piece begins, where its sums do, and how long it is."""
    yield f"number_{n} = u8({number})"
    yield f"row = number_{n} // pieces"
    yield f"begin = number_{n} % pieces * size"
    yield f"source_{n} = start + i8(row // n1) * s0 + i8(row % n1) * s1 + i8(begin) * step"
    yield f"place_{n} = i8(row // n1) * o0 + i8(row % n1) * o1 + i8(begin) * out_step"
    yield f"count_{n} = i8(min(size, length - begin))"
