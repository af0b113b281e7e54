"""Loop order of strided reductions: kept and reduced axes, contiguous ones merged, the smallest stride innermost."""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs
import numpy as np

from ...base import HostArray
from ..alias import address_of, as_row


@attrs.frozen
class Way:
    """A loop: its trip count, and its stride in elements."""

    length: int
    stride: int


@attrs.frozen
class Walk:
    """The loops over an array of some shape and strides: those of kept axes, then those of reduced ones."""

    origin: int  # where the array's first element is in that memory
    start: int  # where the walk begins: elsewhere, if it goes backwards
    span: int  # elements of memory
    size: int  # bytes of an element
    kept: tuple[Way, ...]
    gone: tuple[Way, ...]
    shape: tuple[int, ...]  # of what is kept, in the order in which the axes lie
    order: tuple[int, ...]  # the axes of the result, in terms of that shape

    @classmethod
    def of(cls, x: HostArray, axes: tuple[int, ...], forwards: bool = False) -> Walk | None:
        """None if strides are no multiples of the element size.

        Reduced axes of negative stride are traversed backwards, in memory order, unless `forwards` is asked for.
        """
        size = x.itemsize
        if any(stride % size for stride in x.strides):
            return None
        strides = [stride // size for stride in x.strides]
        lowest = sum(min(0, (n - 1) * s) for n, s in zip(x.shape, strides, strict=True))
        highest = sum(max(0, (n - 1) * s) for n, s in zip(x.shape, strides, strict=True))
        start = -lowest
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        lying = sorted(kept, key=lambda axis: -abs(strides[axis]))
        gone: list[Way] = []
        for axis in sorted(axes, key=lambda axis: -abs(strides[axis])):
            way = Way(x.shape[axis], strides[axis])
            if way.stride < 0 and not forwards:
                start += (way.length - 1) * way.stride
                way = Way(way.length, -way.stride)
            gone.append(way)
        ways = _joined(Way(x.shape[axis], strides[axis]) for axis in lying)
        shape, order = tuple(x.shape[axis] for axis in lying), tuple(lying.index(axis) for axis in kept)
        return cls(-lowest, start, highest - lowest + 1, size, ways, _joined(gone), shape, order)

    @property
    def length(self) -> int:
        """Elements that are reduced to one."""
        return math.prod(way.length for way in self.gone)

    @property
    def rows(self) -> int:
        """The number of results."""
        return math.prod(way.length for way in self.kept)

    @property
    def nearest_goes(self) -> bool:
        """Whether the axis of the smallest stride is reduced."""
        return not self.kept or (bool(self.gone) and abs(self.gone[-1].stride) <= abs(self.kept[-1].stride))

    @property
    def nearest(self) -> Way:
        return (self.gone if self.nearest_goes else self.kept)[-1]

    def memory(self, x: HostArray, seen_as: np.dtype[np.generic]) -> HostArray:
        """The memory that the array spans, as one contiguous row. May be read-only."""
        return as_row(x, -self.origin * self.size, self.span, seen_as)

    def place(self, x: HostArray) -> tuple[int, int]:
        """Address and length of that row, for code that takes addresses."""
        return address_of(x) - self.origin * self.size, self.span

    def arranged(self, results: HostArray) -> HostArray:
        """Results, in loop order, arranged in the axis order of the array."""
        return results.reshape(self.shape).transpose(self.order)


def _joined(ways: Iterable[Way]) -> tuple[Way, ...]:
    found: list[Way] = []
    for way in ways:
        if way.length == 1:
            continue
        if found and found[-1].stride == way.length * way.stride:
            way = Way(found.pop().length * way.length, way.stride)
        found.append(way)
    return tuple(found)
