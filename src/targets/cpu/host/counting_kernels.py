"""Compiled loops of sorting and argsorting by counting. Only imported for long arrays: it loads Numba."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..jit import njit
from ..keeping import kept

Elements: TypeAlias = npt.NDArray[Any]
Counts: TypeAlias = npt.NDArray[np.int64]
U64s: TypeAlias = npt.NDArray[np.uint64]


@kept
@njit(nogil=True)
def count_bytes(words: Elements, counts: Counts) -> None:
    """Adds how often each value occurs. Neighbours count in different tables: equal ones would wait."""
    tables = np.zeros((4, 256), np.int64)
    whole = words.size - words.size % 4
    for start in range(0, whole, 4):
        tables[0, words[start]] += 1
        tables[1, words[start + 1]] += 1
        tables[2, words[start + 2]] += 1
        tables[3, words[start + 3]] += 1
    for index in range(whole, words.size):
        tables[0, words[index]] += 1
    for table in range(4):
        for value in range(256):
            counts[value] += tables[table, value]


@kept
@njit(nogil=True)
def count_pairs(words: Elements, counts: Counts) -> None:
    """The same for two bytes, where one table fills the nearest cache."""
    for index in range(words.size):
        counts[words[index]] += 1


@kept
@njit(nogil=True)
def fill(results: Elements, sequence: Elements, ends: Counts, start: int, stop: int) -> None:
    """Writes the elements start to stop: sequence[k] as far as ends[k]."""
    place = np.searchsorted(ends, start, side="right")
    index = start
    while index < stop:
        end = min(ends[place], stop)
        results[index:end] = sequence[place]
        index = end
        place += 1


# -- argsort: words are scattered by a byte of their rank, the lower byte first ------------------------------


@kept
@njit(nogil=True)
def count_low(bits: Elements, ranks: Elements, counts: Counts) -> None:
    """How often each lower byte occurs among the ranks of elements."""
    for index in range(bits.size):
        counts[ranks[bits[index]] & 0xFF] += 1


@kept
@njit(nogil=True)
def scatter_low(bits: Elements, ranks: Elements, first: int, ends: Counts, words: U64s) -> None:
    """Writes where each element came from, below its rank's higher byte. `ends`: how far each lower byte has come."""
    for index in range(bits.size):
        rank = np.uint64(ranks[bits[index]])
        low = rank & np.uint64(0xFF)
        if ends[low] < words.size:  # always so, unless another thread changes what is sorted
            words[ends[low]] = rank >> np.uint64(8) << np.uint64(56) | np.uint64(first + index)
        ends[low] += 1


@kept
@njit(nogil=True)
def count_high(words: U64s, counts: Counts) -> None:
    for index in range(words.size):
        counts[words[index] >> np.uint64(56)] += 1


@kept
@njit(nogil=True)
def scatter_high(words: U64s, ends: Counts, places: U64s) -> None:
    """Writes the places in the order of the higher bytes."""
    for index in range(words.size):
        high = words[index] >> np.uint64(56)
        places[ends[high]] = words[index] & np.uint64(0xFFFFFFFFFFFFFF)
        ends[high] += 1


# -- few different elements, found by a perfect hash: see few_values.py ------------------------------------------


@kept
@njit(nogil=True)
def tell_which(
    bits: Elements, values: Elements, table: Elements, multiplier: np.uint64, shift: np.uint64, ranks: Elements,
    which: Elements,
) -> bool:  # fmt: skip
    """Writes the rank of every element, which should be one of a few values. Whether all were."""
    for index in range(bits.size):
        found = table[(np.uint64(bits[index]) * multiplier) >> shift]
        if values[found] != bits[index]:
            return False
        which[index] = ranks[found]
    return True


@kept
@njit(nogil=True)
def count_found(
    bits: Elements, values: Elements, table: Elements, multiplier: np.uint64, shift: np.uint64, counts: Elements
) -> bool:
    """Counts how often each of a few values occurs. Whether all elements were among them."""
    for index in range(bits.size):
        found = table[(np.uint64(bits[index]) * multiplier) >> shift]
        if values[found] != bits[index]:
            return False
        counts[found] += 1
    return True
