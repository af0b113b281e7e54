"""Compiled loops over large arrays before and after partitioning. Imported only for those: it loads Numba."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..jit import njit
from ..keeping import kept

Elements: TypeAlias = npt.NDArray[Any]

_BLOCK = 4096  # elements between two looks whether to go on: they stay in the nearest cache


@kept
@njit(nogil=True)
def ascends(source: Elements) -> bool:
    """Whether each element is at least the one before. Stops soon after one that is not."""
    for start in range(0, source.size - 1, _BLOCK):
        before = source[start : min(start + _BLOCK, source.size - 1)]
        after = source[start + 1 : start + 1 + before.size]
        right = 0
        for index in range(before.size):
            right += before[index] <= after[index]
        if right < before.size:
            return False
    return True


@kept
@njit(nogil=True)
def descends(source: Elements) -> bool:
    """Whether each element is at most the one before."""
    for start in range(0, source.size - 1, _BLOCK):
        before = source[start : min(start + _BLOCK, source.size - 1)]
        after = source[start + 1 : start + 1 + before.size]
        right = 0
        for index in range(before.size):
            right += before[index] >= after[index]
        if right < before.size:
            return False
    return True


@kept
@njit(nogil=True)
def count_values(words: Elements, values: Elements, counts: npt.NDArray[np.int64]) -> bool:
    """Counts each of a few values. False, soon after the first, if there is an element that is none of them."""
    none = words.dtype.type(0)
    for start in range(0, words.size, _BLOCK):
        block = words[start : start + _BLOCK]
        found = 0
        for k in range(values.size):
            value, count = values[k], none
            for index in range(block.size):
                count += words.dtype.type(block[index] == value)  # as wide as a word, so a vector counts as it compares
            counts[k] += count
            found += int(count)
        if found < block.size:
            return False
    return True


@kept
@njit(nogil=True)
def reverse(values: Elements, start: int, stop: int) -> None:
    """Swaps each of the elements start to stop with the one as far from the other end."""
    last = values.size - 1
    for index in range(start, stop):
        values[index], values[last - index] = values[last - index], values[index]


@kept
@njit(nogil=True)
def number(places: Elements, first: int) -> None:
    """Writes first, first + 1, …"""
    for index in range(places.size):
        places[index] = first + index


@kept
@njit(nogil=True)
def number_backwards(source: Elements, places: Elements, start: int, stop: int) -> None:
    """Writes where elements come from that are to be reversed, but for equal ones, which keep their order.

    Those from start to stop, or as far as elements are equal to these; the first ones that are equal to the one before
    are left out.
    """
    for first in range(start, stop, _BLOCK):
        end = min(first + _BLOCK, stop)
        before = source[max(first - 1, 0) : min(end, source.size - 1)]
        after = source[max(first - 1, 0) + 1 : min(end, source.size - 1) + 1]
        ties = 0
        for index in range(before.size):
            ties += before[index] == after[index]
        if ties:
            _number_ties_backwards(source, places, first, end)
        else:
            own = places[source.size - end : source.size - first]
            for index in range(own.size):
                own[index] = end - 1 - index


@kept
@njit(nogil=True)
def _number_ties_backwards(source: Elements, places: Elements, start: int, stop: int) -> None:
    first = start
    while first > 0 and first < stop and source[first] == source[first - 1]:
        first += 1
    while first < stop:
        end = first + 1
        while end < source.size and source[end] == source[first]:
            end += 1
        for index in range(first, end):
            places[source.size - end + index - first] = index
        first = end
