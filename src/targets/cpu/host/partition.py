"""Partitions a row about pivots, by one thread: for files, whose pieces go to as many threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....types.dtypes import native
from .key_words import Elements
from .numpy_speed import numpy_sorts_slowly
from .partition_loops import COUNTERS, part_in_turn

_BLOCK = 1 << 15  # elements, which the nearer caches hold
_KINDS, _SIZES = "iuf", (4, 8)
_MOST = 512  # parts of elements of 8 bytes, or where vectors are compressed: more take as long as to sort
_MOST_ONE_BY_ONE = 32  # of 4 bytes where they are not
_MOST_BESIDE_RADIX = 8  # there, where the sort is not NumPy's and takes less


def can_partition(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in _KINDS and dtype.itemsize in _SIZES and dtype == native(dtype)


class RowPartition:
    """The partition of rows of one dtype."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype

    @property
    def most_parts(self) -> int:
        """How many parts are made sooner than the row is sorted."""
        from ..compiler.machine import machine  # loads LLVM

        if self._dtype.itemsize == 8 or machine().compresses:
            return _MOST
        return _MOST_BESIDE_RADIX if numpy_sorts_slowly(self._dtype.itemsize) else _MOST_ONE_BY_ONE

    def __call__(self, source: Elements, results: Elements, pivots: Elements) -> npt.NDArray[np.int64]:
        return partition_row(source, results, pivots)


def partition_row(source: Elements, results: Elements, pivots: Elements) -> npt.NDArray[np.int64]:
    """Partitions into 2, 8, 32, ... parts: elements below the first pivot, those below the second, ...; NaNs are in the
    last. Returns where parts begin, and the last one's end. The source is overwritten: passes go to and fro."""
    parts = pivots.size + 1
    passes = parts.bit_length() - 1
    assert parts == 1 << passes
    assert passes % 2  # the last pass writes to the results
    claimed, bounds = np.zeros((parts, COUNTERS), np.int64), np.zeros(parts + 1, np.int64)
    bounds[parts] = source.size
    missed = np.zeros(COUNTERS, np.int64)
    part = part_in_turn(source.dtype)
    part(source, results, source, pivots, claimed, bounds, missed, parts, passes, _BLOCK, 0)
    return bounds
