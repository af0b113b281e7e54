"""Sorts by counting: long rows of 8- and 16-bit elements by histograms, and those of few distinct elements.

A handful of these are counted one by one: see at_sight.py. Up to 256 are told apart by a perfect hash, which maps each
to a byte: its rank. Bytes are counted.
"""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.dtypes import name_of
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import share
from ..loops import PIECE, Kernel, compiled
from ..pool import Pool
from .at_sight import Counts, Runs, few_words
from .key_words import Elements, Places, bits_of, elements_in_order, ordered_ranks, ordered_words
from .radix_sort import argsort_by_radix
from .sample import different_of, sample_of

# Neighbours count in different tables: equal ones would wait for each other.
_TABLES = 8
_BYTES = f"""
    tables = stack({{count}}, {256 * _TABLES})
    for j in range({256 * _TABLES}):
        tables[j] = 0
    whole = stop - ((stop - start) & {_TABLES - 1})
    for at in range(start, whole, {_TABLES}):
        {{steps}}
    for index in range(whole, stop):
        word = i8(words[index])
        tables[word] = tables[word] + 1
    for value in range(256):
        found = {" + ".join(f"tables[{256 * k} + value]" for k in range(_TABLES))}
        counts[row + value] = counts[row + value] + found
"""
_STEPS = "\n        ".join(
    [f"word_{k} = i8(words[at + {k}]) + {256 * k}" for k in range(_TABLES)]
    + [f"tables[word_{k}] = tables[word_{k}] + 1" for k in range(_TABLES)]
)
# Of two bytes one table fills the nearest cache.
_PAIRS = """
    for index in range(start, stop):
        word = i8(words[index]) + row
        counts[word] = counts[word] + 1
"""
_RANK = f"""
    for begin in range(start, stop, {PIECE}):
        if load_acquire(missed, 0) != 0:
            break
        for index in range(begin, min(begin + {PIECE}, stop)):
            word = words[index]
            found = i8(table[(u8(word) * multiplier) >> shift])
            if values[found] != word:
                before = atomic_or(missed, 0, 1)
                break
            ranked[index] = ranks[found]
"""


@cache
def count_words(size: int, counts: np.dtype[np.generic]) -> Kernel:
    """(words, counts, row, start, stop): adds how often each value of so many bytes, 1 or 2, occurs from start to stop,
    to the counts from `row` on."""
    takes = f"words: u{size}[], counts: {name_of(counts)}[], row: i8, start: i8, stop: i8"
    bytes_ = _BYTES.format(count=name_of(counts), steps=_STEPS)
    return compiled("count_words", takes, bytes_ if size == 1 else _PAIRS)


@cache
def rank_found(size: int) -> Kernel:
    """(start, stop, words, values, table, multiplier, shift, ranks, ranked, missed): writes words' ranks, found by a
    perfect hash. Sets `missed` at the first word that is none of the values, and ends where it is set."""
    hashed = f"words: u{size}[], values: u{size}[], table: u1[], multiplier: u8, shift: u8"
    return compiled("rank_found", f"start: i8, stop: i8, {hashed}, ranks: u1[], ranked: u1[], missed: i8[]", _RANK)


_NARROW = np.dtype(np.uint32)  # half as much for a core's cache to hold


