"""How a reduction goes over memory: axes that stay and axes that go, those that lie alike joined, the nearest last."""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs
import numpy as np

from ...base import HostArray
from ..alias import address_of, as_row


@attrs.frozen
class Way:
    """So many elements, so many elements apart."""

    length: int
    stride: int


@attrs.frozen
class Walk:
    """The ways through the memory that an array of some shape and strides lies in."""

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
        """None where the elements do not lie at multiples of their size.

        Axes that go are gone along in the direction in which they lie, unless they are to be gone along forwards.
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
        """Elements that become one."""
        return math.prod(way.length for way in self.gone)

    @property
    def rows(self) -> int:
        """Results."""
        return math.prod(way.length for way in self.kept)

    @property
    def nearest_goes(self) -> bool:
        """Whether neighbours in memory become one."""
        return not self.kept or (bool(self.gone) and abs(self.gone[-1].stride) <= abs(self.kept[-1].stride))

    @property
    def nearest(self) -> Way:
        return (self.gone if self.nearest_goes else self.kept)[-1]

    def memory(self, x: HostArray, seen_as: np.dtype[np.generic]) -> HostArray:
        """All that an array's elements lie among, as one row. It may be read only: nobody here writes to it."""
        return as_row(x, -self.origin * self.size, self.span, seen_as)

    def place(self, x: HostArray) -> tuple[int, int]:
        """Where that row is in memory and how long, for code that takes addresses."""
        return address_of(x) - self.origin * self.size, self.span

    def arranged(self, results: HostArray) -> HostArray:
        """One value a row in the order of the array's axes."""
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
