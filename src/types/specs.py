"""An array as operations see it: all but the library it is from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import attrs
import numpy as np


class Memory(Enum):
    """Where an array lies."""

    HOST = "host memory"
    CUDA = "a CUDA device"
    WEBGPU = "a WebGPU device"


@attrs.frozen
class Spec:
    """Shape, dtype, and how the elements lie."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    memory: Memory = Memory.HOST
    strides: tuple[int, ...] | None = None  # in bytes; None where the elements lie one behind the other, in C order

    is_aligned: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether kernels can read the elements where they are."""
        return self.is_aligned and self.dtype.isnative

    @property
    def all_strides(self) -> tuple[int, ...]:
        return self.strides if self.strides is not None else packed_strides(self.shape, self.dtype.itemsize)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def may_share_elements(self) -> bool:
        """Whether elements lie at one place, as in what was broadcast or in windows that slide; or may."""
        if self.strides is None or 0 in self.shape:
            return False
        reach = self.dtype.itemsize
        for stride, length in sorted(zip(map(abs, self.strides), self.shape, strict=True)):
            if length > 1 and stride < reach:
                return True
            reach += stride * (length - 1)
        return False


# -- how arrays lie ---------------------------------------------------------------------------------------


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """In C order."""
    return strides_in_order(shape, itemsize, range(len(shape)))


def strides_like(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Of a new array without gaps, with its axes in the same order in memory as another's."""
    return strides_in_order(shape, itemsize, sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])))


def strides_in_order(shape: tuple[int, ...], itemsize: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Of an array without gaps, whose last axis in this order is the one in which neighbours lie."""
    strides = [0] * len(shape)
    for axis in reversed(axes):
        strides[axis] = itemsize
        itemsize *= max(shape[axis], 1)
    return tuple(strides)


def lies_packed(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements lie one behind the other in C order, wherever the first one is."""
    lines = zip(shape, strides, packed_strides(shape, itemsize), strict=True)
    return 0 in shape or all(length == 1 or stride == wanted for length, stride, wanted in lines)


def bounds(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Where an array's bytes begin and end, from its first element on."""
    if 0 in shape:
        return 0, 0
    reaches = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
    return sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches) + itemsize


def overlap(address: Any, reach: tuple[int, int], other: Any, other_reach: tuple[int, int]) -> bool:
    """Whether arrays that reach so far from their first elements share bytes, or may."""
    return bool(address + reach[0] < other + other_reach[1] and other + other_reach[0] < address + reach[1])