def sort_by_counting(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
    """Sorts a one-dimensional array. `results` is `source` itself, or lies apart."""
    sequence = _sequence(source.dtype.char, order)
    Runs(sequence, counts_of(bits_of(source), pool)[sequence].cumsum()).fill(results, results is source, pool)


def counts_of(words: Elements, pool: Pool) -> Counts:
    """How often each word of 8 or 16 bits occurs."""
    narrow = _NARROW if words.size <= LARGEST_U32 else np.dtype(np.int64)
    values, threads, size = 1 << 8 * words.itemsize, pool.threads, words.size
    counts = np.zeros((threads, values), narrow)
    count = count_words(words.itemsize, narrow).on(words, counts)
    pool.run(lambda number: count(number * values, size * number // threads, size * (number + 1) // threads), threads)
    totals: Counts = counts.sum(axis=0, dtype=np.int64)
    return totals


@cache
def _sequence(dtype: str, order: SortOrder) -> Elements:
    """All elements of a dtype, as the integers of their bits, in order."""
    size = np.dtype(dtype).itemsize
    return bits_of(elements_in_order(np.arange(1 << 8 * size).astype(f"u{size}"), np.dtype(dtype), order))


U8s = npt.NDArray[np.uint8]

_MOST = 256  # as many as a byte tells apart
_SEEN_OF_MOST = 176  # so many of them are seen at a glance, or a few more than that
_SAMPLE = 4096  # here all of them are seen, and often, unless some are rare
_TRIES = 64
_FEW_OTHERS = 32  # one in so many


@attrs.frozen
class PerfectHash:
    """A multiplicative perfect hash: the highest bits of a product differ for all values."""

    values: Elements
    table: U8s
    multiplier: int
    shift: int

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
                return cls(values, table, int(multiplier), int(shift))
        return None


def finder_for(row: HostArray, policy: HostSortPolicy) -> PerfectHash | None:
    """For the bits of a row's elements, if a sample has few, and all of them more than once: else there are others."""
    if different_of(row, policy.glance) > _SEEN_OF_MOST:
        return None
    values, counts = np.unique(sample_of(bits_of(row), _SAMPLE), return_counts=True)
    return PerfectHash.of(values) if values.size <= _MOST and counts.min() > 1 else None


def sort_few(source: Elements, results: Elements, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> bool:
    """Counts the different elements of a row, if they are as few as its sample says; else nothing is done."""
    few = few_words(source, order)
    if few is not None and few.words.size == 1 and _sort_around(source, results, few.words[0], order, pool):
        return True
    runs = None if few is None else Runs.counted(source, few.words, pool)
    if runs is None:
        runs = _runs_by_hash(source, order, policy, pool)
    if runs is None:
        return False
    runs.fill(results, results is source, pool)
    return True


def _sort_around(source: Elements, results: Elements, word: np.generic, order: SortOrder, pool: Pool) -> bool:
    """Whether nearly all of a row are one word; then the others are sorted, and written before and behind it."""
    bits, most, found = bits_of(source), source.size // _FEW_OTHERS, list[Elements]()

    def gather(own: slice) -> bool:
        part = bits[own]
        found.append(part[part != word])
        return sum(map(len, found)) <= most

    if not pool.all_over(source.size, gather, -(-source.size // PIECE)):
        return False
    one: Elements = np.array([word], bits.dtype).view(source.dtype)
    words = ordered_words(np.concatenate(found).view(source.dtype), order)
    words.sort()
    others, below = elements_in_order(words, source.dtype, order), words.searchsorted(ordered_words(one, order)).item()
    above = source.size - (others.size - below)
    whole = np.empty_like(source) if results is source else results
    whole[:below], whole[below:above], whole[above:] = others[:below], one, others[below:]
    if whole is not results:
        results[:] = whole
    return True


def _runs_by_hash(source: Elements, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> Runs | None:
    finder = finder_for(source, policy)
    if finder is None:
        return None
    sequence = np.argsort(ordered_words(finder.values.view(source.dtype), order))
    which = _ranked(source, finder, np.argsort(sequence).astype(np.uint8), pool)
    if which is None:
        return None
    return Runs(finder.values[sequence], counts_of(which, pool)[: sequence.size].cumsum())


def argsort_few(source: HostArray, places: Places, policy: HostSortPolicy, pool: Pool) -> bool:
    """Whether the row is of few different elements, and is done."""
    finder = finder_for(source, policy) if source.size <= LARGEST_U32 else None
    if finder is None:
        return False
    ranks = ordered_ranks(finder.values.view(source.dtype), SortOrder.ASCENDING)
    own: U8s = np.unique(ranks, return_inverse=True)[1].astype(np.uint8)  # what compares equal ranks equal
    which = _ranked(source, finder, own, pool)
    if which is None:
        return False
    argsort_by_radix(which, places, pool.threads)
    return True


def _ranked(source: HostArray, finder: PerfectHash, ranks: U8s, pool: Pool) -> U8s | None:
    """The rank of each element, by all threads; None if there are others than those of the hash."""
    which, missed = np.empty(source.size, np.uint8), np.zeros(1, np.int64)
    hashed = finder.values, finder.table, finder.multiplier, finder.shift
    share(rank_found(source.itemsize), source.size, pool, bits_of(source), *hashed, ranks, which, missed)
    return None if missed[0] else which
