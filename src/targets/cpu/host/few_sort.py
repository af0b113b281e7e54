"""A long row of few different elements: how often each occurs is all there is to know."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import ArrayKey
from ....types.indices import SortOrder
from ..pool import Pool, slices
from .commit import fill_runs
from .key_words import Elements, bits_of, ordered_words
from .perfect_hash import finder_for
from .sample import few_values

Counts = npt.NDArray[np.int64]


def sort_few(
    key: ArrayKey, source: Elements, results: Elements, order: SortOrder, policy: HostSortPolicy, pool: Pool
) -> bool:
    """Counts the different elements of a row, if they are as few as its sample says; else nothing is done."""
    words = bits_of(source)
    values = few_values(source, policy.sample, policy.few)
    if values.size:  # so few that comparing with each is fastest
        from .order_kernels import count_values

        counts = _counted(words, values, lambda piece, found: count_values(piece, values, found), pool)
    else:
        finder = finder_for(source, policy) if source.itemsize >= 4 else None
        if finder is None:
            return False
        from .counting_kernels import count_found

        values, table, multiplier, shift = finder.values, finder.table, finder.multiplier, finder.shift
        counts = _counted(
            words, values, lambda piece, found: count_found(piece, values, table, multiplier, shift, found), pool
        )
    if counts is None:
        return False
    sequence = np.argsort(ordered_words(key, values, order))
    fill_runs(bits_of(results), values[sequence], np.cumsum(counts[sequence]), results is source, pool)
    return True


def _counted(words: Elements, values: Elements, count: Callable[[Elements, Counts], bool], pool: Pool) -> Counts | None:
    """How often each value occurs, by all threads; None if there are others."""
    pieces = slices(words.size, 4 * pool.threads)
    counts = np.zeros((len(pieces), values.size), np.int64)
    is_counted = pool.all(lambda number: count(words[pieces[number]], counts[number]), len(pieces))
    return counts.sum(axis=0) if is_counted else None
