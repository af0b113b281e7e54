"""One long row of 8 or 16 bits an element: how often each value occurs is all there is to know."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...types.indices import SortOrder
from ..base import HostArray
from .plan import fill_runs
from .pool import Pool
from .ranks import Elements
from .row_sort import half_tables


def sort_by_counting(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
    """Sorts a one-dimensional array. `results` may lie where `source` does."""
    from .count_kernels import count_bytes, count_pairs

    word = np.dtype(f"u{source.itemsize}")
    words = source.view(word)
    sequence = _sequence(source.dtype.char, order)
    counts = np.zeros((pool.threads, sequence.size), np.int64)
    counter = count_bytes if word.itemsize == 1 else count_pairs

    def count(piece: int) -> None:
        counter(words[_share(words.size, piece, pool)], counts[piece])

    pool.run(count, pool.threads)
    fill_runs(results.view(word), sequence, np.cumsum(counts.sum(axis=0)[sequence]), pool)


def _share(length: int, piece: int, pool: Pool) -> slice:
    return slice(length * piece // pool.threads, length * (piece + 1) // pool.threads)


@cache
def _sequence(dtype: str, order: SortOrder) -> Elements:
    """All elements of a dtype, as the integers of their bits, in order."""
    if dtype == "e":
        return half_tables(order)[0]
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    every = np.arange(1 << (8 * word.itemsize)).astype(word)
    if np.dtype(dtype).kind == "i":
        every ^= word.type(1 << (8 * word.itemsize - 1))
    return every if order is SortOrder.ASCENDING else every[::-1].copy()
