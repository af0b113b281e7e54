"""Copies between arrays whose neighbours lie along different axes, by a compiled loop.

It takes tiles: lines of the source are read one after the other into memory that the nearest cache holds, and written
from there line by line. NumPy runs along one of the two layouts, and meets each cache line of the other once for every
element in it; lines a power of two apart then push each other out of the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from textwrap import indent

import attrs
import numpy as np
import numpy.typing as npt

from ....types.specs import Shape, merged_axes, order_of_axes
from ...base import HostArray
from ..background import background
from ..crew import share_kernel, threads_of_crew
from ..loops import Kernel, compiled, numbers_of_plan, place_of
from ..pool import ALONE, Pool
from .strides import Span, lies_evenly

LEAST_TURNED = 1 << 16  # bytes: of fewer a cache holds all
LEAST_SHARED = 1 << 22  # bytes of a copy: below, waking a thread costs more than it saves
_SIDE, _APART = 64, 65  # elements of a tile's sides; from line to line in the memory between
_NUMBERS = "biufmM"  # kinds of which a copy of the bits is one of the element, as it is of none of Python's objects
_FEW = 16  # elements that lie side by side in the source: with fewer NumPy meets each line of it as seldom
_TASKS = 16  # for threads, at least, where there are as many tiles
_PLAN = ("from_", "to", "length", "t_step", "lines", "s_step", "s_plane", "t_plane", "parts")
_TURN = """
    near = stack({word}, {size})
    blocks = (length + {side} - 1) // {side}
    rows = (lines + {side} - 1) // {side}
    for task in range(start, stop):
        part = u8(task) % parts
        place = u8(task) // parts
        first = i8(place % blocks) * {side}
        plane = i8(place // blocks)
        width = min({side}, i8(length) - first)
        read = from_ + plane * s_plane + first
        write = to + plane * t_plane + first * t_step
        end = min(i8(lines), {side} * i8(rows * (part + 1) // parts))
        for k in range({side} * i8(rows * part // parts), end, {side}):
            height = min({side}, end - k)
            if (width == {side}) & (height == {side}):
{whole}
            else:
{some}
"""
_TILE = """
for line in range({height}):
    for at in range({width}):
        near[line * {apart} + at] = source[read + (k + line) * s_step + at]
for line in range({width}):
    for at in range({height}):
        target[write + line * t_step + k + at] = near[at * {apart} + line]
"""


@cache
def turn(size: int) -> Kernel:
    """(start, stop, source, target, plan): copies blocks of lines, of words of so many bytes."""
    whole, some = (
        indent(_TILE.strip("\n").format(height=height, width=width, apart=_APART), 16 * " ")
        for height, width in ((_SIDE, _SIDE), ("height", "width"))
    )
    body = _TURN.format(word=f"u{size}", size=_SIDE * _APART, side=_SIDE, whole=whole, some=some)
    takes = f"start: i8, stop: i8, source: u{size}[], target: u{size}[], plan: i8[]"
    return compiled("turn", takes, numbers_of_plan(_PLAN, ("length", "lines", "parts")) + body)


def _loading(size: int) -> Iterator[object]:
    yield turn(size)


@attrs.frozen(eq=False)
class _Route:
    """Of arrays of one shape that lie in one way each."""

    plan: npt.NDArray[np.int64]
    tasks: int
    read: Span
    written: Span


def are_turned(source: HostArray, to: HostArray, pool: Pool | None = None) -> bool:
    """Copies to an array of the same shape and dtype that lies apart, if this is a transposition for the loop, which is
    there; else nothing is done."""
    size = source.itemsize
    if to.nbytes < LEAST_TURNED or source.dtype != to.dtype or source.dtype.kind not in _NUMBERS or size > 8:
        return False
    if not (lies_evenly(source) and lies_evenly(to)):
        return False
    route = _route(source.shape, source.strides, to.strides, size)
    if route is None or not background.has((_loading, size), to.nbytes):
        return False
    numbers = (*route.read.place(source), *route.written.place(to), *place_of(route.plan))
    is_shared = pool is not ALONE and (to.nbytes >= LEAST_SHARED or threads_of_crew(to.nbytes) > 0)
    share_kernel(turn(size), route.tasks, numbers, to.nbytes if is_shared else 0, pool=pool)
    return True


@lru_cache(maxsize=256)
def _route(shape: Shape, strides: Shape, to_strides: Shape, size: int) -> _Route | None:
    """None where the same axis is the nearest in both, too few lie side by side, or axes do not merge into three."""
    read, written = Span.of_axes(shape, strides, size), Span.of_axes(shape, to_strides, size)
    lying = order_of_axes(shape, strides)
    loops = merged_axes((shape[axis], strides[axis] // size, to_strides[axis] // size) for axis in lying)
    along = [loop for loop in loops if loop[1] == 1]
    across = [loop for loop in loops if loop[2] == 1]
    if len(along) != 1 or len(across) != 1 or along == across or len(loops) > 3:
        return None
    (length, _, t_step), (lines, s_step, _) = *along, *across
    if length < _FEW:
        return None
    planes, s_plane, t_plane = next((loop for loop in loops if loop not in (*along, *across)), (1, 0, 0))
    blocks, rows = planes * -(-length // _SIDE), -(-lines // _SIDE)
    parts = min(rows, -(-_TASKS // blocks))
    numbers = read.before, written.before, length, t_step, lines, s_step, s_plane, t_plane, parts
    return _Route(np.array(numbers, np.int64), blocks * parts, read, written)
