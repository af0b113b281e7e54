"""Loop nests over strided arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import attrs
import numpy as np

from ....types.bounded import Bounded
from ....types.specs import merged_axes, order_of_axes
from ...addresses import address_of
from ...base import HostArray

Axes: TypeAlias = tuple[int, ...]

R = TypeVar("R")
_MOST_ROUTES = 64
_FAR = 3  # elements: what lies farther apart is alike


@attrs.frozen
class Loop:
    """A loop of a nest: its trip count, and its stride in elements."""

    length: int
    stride: int
    out: int = 0  # the stride in the results, if these have one for each element

    @property
    def step(self) -> float:
        """The distance of its elements, to order loops by; infinite for those of a broadcast axis."""
        return abs(self.stride) or math.inf


_ONCE = Loop(1, 0)


class Routes(Generic[R]):
    """A cache of what `make` gives for arrays of one shape and strides."""

    def __init__(self, make: Callable[[HostArray], R | None]) -> None:
        self._make = make
        self._known = Bounded[object, "R | None"](_MOST_ROUTES)

    def of(self, x: HostArray) -> R | None:
        """None also for arrays whose elements do not lie at multiples of their size."""
        if not x.flags.aligned:
            return None
        lies = (x.shape, x.strides)
        try:
            return self._known[lies]
        except KeyError:
            route = self._known[lies] = self._make(x) if lies_evenly(x) else None
            return route


def zeros_and_ones(x: HostArray) -> HostArray:
    """Bools as bytes that are such: a true bool may be any byte but zero. Of arrays that lie alike they lie alike, in
    another way than the bools maybe: NumPy copies those that lie apart in a third of the time that it takes to compare
    them."""
    if 1 not in x.strides:
        x = x.copy("K")
    return np.not_equal(x.view(np.uint8), 0).view(np.uint8)


def lies_evenly(x: HostArray) -> bool:
    """Whether loops can go from element to element: by whole numbers of them, from a place that the processor takes."""
    return x.flags.aligned and x.dtype.alignment == x.itemsize


@attrs.frozen
class Span:
    """The memory from an array's lowest element to its highest one. The array lies evenly."""

    size: int  # bytes of an element
    before: int  # elements before the array's first one
    count: int

    @classmethod
    def of(cls, x: HostArray) -> Span:
        return cls.of_axes(x.shape, x.strides, x.itemsize)

    @classmethod
    def of_axes(cls, shape: Axes, strides: Axes, size: int) -> Span:
        before, count = 0, 1
        for length, stride in zip(shape, strides, strict=True):
            reach = (length - 1) * stride // size
            count += abs(reach)
            before -= min(0, reach)
        return cls(size, before, count)

    def place(self, x: HostArray) -> tuple[int, int]:
        """Address and length of that memory, for code that takes addresses."""
        return address_of(x) - self.before * self.size, self.count


