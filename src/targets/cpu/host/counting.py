"""Counting sort of long rows of 8- and 16-bit elements by histograms."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from ....algos.sizes import LARGEST_U32
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import share
from ..pool import Pool
from .counting_loops import count_words, fill
from .key_words import Elements, elements_in_order

Counts = npt.NDArray[np.int64]

_NARROW = np.dtype(np.uint32)  # half as much for a core's cache to hold


def sort_by_counting(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
    """Sorts a one-dimensional array. `results` is `source` itself, or lies apart."""
    word = np.dtype(f"u{source.itemsize}")
    sequence = _sequence(source.dtype.char, order)
    counts = counts_of(source.view(word), pool)
    fill_runs(results.view(word), sequence, np.cumsum(counts[sequence]), results is source, pool)


def counts_of(words: Elements, pool: Pool) -> Counts:
    """How often each word of 8 or 16 bits occurs."""
    narrow = _NARROW if words.size <= LARGEST_U32 else np.dtype(np.int64)
    values, threads, size = 1 << 8 * words.itemsize, pool.threads, words.size
    counts = np.zeros((threads, values), narrow)
    count = count_words(words.itemsize, narrow).on(words, counts)
    pool.run(lambda number: count(number * values, size * number // threads, size * (number + 1) // threads), threads)
    totals: Counts = counts.sum(axis=0, dtype=np.int64)
    return totals


def fill_runs(results: Elements, sequence: Elements, ends: Counts, in_place: bool, pool: Pool) -> None:
    """Fills results with runs: sequence[k] up to ends[k]. In place by one call, which no signal handler interrupts."""
    loop = fill(results.itemsize)
    if in_place:
        loop(0, results.size, results, sequence, ends)
    else:
        share(loop, results.size, pool, results, sequence, ends)


@cache
def _sequence(dtype: str, order: SortOrder) -> Elements:
    """All elements of a dtype, as the integers of their bits, in order."""
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    every = np.arange(1 << (8 * word.itemsize)).astype(word)
    return elements_in_order(key_for(np.dtype(dtype)), every, order)
