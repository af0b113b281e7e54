"""Sorts long rows with few distinct elements by counting how often each occurs.

Up to 256 distinct elements are told apart by a perfect hash, which maps each to a byte: its rank. Bytes are counted.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..loops import PIECE, flag
from ..pool import Pool
from .counting import counts_of, fill_runs
from .counting_loops import rank_found
from .key_words import Elements, Places, bits_of, ordered_ranks, ordered_words
from .numpy_sort import sort_row
from .radix_sort import argsort_by_radix
from .sample import different_of, sample_of
from .ties import restore_ties

U8s = npt.NDArray[np.uint8]

_MOST = 256  # as many as a byte tells apart
_SEEN_OF_MOST = 176  # so many of them are seen at a glance, or a few more than that
_SAMPLE = 4096  # here all of them are seen, and often, unless some are rare
_TRIES = 64


@attrs.frozen
class PerfectHash:
    """A multiplicative perfect hash: the highest bits of a product differ for all values."""

    values: Elements
    multiplier: np.uint64
    shift: np.uint64
    table: U8s

    @property
    def arguments(self) -> tuple[Elements, U8s, int, int]:
        """As compiled loops take it."""
        return self.values, self.table, int(self.multiplier), int(self.shift)

    @classmethod
    def of(cls, values: Elements) -> PerfectHash | None:
        bits = max(8, 2 * (values.size - 1).bit_length())
        shift, wide = np.uint64(64 - bits), values.astype(np.uint64)
        rng = np.random.default_rng(values.size)
        for _ in range(_TRIES):  # about every other multiplier will do
            multiplier = rng.integers(0, 1 << 64, dtype=np.uint64) | np.uint64(1)
            slots = (wide * multiplier) >> shift
            if np.unique(slots).size == values.size:
                table = np.zeros(1 << bits, np.uint8)
                table[slots] = np.arange(values.size)
                return cls(values, multiplier, shift, table)
        return None


def finder_for(row: HostArray, policy: HostSortPolicy) -> PerfectHash | None:
    """For the bits of a row's elements, if a sample has few, and all of them more than once: else there are others."""
    if different_of(row, policy.glance) > _SEEN_OF_MOST:
        return None
    values, counts = np.unique(sample_of(bits_of(row), _SAMPLE), return_counts=True)
    return PerfectHash.of(values) if values.size <= _MOST and counts.min() > 1 else None


def sort_few(
    source: Elements, results: Elements, order: SortOrder, policy: HostSortPolicy, pool: Pool, stable: bool
) -> bool:
    """Counts the different elements of a row, if they are as few as its sample says; else nothing is done."""
    finder = finder_for(source, policy)
    if finder is not None and finder.values.size == 1:
        sort_row(source, results, order, stable)  # NumPy sees at once that there is nothing to do
        return True
    if finder is None:
        return False
    sequence = np.argsort(ordered_words(key_for(source.dtype), finder.values, order))
    which = _ranked(source, finder, np.argsort(sequence).astype(np.uint8), pool)
    if which is None:
        return False
    ends = np.cumsum(counts_of(which, pool)[: sequence.size])
    fill_runs(bits_of(results), finder.values[sequence], ends, results is source, pool)
    if stable:
        restore_ties(source[np.newaxis], results[np.newaxis], order, stable)
    return True


def argsort_few(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> bool:
    """Whether the row is of few different elements, and is done."""
    finder = finder_for(source, policy) if source.size <= LARGEST_U32 else None
    if finder is None:
        return False
    ranks = ordered_ranks(key_for(source.dtype), finder.values, order)
    own: U8s = np.unique(ranks, return_inverse=True)[1].astype(np.uint8)  # what compares equal ranks equal
    which = _ranked(source, finder, own, pool)
    if which is None:
        return False
    argsort_by_radix(which, places, SortOrder.ASCENDING, pool.threads)
    return True


def _ranked(source: HostArray, finder: PerfectHash, ranks: U8s, pool: Pool) -> U8s | None:
    """The rank of each element, by all threads; None if there are others than those of the hash."""
    bits, which, rank = bits_of(source), np.empty(source.size, np.uint8), rank_found(source.itemsize)

    def told(own: slice) -> bool:
        missed = flag()
        rank(bits[own], *finder.arguments, missed, ranks, which[own])
        return not missed[0]

    return which if pool.all_over(source.size, told, min(4 * pool.threads, -(-source.size // PIECE))) else None
