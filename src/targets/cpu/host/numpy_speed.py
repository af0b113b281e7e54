"""Measures once whether NumPy's own sorts are fast on this processor, as no list of processors stays true.

On x86-64 its vectorised code needs AVX2 or AVX-512, and one of its instructions is slow on some processors that have
it. There a radix sort takes a fifth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

_LENGTH = 1 << 14  # so long that no branch is foreseen for having been taken before
_LEAST = 2e-9  # seconds for a byte of an element: vectorised code takes a third of it, other code twice as long
_ROW_OF_HALVES = 1 << 7
_FEW = 1 << 10  # elements that a radix sort orders in a fifth of the time, or in several times as much
_TRIALS = 16  # until one is fast: other processes may keep the cores busy for several of them

_Numbers = npt.NDArray[np.unsignedinteger[Any]]


@cache
def numpy_sorts_slowly(itemsize: int, length: int = _LENGTH) -> bool:
    """Rows of integers, by default one long one of 4 or 8 bytes. Whatever else the processor does only ever makes it
    slower, so the best time counts."""
    most = _LEAST * itemsize * _LENGTH
    return all(_time_of(np.ndarray.sort, numbers.reshape(-1, length)) > most for numbers in _mixed(itemsize, _LENGTH))


@cache
def numpy_argsorts_fast(itemsize: int) -> bool:
    """Whether NumPy has a vectorised argsort, which keeps no order of equals, of rows that are not long."""
    return _is_sooner(itemsize, _FEW, lambda row: row.argsort(), lambda row: row.argsort(kind="stable"), 2)


@cache
def numpy_sorts_words_soon() -> bool:
    """Whether NumPy sorts a row of words that is not long in less time than it finds stably where they come from: also
    by vector code that is slow in long rows."""
    return _is_sooner(8, _FEW, np.ndarray.sort, lambda row: row.argsort(kind="stable"), 1.5)


@cache
def radix_sorts_sooner(length: int = _FEW) -> bool:
    """Whether NumPy's stable sort of so many integers of 2 bytes, which goes by their digits, takes less time than its
    other one, which few processors have vectorised code for: without it, that one is slow in long rows as well."""
    return _is_sooner(2, length, lambda row: row.sort(kind="stable"), np.ndarray.sort)


@cache
def sorts_halves_fast() -> bool:
    """Whether NumPy has vector code for rows of float16, so that their bits take little less time. (What it makes of
    integers takes a third; without any for either they take as long.)"""

    def sort(numbers: npt.NDArray[Any]) -> None:
        numbers.reshape(-1, _ROW_OF_HALVES).sort()

    slowly = numpy_sorts_slowly(2, _ROW_OF_HALVES)
    return not slowly and not _is_sooner(2, _LENGTH >> 2, sort, lambda row: sort(row.view(np.float16)), 2.5)


def _is_sooner(
    itemsize: int, length: int, work: Callable[[_Numbers], object], other: Callable[[_Numbers], object],
    times: float = 1,
) -> bool:  # fmt: skip
    """Whether the other takes longer, or so many times as long."""
    mine, others = list[float](), list[float]()
    for numbers in _mixed(itemsize, length):
        others.append(_time_of(other, numbers[::-1].copy()))
        mine.append(_time_of(work, numbers))  # which may sort them
    return times * min(mine) < min(others)


def _time_of(work: Callable[[_Numbers], object], numbers: _Numbers) -> float:
    start = perf_counter()
    work(numbers)
    return perf_counter() - start


def _mixed(itemsize: int, length: int) -> Iterator[_Numbers]:
    """Numbers in no order, others in each trial, by splitmix64: NumPy loads its own generators for 20 ms."""
    for trial in range(_TRIALS):
        words: npt.NDArray[Any] = (
            np.arange(trial * length + 1, (trial + 1) * length + 1, dtype=np.uint64) * 0x9E3779B97F4A7C15
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            words = (words ^ words >> shift) * factor
        yield words.astype(f"u{itemsize}")
