"""Counting sort of long rows of 8- and 16-bit elements by histograms; argsort of them by one or two radix passes that
scatter indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool, slices
from .commit import fill_runs
from .key_words import Elements, Places, bits_of, ordered_ranks
from .numpy_sort import half_tables

Counts = npt.NDArray[np.int64]


def sort_by_counting(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool
) -> None:
    """Sorts a one-dimensional array. `results` is `source` itself, or lies apart."""
    from .counting_kernels import count_bytes, count_pairs

    word = np.dtype(f"u{source.itemsize}")
    words = source.view(word)
    sequence = _sequence(source.dtype.char, order)
    in_pairs = word.itemsize == 1 and words.size >= policy.count_in_pairs_from
    counted = words[: words.size - words.size % 2].view(np.uint16) if in_pairs else words
    counter = count_pairs if counted.itemsize == 2 else count_bytes
    narrow = np.uint32 if counted.size <= LARGEST_U32 else np.int64  # half as much for a core's cache to hold
    counts = np.zeros((pool.threads, 1 << 8 * counted.itemsize), narrow)

    def count(piece: int) -> None:
        counter(counted[_share(counted.size, piece, pool)], counts[piece])

    pool.run(count, pool.threads)
    totals = counts.sum(axis=0, dtype=np.int64)
    if in_pairs:
        by_byte = totals.reshape(256, 256)
        totals = by_byte.sum(axis=0) + by_byte.sum(axis=1)
        totals[words[2 * counted.size :]] += 1
    fill_runs(results.view(word), sequence, np.cumsum(totals[sequence]), results is source, pool)


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
