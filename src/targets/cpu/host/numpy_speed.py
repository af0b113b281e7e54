"""Measures once whether NumPy's own sort is fast on this processor, as no list of processors stays true.

On x86-64 its vectorised code needs AVX2 or AVX-512, and one of its instructions is slow on some processors that have
it. There a radix sort takes a fifth of the time.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

_LENGTH = 1 << 14  # so long that no branch is foreseen for having been taken before
_LEAST = 2e-9  # seconds for a byte of an element: vectorised code takes a third of it, other code twice as long
_FEW = 1 << 10  # elements that a radix sort orders in a fifth of the time, or in several times as much
_TRIALS = 16  # until one is fast: other processes may keep the cores busy for several of them


@cache
def numpy_sorts_slowly(itemsize: int, length: int = _LENGTH) -> bool:
    """Rows of integers, by default one long one of 4 or 8 bytes. Whatever else the processor does only ever makes it
    slower, so the best time counts."""
    rng = np.random.default_rng(0)
    for _ in range(_TRIALS):
        numbers = (rng.random(_LENGTH) * 2.0 ** (8 * itemsize - 1)).astype(f"u{itemsize}")
        rows = numbers.reshape(-1, length)
        start = perf_counter()
        rows.sort()
        if perf_counter() - start <= _LEAST * itemsize * _LENGTH:
            return False
    return True


@cache
def radix_sorts_sooner(length: int = _FEW) -> bool:
    """Whether NumPy's stable sort of so many integers of 2 bytes, which goes by their digits, takes less time than its
    other one, which few processors have vectorised code for: without it, that one is slow in long rows as well."""
    rng = np.random.default_rng(0)
    best = {"stable": 1.0, "quicksort": 1.0}
    for _ in range(_TRIALS >> 1):
        for kind, least in best.items():
            numbers = rng.integers(0, 1 << 16, length, np.uint16)
            start = perf_counter()
            numbers.sort(kind="stable" if kind == "stable" else "quicksort")
            best[kind] = min(least, perf_counter() - start)
    return best["stable"] < best["quicksort"]
