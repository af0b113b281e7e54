"""Tells whether the compiled loops that sort a dtype are loaded, and requests them in the background if not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ....types.indices import SortOrder
from ...base import HostArray
from ..background import background
from .argsort_loops import pack, rank, rank_and_pack, rank_halves, unpack
from .counting_loops import count_words, fill, rank_found
from .crew_sort import loading_sorts
from .key_words import Places, numbers_of
from .numpy_speed import numpy_sorts_slowly
from .partition_loops import reverse
from .radix_sort import argsort_by_radix

_COUNTS = np.dtype(np.uint32)


def can_sort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Whether a long row of so many bytes should be sorted by compiled loops, now or at last."""
    return background.has(("sort", dtype), partial(_sorting, dtype), nbytes)


def can_argsort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    return background.has(("argsort", dtype), partial(_argsorting, dtype), nbytes)


def _sorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles all loops that long rows of a dtype may need, whatever they hold: the commonest first."""
    size = dtype.itemsize
    if size <= 2:
        yield count_words(size, _COUNTS)
        yield fill(size)
    if size >= 4:
        numbers = numbers_of(np.empty(0, dtype)).dtype
        yield from loading_sorts(numbers)
        yield reverse(numbers)
        yield fill(size)
    if size >= 2:
        yield count_words(1, _COUNTS)
        yield rank_found(size)


def _argsorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    size, is_half = dtype.itemsize, dtype == np.float16
    if size >= 4:
        yield rank_and_pack(size, dtype.kind == "f")
        yield rank(size, dtype.kind == "f")
        yield pack()
        yield unpack()
        yield from loading_sorts(np.dtype(np.uint64))
        yield rank_found(size)
    if is_half:
        yield rank_halves()
        dtype = np.dtype(np.uint16)
    narrow = size <= 2 or (size == 4 and numpy_sorts_slowly(4))
    for counted in {dtype if narrow else np.dtype(np.uint8), dtype if size <= 2 else np.dtype(np.uint8)}:
        row: HostArray = np.zeros(2, counted)
        places: Places = np.empty(2, np.intp)
        argsort_by_radix(row, places, SortOrder.ASCENDING, 1)
        yield None
