"""What is sorted: arrays of one dtype and length, from all bits random down to all elements the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def random_bits(dtype: str, count: int, ands: int = 0) -> Array:
    """Random bits. Of words that are ANDed so often, each bit is one less often: less entropy, more equal digits."""
    rng = np.random.default_rng(count)
    size = count * np.dtype(dtype).itemsize
    drawn = rng.integers(0, 256, size, np.uint8)
    for _ in range(ands):
        drawn &= rng.integers(0, 256, size, np.uint8)
    return drawn.view(dtype)


def uniform(dtype: str, count: int) -> Array:
    """All values of an integer dtype alike; floats between 0 and 1."""
    if np.dtype(dtype).kind == "f":
        return np.random.default_rng(count).random(count).astype(dtype)
    return random_bits(dtype, count)


def few(dtype: str, count: int) -> Array:
    return np.random.default_rng(count).integers(0, 16, count).astype(dtype)


def ascending(dtype: str, count: int) -> Array:
    return np.sort(uniform(dtype, count))


def descending(dtype: str, count: int) -> Array:
    return ascending(dtype, count)[::-1].copy()


# By name; the numbers are bits of entropy a bit, as CUB's benchmarks have them.
DISTRIBUTIONS: dict[str, Callable[[str, int], Array]] = {
    "uniform": uniform,
    "entropy 0.544": lambda dtype, count: random_bits(dtype, count, ands=2),
    "entropy 0.201": lambda dtype, count: random_bits(dtype, count, ands=4),
    "constant": lambda dtype, count: np.full(count, 5).astype(dtype),
    "16 values": few,
    "sorted": ascending,
    "reversed": descending,
}
