"""How the compiled loops reduce arrays that lie in one way: found once, and then gone every time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ...base import HostArray
from ..pool import shared_pool
from .reducers import EXTREMES, UFUNCS, result_of
from .silence import silently
from .strides import Walk, Way

if TYPE_CHECKING:
    from .reduce_kernels import Pair

BLOCK = 1 << 12  # results that are kept at hand: fewer, and memory is read in stretches too short to be foreseen
_SIDE = 1 << 10  # the same where several elements of a row are worked on side by side
PARTS = 16  # at most, where they are for threads
_ROW = 32  # neighbours that are worth a loop of their own
_BESIDE = 128  # neighbours that are worth a loop over them
_CHAIN = 1 << 12  # floats at most that are added one after the other
_SHARED = 1 << 19  # elements that lie apart: below, waking a thread costs more than it saves
_SHARED_BYTES = 1 << 24  # the same of neighbours


@attrs.frozen
class Compiled:
    """The loops of a fold, and what they take and leave."""

    pair: Pair
    ufunc: np.ufunc  # reduces what they leave
    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]
    constant: int = 0


@attrs.frozen
class Leg:
    """A run of one loop."""

    plan: npt.NDArray[np.int64]
    in_rows: bool
    rows: int  # results
    beside: int  # so many neighbours of which every second one stays; 0 where all do
    parts: int  # of each
    tasks: int
    is_shared: bool

    def run(self, loops: Compiled, memory: HostArray) -> HostArray:
        kernel = loops.pair.rows if self.in_rows else loops.pair.columns
        out: HostArray = np.empty(self.parts * self.rows, loops.state)
        in_threads(lambda first, last: kernel(memory, out, self.plan, first, last), self.tasks, self.is_shared)
        if self.beside:
            out = out.reshape(-1, self.beside)[:, ::2].reshape(-1)
        if self.parts == 1:
            return out
        return cast(HostArray, silently(loops.ufunc.reduce, out.reshape(self.parts, -1), 0))


@attrs.frozen
class Side:
    """Elements that go and are worked on side by side, as if they stayed; then NumPy reduces these."""

    shape: tuple[int, int, int]  # of the states: the second goes
    rest: Leg | None  # what is left over


@attrs.frozen
class Route:
    """All that is to be done for arrays of one shape and layout."""

    walk: Walk
    leg: Leg
    side: Side | None

    def states(self, x: HostArray, loops: Compiled) -> HostArray:
        """What the loops make of every row."""
        memory = self.walk.memory(x, loops.seen_as)
        found = self.leg.run(loops, memory)
        if self.side is None:
            return found
        states: HostArray = silently(loops.ufunc.reduce, found.reshape(self.side.shape), 1)
        if self.side.rest is not None:
            more = self.side.rest.run(loops, memory)
            states = silently(loops.ufunc, states.reshape(-1), more)
        return states.reshape(-1)


def route_of(fold: Reducer, dtype: np.dtype[np.generic], walk: Walk) -> Route:
    in_rows = walk.nearest_goes and walk.nearest.length >= _ROW
    count = 0 if walk.nearest_goes else _side_by_side(walk)
    if not count:
        return Route(walk, _leg(fold, dtype, walk, walk.kept, walk.gone, in_rows), None)
    split, near, others = walk.gone[-1], walk.kept[-1], walk.kept[:-1]
    whole = split.length // count
    rest = split.length - whole * count
    kept = (*others, Way(count * near.length, near.stride))
    gone = (*walk.gone[:-1], Way(whole, count * split.stride))
    leg = _leg(fold, dtype, walk, kept, gone, in_rows=False)
    left = None
    if rest:
        tail = attrs.evolve(walk, start=walk.start + whole * count * split.stride)
        left = _leg(fold, dtype, tail, walk.kept, (*walk.gone[:-1], Way(rest, split.stride)), in_rows=False)
    shape = (math.prod(way.length for way in others), count, near.length)
    return Route(walk, leg, Side(shape, left))


def _side_by_side(walk: Walk) -> int:
    """How many elements that go are worked on side by side, where few neighbours stay and the next ones follow them."""
    near, next_ = walk.kept[-1], walk.gone[-1] if walk.gone else Way(1, 0)
    if near.length >= _BESIDE or next_.stride != near.length * near.stride:
        return 0
    count = min(_SIDE // near.length, next_.length // 8)
    return count if count >= 4 else 0


def _leg(
    fold: Reducer, dtype: np.dtype[np.generic], walk: Walk, kept: tuple[Way, ...], gone: tuple[Way, ...], in_rows: bool
) -> Leg:
    stay, go = padded(kept), padded(gone)
    beside = 0
    if not in_rows:
        if go[0].length < go[1].length:
            go = go[::-1]
        stay[1], beside = closed_up(stay[1])
    rows, length = stay[0].length * stay[1].length, go[0].length * go[1].length
    block = min(BLOCK, stay[1].length)
    tasks = rows if in_rows else stay[0].length * -(-stay[1].length // block)
    divided = go[1].length if in_rows else go[0].length
    near = go[1] if in_rows else stay[1]
    is_shared = rows * length >= _SHARED and (near.stride != 1 or rows * length * walk.size >= _SHARED_BYTES)
    parts = max(1, min(PARTS, divided // 16)) if tasks < 8 and rows * length >= _SHARED else 1
    if fold is Reducer.SUM and dtype.kind == "f":
        chain = _CHAIN * (16 if in_rows else 1)  # as many sums go on at a time
        parts = max(parts, min(divided, -(-length // chain)))
    ways = [number for way in (*stay, *go) for number in (way.length, way.stride)]
    plan = np.array([walk.start, *ways, parts, block, compiled_constant(fold, dtype)], np.int64)
    return Leg(plan, in_rows, rows, beside, parts, parts * tasks, is_shared)


def padded(ways: tuple[Way, ...]) -> list[Way]:
    """Two of them."""
    return [Way(1, 0)] * (2 - len(ways)) + list(ways)


def closed_up(near: Way) -> tuple[Way, int]:
    """Neighbours with what lies between them, where that is one element each: worked on too, and left out at the end,
    for reading what lies apart takes longer. And how many these are; 0 where all are wanted."""
    if near.stride != 2:
        return near, 0
    count = 2 * near.length - 1
    return Way(count, 1), count


def in_threads(work: Callable[[int, int], None], tasks: int, is_worth_it: bool) -> None:
    """Calls work(first, last) for parts of 0 to `tasks`."""
    pool = shared_pool() if is_worth_it and tasks > 1 else None
    if pool is None or pool.threads < 2:
        work(0, tasks)
        return
    shares = min(tasks, 4 * pool.threads)
    pool.run(lambda n: work(tasks * n // shares, tasks * (n + 1) // shares), shares)


# -- which loops ----------------------------------------------------------------------------------------------


def compiled(fold: Reducer, dtype: np.dtype[np.generic]) -> Compiled:
    """The loops for a dtype. Loads Numba."""
    from . import reduce_kernels as kernels

    ufunc, size, constant = UFUNCS[fold], dtype.itemsize, compiled_constant(fold, dtype)
    match fold:
        case Reducer.SUM | Reducer.PROD:
            result = result_of(fold, dtype)
            return Compiled(
                kernels.sums(result) if fold is Reducer.SUM else kernels.products(result), ufunc, dtype, result
            )
        case Reducer.MIN | Reducer.MAX if dtype.kind == "f":
            signed = np.dtype(f"i{size}")
            pair = kernels.least_of_floats(size) if fold is Reducer.MIN else kernels.greatest_of_floats(size)
            return Compiled(pair, ufunc, signed, signed, constant)
        case Reducer.MIN | Reducer.MAX:
            return Compiled(kernels.LEAST if fold is Reducer.MIN else kernels.GREATEST, ufunc, dtype, dtype)
        case Reducer.ANY | Reducer.ALL if dtype.kind == "f":
            pair = kernels.any_of_floats(size) if fold is Reducer.ANY else kernels.all_of_floats(size)
            return Compiled(pair, ufunc, np.dtype(f"u{size}"), np.dtype(np.uint8))
        case _:
            pair = kernels.ANY if fold is Reducer.ANY else kernels.ALL
            return Compiled(pair, ufunc, dtype, np.dtype(np.uint8))


def compiled_constant(fold: Reducer, dtype: np.dtype[np.generic]) -> int:
    """Of the extremes of floats what is to become the least of all integers, less that least one, where floats are
    integers in the order of the numbers: -inf where the greatest is looked for, so that NaN is greater than all; else
    the first NaN, so that it is less than all."""
    if fold not in EXTREMES or dtype.kind != "f":
        return 0
    infinity = int(np.array(np.inf, dtype).view(f"i{dtype.itemsize}")[()])
    least = -(1 << (8 * dtype.itemsize - 1))
    return ~infinity - least if fold is Reducer.MAX else infinity + 1 + least
