"""Stable argsort of a long row of 8- or 16-bit elements: places are dealt out by one byte of the rank, or by two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool, slices
from .key_words import bits_of, ordered_ranks
from .packed_argsort import Places

Counts = npt.NDArray[np.int64]


def argsort_by_counting(source: HostArray, places: Places, order: SortOrder, pool: Pool) -> None:
    from .counting_kernels import count_high, count_low, scatter_high, scatter_low

    bits, results = bits_of(source), places.view(np.uint64)
    every = np.arange(1 << 8 * source.itemsize).astype(bits.dtype)
    ranks = ordered_ranks(key_for(source.dtype), every, order)
    pieces = slices(source.size, pool.threads)
    words = results if source.itemsize == 1 else np.empty_like(results)

    def scatter_lower(number: int, ends: Counts) -> None:
        scatter_low(bits[pieces[number]], ranks, pieces[number].start, ends, words)

    _deal(lambda number, counts: count_low(bits[pieces[number]], ranks, counts), scatter_lower, pool)
    if words is not results:
        _deal(
            lambda number, counts: count_high(words[pieces[number]], counts),
            lambda number, ends: scatter_high(words[pieces[number]], ends, results),
            pool,
        )


def _deal(count: Callable[[int, Counts], None], scatter: Callable[[int, Counts], None], pool: Pool) -> None:
    """Counts bytes in each piece, then scatters its elements behind those of lower bytes and of earlier pieces."""
    counts = np.zeros((pool.threads, 256), np.int64)
    pool.run(lambda number: count(number, counts[number]), pool.threads)
    ends = np.cumsum(counts.T).reshape(256, pool.threads).T - counts
    starts = np.ascontiguousarray(ends)
    pool.run(lambda number: scatter(number, starts[number]), pool.threads)
