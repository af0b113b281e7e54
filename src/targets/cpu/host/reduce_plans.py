"""Plans of reductions: how the compiled loops traverse arrays of one shape and layout, made once."""

from __future__ import annotations

import math
from functools import cache
from typing import cast

import attrs
import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import share_kernel, threads_of_crew
from ..loops import Kernel, place_of
from .key_words import constants
from .reducers import TRUTHS, silence
from .strides import Loop, LoopNest, padded

BLOCK = 1 << 12  # results that are kept at hand: fewer, and memory is read in stretches too short to be foreseen
# Where the nearest elements go: bytes between the first results at hand and the last ones that a cache holds until the
# next elements are looked at, and what is taken at a time of more.
_CACHE, _NEAR, _FEW = 1 << 18, 1 << 12, 1 << 6
_SIDE = 1 << 10  # the same where several elements of a row are worked on side by side
PARTS = 16  # at most, where they are for threads
_ROW = 9  # neighbours that are worth a loop of their own
_FEW_ROWS = 32  # results: where fewer are made of many lines, each line is reduced for itself first
_SHORT, _APART = 12, 32  # neighbours in lines, and elements that lie apart, of which NumPy's loops begin sooner
_BESIDE = 128  # neighbours that are worth a loop over them
_SETTLED = 1 << 15  # elements of a part where the others are left out once one is settled
_CHAIN = 1 << 12  # floats at most that are added one after the other
_SHARED = 1 << 19  # elements that lie apart: below, waking a thread costs more than it saves
_SHARED_BYTES = 1 << 24  # the same of neighbours
# The same of threads that wait in compiled code, to whom an element that lies apart is worth so many bytes at least.
_CREW_SHARED, _CREW_BYTES, _APART_BYTES = 1 << 17, 1 << 20, 8


@attrs.frozen(eq=False)
class LoopCall:
    """A call of a compiled loop, which leaves `parts` partial results for each of `rows` rows. Where few neighbours are
    kept, `count` elements that are to be reduced are treated as kept neighbours, and their results reduced by NumPy
    afterwards, `outer` times."""

    plan: npt.NDArray[np.int64]
    plan_place: tuple[int, int]
    tasks: int
    shared_bytes: int  # 0 if threads would cost more than they save
    rows: int
    parts: int
    outer: int
    count: int
    seen_as: tuple[tuple[int, ...], tuple[int, ...]] | None  # the results that are wanted, by shape and strides; or all
    ends_early: bool  # whether the loop skips the rest of a row whose result is settled (any, all)

    def run(self, kernel: Kernel, memory: tuple[int, int], *outs: HostArray) -> None:
        places = [number for out in outs for number in place_of(out)]
        share_kernel(kernel, self.tasks, (*memory, *places, *self.plan_place), self.shared_bytes)

    def wanted(self, out: HostArray) -> HostArray:
        """The results that are wanted: gaps between columns have some, too."""
        if self.seen_as is None:
            return out
        shape, strides = self.seen_as
        return np.ndarray(shape, out.dtype, out, 0, [stride * out.itemsize for stride in strides]).reshape(-1)

    def states(
        self, kernel: Kernel, state: np.dtype[np.generic], ufunc: np.ufunc, memory: tuple[int, int]
    ) -> HostArray:
        """One state for each row: the loop's partial results, reduced by the ufunc."""
        out: HostArray = np.empty(self.parts * self.rows, state)
        if self.ends_early:
            out.fill(ufunc.identity)  # nothing is settled
        self.run(kernel, memory, out)
        found = self.wanted(out)
        if self.parts > 1:
            found = cast(HostArray, silence().run(ufunc.reduce, found.reshape(self.parts, -1), 0))
        if self.count > 1:
            several = found.reshape(self.outer, self.count, -1)
            found = cast(HostArray, silence().run(ufunc.reduce, several, 1)).reshape(-1)
        return found


@attrs.frozen(eq=False)
class Route:
    """The plan of a reduction for arrays of one shape and strides: calls of one loop, each for some of the elements."""

    nest: LoopNest
    in_rows: bool
    calls: tuple[LoopCall, ...]

    @property
    def is_in_order(self) -> bool:
        """Whether each result is made of one element after the other, as NumPy makes it where neighbours stay."""
        nest, (first, *others) = self.nest, self.calls
        return not (nest.nearest_is_reduced or nest.reduced[1:] or others or first.parts > 1 or first.count > 1)


def route_of(fold: Reducer, dtype: np.dtype[np.generic], nest: LoopNest) -> Route:
    in_rows = nest.nearest_is_reduced and nest.nearest.length >= _ROW
    if in_rows and len(nest.reduced) == 2 and not nest.kept[1:] and nest.rows < _FEW_ROWS:  # each line for itself
        far, near = nest.reduced
        call = loop_call_of(fold, dtype, nest.start, (*nest.kept, far), (near,), in_rows, count=far.length)
        return Route(nest, in_rows, (call,))
    count = 0 if nest.nearest_is_reduced else _side_by_side(nest)
    if not count:
        return Route(nest, in_rows, (loop_call_of(fold, dtype, nest.start, nest.kept, nest.reduced, in_rows),))
    split, near, others = nest.reduced[-1], nest.kept[-1], nest.kept[:-1]
    # Gaps are worked on too, but for the last one: behind it the memory may end.
    width = split.stride // near.stride
    last = 1 if width > near.length else 0
    whole, rest = divmod(split.length - last, count)
    kept = (*others, Loop(count * width, near.stride))
    reduced = (*nest.reduced[:-1], Loop(whole, count * split.stride))
    lines = Loop(count * math.prod(loop.length for loop in others), width), Loop(near.length, 1)
    calls = [loop_call_of(fold, dtype, nest.start, kept, reduced, count=count, wanted=lines if last else None)]
    if rest + last:
        reduced = (*nest.reduced[:-1], Loop(rest + last, split.stride))
        calls.append(loop_call_of(fold, dtype, nest.start + whole * count * split.stride, nest.kept, reduced))
    return Route(nest, in_rows, tuple(calls))


