"""Plans of reductions: how the compiled loops traverse arrays of one shape and layout, made once."""

from __future__ import annotations

import math
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
from .reducers import TRUTHS, silently
from .strides import Walk, Way, padded

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
_CREW_BYTES = 1 << 21  # what several cores' caches give sooner to threads that wait in compiled code


@attrs.frozen(eq=False)
class Leg:
    """A run of one loop, which leaves `parts` of each of `rows` results: of `outer` stretches, each of `count` elements
    side by side, as if they stayed, of some neighbours."""

    plan: npt.NDArray[np.int64]
    plan_place: tuple[int, int]
    tasks: int
    shared_bytes: int  # 0 where threads are not worth it
    rows: int
    parts: int
    outer: int
    count: int
    seen_as: tuple[tuple[int, ...], tuple[int, ...]] | None  # what is wanted of more results: its shape and strides
    ends_early: bool  # whether the loop leaves the rest of what is settled

    def run(self, kernel: Kernel, memory: tuple[int, int], *outs: HostArray) -> None:
        places = [number for out in outs for number in place_of(out)]
        share_kernel(kernel, self.tasks, (*memory, *places, *self.plan_place), self.shared_bytes)

    def wanted(self, out: HostArray) -> HostArray:
        """All that a loop leaves, or some of it."""
        if self.seen_as is None:
            return out
        shape, strides = self.seen_as
        return np.ndarray(shape, out.dtype, out, 0, [stride * out.itemsize for stride in strides]).reshape(-1)

    def states(
        self, kernel: Kernel, state: np.dtype[np.generic], ufunc: np.ufunc, memory: tuple[int, int]
    ) -> HostArray:
        """Of every row one: the loop's results, and then what is left of these to reduce by the ufunc."""
        out: HostArray = np.empty(self.parts * self.rows, state)
        if self.ends_early:
            out.fill(ufunc.identity)  # nothing is settled
        self.run(kernel, memory, out)
        found = self.wanted(out)
        if self.parts > 1:
            found = cast(HostArray, silently(ufunc.reduce, found.reshape(self.parts, -1), 0))
        if self.count > 1:
            found = cast(HostArray, silently(ufunc.reduce, found.reshape(self.outer, self.count, -1), 1)).reshape(-1)
        return found


@attrs.frozen(eq=False)
class Route:
    """All that is to be done for arrays of one shape and layout: legs of one loop, each for some of the elements."""

    walk: Walk
    in_rows: bool
    legs: tuple[Leg, ...]


def route_of(fold: Reducer, dtype: np.dtype[np.generic], walk: Walk) -> Route:
    in_rows = walk.nearest_goes and walk.nearest.length >= _ROW
    if in_rows and len(walk.gone) == 2 and not walk.kept[1:] and walk.rows < _FEW_ROWS:  # each line for itself
        far, near = walk.gone
        leg = leg_of(fold, dtype, walk.start, (*walk.kept, far), (near,), in_rows, count=far.length)
        return Route(walk, in_rows, (leg,))
    count = 0 if walk.nearest_goes else _side_by_side(walk)
    if not count:
        return Route(walk, in_rows, (leg_of(fold, dtype, walk.start, walk.kept, walk.gone, in_rows),))
    split, near, others = walk.gone[-1], walk.kept[-1], walk.kept[:-1]
    # Gaps are worked on too, but for the last one: behind it the memory may end.
    width = split.stride // near.stride
    last = 1 if width > near.length else 0
    whole, rest = divmod(split.length - last, count)
    kept = (*others, Way(count * width, near.stride))
    gone = (*walk.gone[:-1], Way(whole, count * split.stride))
    lines = Way(count * math.prod(way.length for way in others), width), Way(near.length, 1)
    legs = [leg_of(fold, dtype, walk.start, kept, gone, count=count, wanted=lines if last else None)]
    if rest + last:
        gone = (*walk.gone[:-1], Way(rest + last, split.stride))
        legs.append(leg_of(fold, dtype, walk.start + whole * count * split.stride, walk.kept, gone))
    return Route(walk, in_rows, tuple(legs))


def leaps(walk: Walk) -> bool:
    """Whether all goes, in lines that are short or of elements that lie apart: NumPy's loops begin sooner."""
    if walk.kept or len(walk.gone) != 2:
        return False
    near = walk.gone[-1]
    return near.length < _SHORT or (near.stride > 2 and (near.length < _APART or walk.length < _SHARED))


