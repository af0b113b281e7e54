"""Counting sort of long rows of 8- and 16-bit elements by histograms."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from ....algos.sizes import LARGEST_U32
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool
from .commit import fill_runs
from .counting_loops import count_words
from .key_words import Elements, elements_in_order

Counts = npt.NDArray[np.int64]

_NARROW = np.dtype(np.uint32)  # half as much for a core's cache to hold


def sort_by_counting(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
    """Sorts a one-dimensional array. `results` is `source` itself, or lies apart."""
    word = np.dtype(f"u{source.itemsize}")
    words = source.view(word)
    sequence = _sequence(source.dtype.char, order)
    narrow = _NARROW if words.size <= LARGEST_U32 else np.dtype(np.int64)
    values, threads, size = 1 << 8 * words.itemsize, pool.threads, words.size
    counts = np.zeros((threads, values), narrow)
    count = count_words(words.itemsize, narrow).on(words, counts)
    pool.run(lambda number: count(number * values, size * number // threads, size * (number + 1) // threads), threads)
    totals = counts.sum(axis=0, dtype=np.int64)
    fill_runs(results.view(word), sequence, np.cumsum(totals[sequence]), results is source, pool)


@cache
def _sequence(dtype: str, order: SortOrder) -> Elements:
    """All elements of a dtype, as the integers of their bits, in order."""
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    every = np.arange(1 << (8 * word.itemsize)).astype(word)
    return elements_in_order(key_for(np.dtype(dtype)), every, order)