def leaps(nest: LoopNest) -> bool:
    """Whether all elements are reduced to one, in short lines or lines with gaps: NumPy's loops start faster."""
    if nest.kept or len(nest.reduced) != 2:
        return False
    near = nest.reduced[-1]
    return near.length < _SHORT or (near.stride > 2 and (near.length < _APART or nest.length < _SHARED))


def _side_by_side(nest: LoopNest) -> int:
    """How many elements of the reduced axis to treat as kept neighbours (see LoopCall), if few neighbours are kept and
    the next ones follow them in memory, or after a gap that is no longer."""
    near, next_ = nest.kept[-1], nest.reduced[-1] if nest.reduced else Loop(1, 0)
    least, most = near.length * near.stride, near.length * (2 if near.stride == 1 else near.stride)
    if near.length >= _BESIDE or not least <= next_.stride <= most:
        return 0
    count = min(_SIDE // near.length, next_.length // 8)
    return count if count >= 4 else 0


def loop_call_of(
    fold: Reducer, dtype: np.dtype[np.generic], start: int, kept: tuple[Loop, ...], reduced: tuple[Loop, ...],
    in_rows: bool = False, count: int = 1, wanted: tuple[Loop, Loop] | None = None,
) -> LoopCall:  # fmt: skip
    """`wanted` are the results to use (an outer loop and an inner one), if not all."""
    stay, go = padded(kept), padded(reduced)
    if not in_rows and go[0].length < go[1].length:
        go = go[::-1]
    if not in_rows and stay[1].stride == 2:  # what is between is worked on too: reading what lies apart takes longer
        near = Loop(2 * stay[1].length - 1, 1)
        wanted, stay[1] = (Loop(stay[0].length, near.length), stay[1]), near
    if count == 1 and not in_rows and _are_near_lines(*stay):  # the same of short gaps between lines
        wanted = stay[0], (wanted or stay)[1]
        stay = [Loop(1, 0), Loop((stay[0].length - 1) * stay[0].stride + stay[1].length, 1)]
    rows, length = stay[0].length * stay[1].length, go[0].length * go[1].length
    block, apart = min(BLOCK, stay[1].length), stay[1].stride * dtype.itemsize
    if go[1].stride == 1 < stay[1].stride and block * apart > _CACHE:
        block = max(_FEW, _NEAR // apart)
    tasks = rows if in_rows else stay[0].length * -(-stay[1].length // block)
    divided, near = (go[1].length, go[1]) if in_rows else (go[0].length, stay[1])
    size, lies_apart = rows * length, near.stride != 1
    nbytes = size * (max(_APART_BYTES, dtype.itemsize) if lies_apart else dtype.itemsize)
    # what lies apart or is looked for is read more slowly than memory gives it
    is_shared = size >= _SHARED and (lies_apart or fold.finds_index or nbytes >= _SHARED_BYTES)
    suits_crew = size >= _CREW_SHARED if lies_apart else nbytes >= _CREW_BYTES
    is_shared |= suits_crew and threads_of_crew(nbytes) > 0
    ends_early = fold in TRUTHS and in_rows
    divides = tasks < 8 and size >= (_CREW_SHARED if lies_apart or fold.finds_index else _SHARED)
    parts = max(1, min(PARTS, divided // 16)) if divides else 1
    if ends_early and tasks < 8:
        parts = max(1, divided // _SETTLED)
    if fold is Reducer.SUM and dtype.kind == "f":
        chain = _CHAIN * (16 if in_rows else 1)  # as many sums go on at a time
        parts = max(parts, min(divided, -(-length // chain)))
    loops = [number for loop in (*stay, *go) for number in (loop.length, loop.stride)]
    plan = np.array([start, *loops, parts, block, constant_of(fold, dtype)], np.int64)
    shared_bytes = nbytes if is_shared else 0
    outer = stay[0].length
    seen_as = None
    if wanted is not None:
        seen_as = (parts, *(loop.length for loop in wanted)), (rows, *(loop.stride for loop in wanted))
    return LoopCall(plan, place_of(plan), parts * tasks, shared_bytes, rows, parts, outer, count, seen_as, ends_early)


def _are_near_lines(outer: Loop, near: Loop) -> bool:
    """Whether the kept axes are short lines, with gaps between them that are no longer than the lines."""
    return near.stride == 1 < outer.length and near.length < _BESIDE and near.length < outer.stride <= 2 * near.length


@cache
def constant_of(fold: Reducer, dtype: np.dtype[np.generic]) -> int:
    """A constant for the compiled loop. For extremes of floats, which are compared as integers in their order: what to
    subtract so that NaN is greater than all numbers, or to add so that it is less. For argmin and argmax of floats: the
    integer that stands for NaN. Other loops ignore it."""
    if dtype.kind != "f":
        return 0
    if fold.finds_index:
        limits = np.iinfo(f"i{dtype.itemsize}")
        return int(limits.min if fold is Reducer.ARGMIN else limits.max)
    less = int(constants(dtype, SortOrder.ASCENDING)[1])
    return less if fold is Reducer.MAX else -less