def _side_by_side(walk: Walk) -> int:
    """How many elements that go are worked on side by side, where few neighbours stay and the next ones follow them,
    or do so behind a gap that is no longer."""
    near, next_ = walk.kept[-1], walk.gone[-1] if walk.gone else Way(1, 0)
    least, most = near.length * near.stride, near.length * (2 if near.stride == 1 else near.stride)
    if near.length >= _BESIDE or not least <= next_.stride <= most:
        return 0
    count = min(_SIDE // near.length, next_.length // 8)
    return count if count >= 4 else 0


def leg_of(
    fold: Reducer, dtype: np.dtype[np.generic], start: int, kept: tuple[Way, ...], gone: tuple[Way, ...],
    in_rows: bool = False, count: int = 1, wanted: tuple[Way, Way] | None = None,
) -> Leg:  # fmt: skip
    """`wanted` are elements of lines among the results, if not all of these are."""
    stay, go = padded(kept), padded(gone)
    if not in_rows and go[0].length < go[1].length:
        go = go[::-1]
    if not in_rows and stay[1].stride == 2:  # what is between is worked on too: reading what lies apart takes longer
        near = Way(2 * stay[1].length - 1, 1)
        wanted, stay[1] = (Way(stay[0].length, near.length), stay[1]), near
    if count == 1 and not in_rows and _are_near_lines(*stay):  # the same of short gaps between lines
        wanted = stay[0], (wanted or stay)[1]
        stay = [Way(1, 0), Way((stay[0].length - 1) * stay[0].stride + stay[1].length, 1)]
    rows, length = stay[0].length * stay[1].length, go[0].length * go[1].length
    block, apart = min(BLOCK, stay[1].length), stay[1].stride * dtype.itemsize
    if go[1].stride == 1 < stay[1].stride and block * apart > _CACHE:
        block = max(_FEW, _NEAR // apart)
    tasks = rows if in_rows else stay[0].length * -(-stay[1].length // block)
    divided, near = (go[1].length, go[1]) if in_rows else (go[0].length, stay[1])
    lies_apart = near.stride != 1 or fold.finds_index  # or is read more slowly than memory gives it
    nbytes = rows * length * dtype.itemsize
    is_shared = rows * length >= _SHARED and (lies_apart or nbytes >= _SHARED_BYTES)
    is_shared |= nbytes >= _CREW_BYTES and threads_of_crew(nbytes) > 0
    ends_early = fold in TRUTHS and in_rows
    parts = max(1, min(PARTS, divided // 16)) if tasks < 8 and rows * length >= _SHARED else 1
    if ends_early and tasks < 8:
        parts = max(1, divided // _SETTLED)
    if fold is Reducer.SUM and dtype.kind == "f":
        chain = _CHAIN * (16 if in_rows else 1)  # as many sums go on at a time
        parts = max(parts, min(divided, -(-length // chain)))
    ways = [number for way in (*stay, *go) for number in (way.length, way.stride)]
    plan = np.array([start, *ways, parts, block, constant_of(fold, dtype)], np.int64)
    shared_bytes = nbytes if is_shared else 0
    outer = stay[0].length
    seen_as = None
    if wanted is not None:
        seen_as = (parts, *(way.length for way in wanted)), (rows, *(way.stride for way in wanted))
    return Leg(plan, place_of(plan), parts * tasks, shared_bytes, rows, parts, outer, count, seen_as, ends_early)


def _are_near_lines(outer: Way, near: Way) -> bool:
    """Whether short lines stay, with gaps between them that are no longer."""
    return near.stride == 1 < outer.length and near.length < _BESIDE and near.length < outer.stride <= 2 * near.length


def constant_of(fold: Reducer, dtype: np.dtype[np.generic]) -> int:
    """Of the extremes of floats what is taken from integers in their order: as of words to sort by, so that NaN is
    greater than all; or as much is added, so that it is less than all. Of places, what all NaNs are to be. Others do
    not look at it."""
    if dtype.kind != "f":
        return 0
    if fold.finds_index:
        limits = np.iinfo(f"i{dtype.itemsize}")
        return int(limits.min if fold is Reducer.ARGMIN else limits.max)
    less = int(constants(dtype, SortOrder.ASCENDING)[1])
    return less if fold is Reducer.MAX else -less
