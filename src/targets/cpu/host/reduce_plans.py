"""Plans of reductions: how the compiled loops traverse arrays of one shape and layout, made once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ...base import HostArray
from ..alias import address_of
from ..crew import share_kernel, threads_of_crew
from ..pool import shared_pool
from .reduce_loops import ReduceLoop
from .reducers import EXTREMES, PLACES
from .silence import silently
from .strides import Walk, Way, padded

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

BLOCK = 1 << 12  # results that are kept at hand: fewer, and memory is read in stretches too short to be foreseen
_SIDE = 1 << 10  # the same where several elements of a row are worked on side by side
PARTS = 16  # at most, where they are for threads
_ROW = 32  # neighbours that are worth a loop of their own
_BESIDE = 128  # neighbours that are worth a loop over them
_CHAIN = 1 << 12  # floats at most that are added one after the other
_SHARED = 1 << 19  # elements that lie apart: below, waking a thread costs more than it saves
_SHARED_BYTES = 1 << 24  # the same of neighbours
CREW_BYTES = 1 << 23  # what several cores' caches give sooner to threads that wait in compiled code


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
    size: int  # bytes of an element
    _plan_at: int = attrs.field(
        default=attrs.Factory(lambda leg: address_of(cast("Leg", leg).plan), takes_self=True), init=False, eq=False
    )

    def run(self, loop: ReduceLoop, ufunc: np.ufunc, memory: tuple[int, int]) -> HostArray:
        kernel = loop.kernel
        out: HostArray = np.empty(self.parts * self.rows, loop.state)
        places = (*memory, address_of(out), out.size, self._plan_at, self.plan.size)
        run_tasks(kernel, self.tasks, places, memory[1] * self.size if self.is_shared else 0)
        if self.beside:
            out = out.reshape(-1, self.beside)[:, ::2].reshape(-1)
        if self.parts == 1:
            return out
        return cast(HostArray, silently(ufunc.reduce, out.reshape(self.parts, -1), 0))


@attrs.frozen
class Side:
    """Elements that go and are worked on side by side, as if they stayed; then NumPy reduces these."""

    shape: tuple[int, int, int]  # of the states: the second goes
    rest: Leg | None  # what is left over


@attrs.frozen
class Route:
    """All that is to be done for arrays of one shape and layout."""

    walk: Walk
    leg: Leg  # of the same loop as all that comes of a side
    side: Side | None

    def states(self, x: HostArray, loop: ReduceLoop, ufunc: np.ufunc) -> HostArray:
        """Reduces every row by the loop, and then what it leaves by the ufunc."""
        memory = self.walk.span.place(x)
        found = self.leg.run(loop, ufunc, memory)
        if self.side is None:
            return found
        states: HostArray = silently(ufunc.reduce, found.reshape(self.side.shape), 1)
        if self.side.rest is not None:
            more = self.side.rest.run(loop, ufunc, memory)
            states = silently(ufunc, states.reshape(-1), more)
        return states.reshape(-1)


def route_of(fold: Reducer, dtype: np.dtype[np.generic], walk: Walk) -> Route:
    in_rows = walk.nearest_goes and walk.nearest.length >= _ROW
    count = 0 if walk.nearest_goes else _side_by_side(walk)
    if not count:
        return Route(walk, leg_of(fold, dtype, walk, walk.kept, walk.gone, in_rows), None)
    split, near, others = walk.gone[-1], walk.kept[-1], walk.kept[:-1]
    whole = split.length // count
    rest = split.length - whole * count
    kept = (*others, Way(count * near.length, near.stride))
    gone = (*walk.gone[:-1], Way(whole, count * split.stride))
    leg = leg_of(fold, dtype, walk, kept, gone, in_rows=False)
    left = None
    if rest:
        tail = attrs.evolve(walk, start=walk.start + whole * count * split.stride)
        left = leg_of(fold, dtype, tail, walk.kept, (*walk.gone[:-1], Way(rest, split.stride)), in_rows=False)
    shape = (math.prod(way.length for way in others), count, near.length)
    return Route(walk, leg, Side(shape, left))


def _side_by_side(walk: Walk) -> int:
    """How many elements that go are worked on side by side, where few neighbours stay and the next ones follow them."""
    near, next_ = walk.kept[-1], walk.gone[-1] if walk.gone else Way(1, 0)
    if near.length >= _BESIDE or next_.stride != near.length * near.stride:
        return 0
    count = min(_SIDE // near.length, next_.length // 8)
    return count if count >= 4 else 0


def leg_of(
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
    lies_apart = near.stride != 1 or fold in PLACES  # or is read more slowly than memory gives it
    nbytes = rows * length * walk.span.size
    is_shared = rows * length >= _SHARED and (lies_apart or nbytes >= _SHARED_BYTES)
    is_shared |= nbytes >= CREW_BYTES and threads_of_crew(nbytes) > 0
    parts = max(1, min(PARTS, divided // 16)) if tasks < 8 and rows * length >= _SHARED else 1
    if fold is Reducer.SUM and dtype.kind == "f":
        chain = _CHAIN * (16 if in_rows else 1)  # as many sums go on at a time
        parts = max(parts, min(divided, -(-length // chain)))
    ways = [number for way in (*stay, *go) for number in (way.length, way.stride)]
    plan = np.array([walk.start, *ways, parts, block, constant_of(fold, dtype)], np.int64)
    return Leg(plan, in_rows, rows, beside, parts, parts * tasks, is_shared, walk.span.size)


def closed_up(near: Way) -> tuple[Way, int]:
    """Neighbours with what lies between them, where that is one element each: worked on too, and left out at the end,
    for reading what lies apart takes longer. And how many these are; 0 where all are wanted."""
    if near.stride != 2:
        return near, 0
    count = 2 * near.length - 1
    return Way(count, 1), count


def run_tasks(kernel: Kernel, tasks: int, numbers: Sequence[int], shared_bytes: int) -> None:
    """Calls kernel(first, last, *numbers) for all of so many tasks, by threads where so many bytes are worth them: 0
    are not."""
    pool = shared_pool() if shared_bytes and tasks > 1 else None
    if pool is None or pool.threads < 2:
        kernel(0, tasks, *numbers)
    else:
        share_kernel(kernel, tasks, numbers, pool, threads_of_crew(shared_bytes))


def constant_of(fold: Reducer, dtype: np.dtype[np.generic]) -> int:
    """Of the extremes of floats what is to become the least of all integers, less that least one, where floats are
    integers in the order of the numbers: -inf where the greatest is looked for, so that NaN is greater than all; else
    the first NaN, so that it is less than all. Of places, what NaNs of float16 are to be, as signed integers."""
    if fold in PLACES:
        return -(1 << 15) if fold is Reducer.ARGMIN else (1 << 15) - 1
    if fold not in EXTREMES or dtype.kind != "f":
        return 0
    infinity = int(np.array(np.inf, dtype).view(f"i{dtype.itemsize}")[()])
    least = -(1 << (8 * dtype.itemsize - 1))
    return ~infinity - least if fold is Reducer.MAX else infinity + 1 + least
