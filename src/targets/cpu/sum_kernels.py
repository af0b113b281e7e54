"""Compiled sums of large arrays. Only imported for those: it loads Numba.

NumPy's pairwise sum of floats runs at a third of the speed at which a core reads from its caches, and it widens
integers before it adds them. Here floats may be added in any order within a block, so that a vector's lanes each add
up their own; blocks have one length, so the sum depends on the array alone, not on how many threads there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .jit import njit
from .keeping import kept

Elements = npt.NDArray[Any]

BLOCK = 4096  # elements


@kept
@njit(nogil=True, fastmath={"reassoc"})
def _sum_of_floats(block: Elements) -> Any:
    total = block.dtype.type(-0.0)  # to which adding anything gives that
    for i in range(block.size):
        total += block[i]
    return total


@kept
@njit(nogil=True)
def _sum_of_signed(block: Elements) -> Any:
    total = np.int64(0)
    for i in range(block.size):
        total += np.int64(block[i])
    return total


@kept
@njit(nogil=True)
def _sum_of_unsigned(block: Elements) -> Any:
    total = np.uint64(0)
    for i in range(block.size):
        total += np.uint64(block[i])
    return total


@kept
@njit(nogil=True)
def sum_floats(source: Elements, sums: Elements, first: int, last: int) -> None:
    """The sums of blocks `first` to `last - 1`."""
    for number in range(first, last):
        sums[number] = _sum_of_floats(source[number * BLOCK : (number + 1) * BLOCK])


@kept
@njit(nogil=True)
def sum_signed(source: Elements, sums: Elements, first: int, last: int) -> None:
    """The same for signed integers and bools, in 64 bits."""
    for number in range(first, last):
        sums[number] = _sum_of_signed(source[number * BLOCK : (number + 1) * BLOCK])


@kept
@njit(nogil=True)
def sum_unsigned(source: Elements, sums: Elements, first: int, last: int) -> None:
    """The same for unsigned integers."""
    for number in range(first, last):
        sums[number] = _sum_of_unsigned(source[number * BLOCK : (number + 1) * BLOCK])
