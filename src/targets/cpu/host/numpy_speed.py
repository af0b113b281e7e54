"""Measures once whether NumPy's own sort is fast on this processor, as no list of processors stays true.

Its vectorised code needs AVX2 or AVX-512, and one of its instructions is slow on some processors that have it. There a
radix sort takes a fifth of the time.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

_LENGTH = 1 << 14  # so long that no branch is foreseen for having been taken before
_LEAST = 2e-9  # seconds for a byte of an element: vectorised code takes a third of it, other code twice as long
_TRIALS = 16  # until one is fast: other processes may keep the cores busy for several of them


@cache
def numpy_sorts_slowly(itemsize: int, kind: str = "u") -> bool:
    """Integers of 2, 4 or 8 bytes; or float16, for which few processors have instructions. Whatever else the processor
    does only ever makes it slower, so the best time counts."""
    rng = np.random.default_rng(0)
    for _ in range(_TRIALS):
        numbers = (rng.random(_LENGTH) * 2.0 ** (8 * itemsize - 1)).astype(f"{kind}{itemsize}")
        start = perf_counter()
        numbers.sort()
        if perf_counter() - start <= _LEAST * itemsize * _LENGTH:
            return False
    return True
