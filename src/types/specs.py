"""An array as operations see it: all but the library it is from."""

from __future__ import annotations

import math
from enum import Enum

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
        if self.strides is not None:
            return self.strides
        sizes = self.shape[::-1]
        steps = [self.dtype.itemsize * math.prod(sizes[:place]) for place in range(len(sizes))]
        return tuple(steps[::-1])

    @property
    def size(self) -> int:
        return math.prod(self.shape)