@attrs.frozen
class LoopNest:
    """The loops over an array that lies evenly: those of kept axes outside, those of reduced axes inside."""

    span: Span
    start: int  # the first element visited, in that memory: not the array's first if an axis is traversed backwards
    kept: tuple[Loop, ...]
    reduced: tuple[Loop, ...]
    shape: tuple[int, ...]  # of the kept axes, in the order of their strides
    order: tuple[int, ...]  # the axes of the result, in terms of that shape
    turned: tuple[slice, ...] = ()  # which result is where, if not all axes are traversed as they are numbered

    @classmethod
    def of(cls, x: HostArray, axes: tuple[int, ...], forwards: bool = False) -> LoopNest:
        """Axes of negative stride are traversed in memory order, for LLVM makes no vectors of what goes back; but all
        of a scan, and reduced ones if `forwards` is asked for."""
        if x.flags.c_contiguous and (not axes or axes[-1] - axes[0] == len(axes) - 1):
            return cls._of_packed(x, *(axes[0], axes[-1] + 1) if axes else (0, 0))
        span = Span.of(x)
        start, shape = span.before, x.shape
        lying: list[int] = []
        kept: list[tuple[int, int]] = []
        reduced: list[tuple[int, int]] = []
        for axis in order_of_axes(shape, x.strides):
            length, stride = shape[axis], x.strides[axis] // span.size
            is_kept = axis not in axes
            if stride < 0 and (axes if is_kept else not forwards):
                start += (length - 1) * stride
                stride = -stride
            if is_kept:
                lying.append(axis)
            (kept if is_kept else reduced).append((length, stride))
        order = tuple([lying.index(axis) for axis in sorted(lying)])
        lies, turned = tuple([shape[axis] for axis in lying]), tuple[slice, ...]()
        if axes and any(x.strides[axis] < 0 for axis in lying):
            turned = tuple([slice(None, None, -1 if x.strides[axis] < 0 else 1) for axis in sorted(lying)])
        return cls(span, start, _joined(kept), _joined(reduced), lies, order, turned)

    @classmethod
    def _of_packed(cls, x: HostArray, first: int, last: int) -> LoopNest:
        """The same, sooner, of a packed array along neighbouring axes: most arrays of new shapes are such."""
        shape, length = x.shape, math.prod(x.shape[first:last])
        reduced = (Loop(length, math.prod(shape[last:])),) if length != 1 else ()
        kept = shape[:first] + shape[last:]
        loops = loops_around(shape, first, last)
        return cls(Span(x.itemsize, 0, x.size), 0, loops, reduced, kept, tuple(range(len(kept))))

    @property
    def length(self) -> int:
        """The number of elements that are reduced to one."""
        return math.prod(loop.length for loop in self.reduced)

    @property
    def rows(self) -> int:
        """The number of results."""
        return math.prod(loop.length for loop in self.kept)

    @property
    def nearest_is_reduced(self) -> bool:
        """Whether the axis of the smallest stride is reduced."""
        return not self.kept or (bool(self.reduced) and self.reduced[-1].step <= self.kept[-1].step)

    @property
    def nearest(self) -> Loop:
        return (self.reduced if self.nearest_is_reduced else self.kept)[-1]

    @property
    def alike(self) -> tuple[int, ...]:
        """What nests have in common whose loops take about as long for each element."""
        near = self.nearest
        lengths = (near.length, self.length, self.rows)
        axes = len(self.kept), len(self.reduced)
        return (self.nearest_is_reduced, *axes, min(near.stride, _FAR), *map(_about, lengths))

    def arranged(self, results: HostArray) -> HostArray:
        """Results, in loop order, arranged in the axis order of the array."""
        found = results.reshape(self.shape).transpose(self.order)
        return found[self.turned].copy("K") if self.turned else found


def _about(number: int) -> int:
    """The number by its first three bits."""
    below = max(0, number.bit_length() - 3)
    return number >> below << below


def loops_beside(x: HostArray, outs: Sequence[int], axis: int) -> tuple[Loop, ...]:
    """Loops over all axes but this one, with the strides `outs` of the results."""
    lying = order_of_axes(x.shape, x.strides)
    return _joined([(x.shape[n], x.strides[n] // x.itemsize, outs[n]) for n in lying if n != axis])


def loops_around(shape: tuple[int, ...], first: int, last: int) -> tuple[Loop, ...]:
    """Loops over a packed array's axes before and behind some, with results that lie as it does."""
    outer, stride, near = math.prod(shape[:first]), math.prod(shape[first:]), math.prod(shape[last:])
    if stride == near:  # nothing is between
        outer, stride, near = outer * near, 1, 1
    farther = (Loop(outer, stride, stride),) if outer != 1 else ()
    return farther if near == 1 else (*farther, Loop(near, 1, 1))


def padded(loops: tuple[Loop, ...]) -> list[Loop]:
    """Two loops: outer ones of one iteration are added."""
    return [_ONCE] * (2 - len(loops)) + list(loops)


def _joined(loops: Iterable[tuple[int, ...]]) -> tuple[Loop, ...]:
    return tuple([Loop(*merged) for merged in merged_axes(loops)])
