"""Array metadata independent of the library: shape, dtype, strides, memory; and arithmetic on strides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeAlias

import attrs
import numpy as np

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
DType: TypeAlias = np.dtype[np.generic]
Shape: TypeAlias = tuple[int, ...]


class Memory(Enum):
    """The memory that an array is in."""

    HOST = "host memory"
    CUDA = "a CUDA device"
    WEBGPU = "a WebGPU device"


@attrs.frozen
class Spec:
    """The metadata of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    memory: Memory = Memory.HOST
    strides: tuple[int, ...] | None = None  # in bytes; None for a C-contiguous array
    is_aligned: bool = True
    origin: int = attrs.field(default=0, eq=False)  # its address on a device, as far as alignment goes

    @property
    def is_plain(self) -> bool:
        """Whether kernels can access the elements without a copy: aligned and in native byte order."""
        return self.is_aligned and self.dtype.isnative

    @property
    def is_on_words(self) -> bool:
        """Whether the memory is known to begin with a whole word of 4 bytes."""
        return self.memory is not Memory.HOST and not self.origin % 4

    @property
    def all_strides(self) -> tuple[int, ...]:
        return self.strides if self.strides is not None else packed_strides(self.shape, self.dtype.itemsize)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def permuted(self, axes: tuple[int, ...]) -> Spec:
        """The same array with its axes in this order."""
        shape, strides = (tuple(line[axis] for axis in axes) for line in (self.shape, self.all_strides))
        is_packed = lies_packed(shape, strides, self.dtype.itemsize)
        return attrs.evolve(self, shape=shape, strides=None if is_packed else strides)

    @property
    def may_share_elements(self) -> bool:
        """Whether elements may alias each other, as in broadcast arrays and sliding windows (conservative)."""
        if self.strides is None or 0 in self.shape:
            return False
        reach = self.dtype.itemsize
        for stride, length in sorted(zip(map(abs, self.strides), self.shape, strict=True)):
            if length > 1 and stride < reach:
                return True
            reach += stride * (length - 1)
        return False


def comes_to_host(dtype: DType, given: Iterable[Spec]) -> bool:
    """Whether results of a dtype are copied to the host from arrays on a device: states of several fields, of which
    that library has no arrays, unless it gave such."""
    is_known = any(spec.memory is Memory.HOST or spec.dtype.names is not None for spec in given)
    return dtype.names is not None and not is_known


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of a C-contiguous array, in bytes."""
    return strides_in_order(shape, itemsize, range(len(shape)))


def order_of_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The axes from the slowest varying to the fastest; those without a stride, and of one element, stay in front."""
    steps = [-(abs(stride) if stride and size > 1 else 1 << 63) for size, stride in zip(shape, strides, strict=True)]
    return tuple(sorted(range(len(shape)), key=steps.__getitem__))


def strides_in_order(shape: tuple[int, ...], itemsize: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps; `axes` are from the slowest varying to the fastest."""
    strides = [0] * len(shape)
    for axis in reversed(axes):
        strides[axis] = itemsize
        itemsize *= max(shape[axis], 1)
    return tuple(strides)


def merged_axes(given: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Axes, each a size and then strides, as few as possible: without those of length 1, contiguous neighbours as
    one."""
    axes: list[tuple[int, ...]] = []
    for size, *strides in given:
        if size == 1:
            continue
        if axes and axes[-1][1:] == tuple([size * stride for stride in strides]):
            size *= axes.pop()[0]
        axes.append((size, *strides))
    return axes


def lies_packed(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether an array is C-contiguous."""
    lines = zip(shape, strides, packed_strides(shape, itemsize), strict=True)
    return 0 in shape or all(length == 1 or stride == wanted for length, stride, wanted in lines)


def bounds(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The range of an array's bytes, relative to its first element; the end is exclusive."""
    if 0 in shape:
        return 0, 0
    reaches = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
    return sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches) + itemsize


def overlapping(reach: tuple[int, int], other_reach: tuple[int, int]) -> tuple[int, int]:
    """The numbers between which lies the address of one array less that of another if their byte ranges (see bounds)
    overlap."""
    return other_reach[0] - reach[1], other_reach[1] - reach[0]


def padded(nbytes: int) -> int:
    """Bytes rounded up to whole words of 4, at least one, as WebGPU's buffers, bindings and copies have them."""
    return max(4, -(-nbytes // 4) * 4)
