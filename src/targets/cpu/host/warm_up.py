"""Small rows of every kind, sent through the ways of long ones: so all loops that a dtype needs are compiled.

The ways choose by what a row holds, so here are rows of all kinds, and a policy by which they are long. Everything runs
in one thread, which alone waits for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool
from .argsort import argsort_one
from .sort import sort_one

_LENGTH = 1 << 12
_POLICY = HostSortPolicy(
    serial_below=1, part_bytes_from=1, few_bytes_from=1, count_bytes_from=1, count_pairs_from=1, deal_from=1,
    pack_from=1, skewed_bytes_from=1,
)  # fmt: skip


class _Alone(Pool):
    """Divides work as for two threads, and does all of it."""

    def __init__(self) -> None:
        super().__init__(2)

    def run(self, work: Callable[[int], None], count: int) -> None:
        for number in range(count):
            work(number)


def sorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    pool = _Alone()
    for row in _rows(dtype):
        for pairs_from in (1, 1 << 62) if dtype.itemsize == 1 else (1,):
            policy = attrs.evolve(_POLICY, count_in_pairs_from=pairs_from)
            results = np.empty_like(row)
            sort_one(row, results, SortOrder.DESCENDING, policy, pool)
            yield None


def argsorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    pool = _Alone()
    for row in _rows(dtype):
        for order in SortOrder:
            argsort_one(row, np.empty(row.shape, np.intp), order, _POLICY, pool)
            yield None


def _rows(dtype: np.dtype[np.generic]) -> Iterator[HostArray]:
    """The commonest kind first."""
    rng = np.random.default_rng(0)
    word = np.dtype(f"u{dtype.itemsize}")
    if dtype.kind == "f":
        numbers: HostArray = rng.standard_normal(_LENGTH).astype(dtype)
    else:
        numbers = rng.integers(0, 1 << min(62, 8 * dtype.itemsize), _LENGTH).astype(word).view(dtype)
    if dtype.kind == "b":
        numbers = rng.integers(0, 2, _LENGTH).astype(dtype)
    yield numbers
    in_order = np.sort(numbers)
    yield in_order
    yield in_order[::-1].copy()
    yield numbers[rng.integers(0, 8, _LENGTH)]
    yield numbers[rng.integers(0, 100, _LENGTH)]
    mostly = numbers.copy()
    mostly[rng.integers(0, _LENGTH, 6 * _LENGTH)] = numbers[0]  # of one element, and a few of many others
    yield mostly
    yield np.concatenate([in_order[::2], in_order[1::2]])
    if dtype.itemsize == 8:  # ranks that do not fit beside a place: many ties without their lowest bits, or few
        wide = np.array([0, (1 << 62) - 1], np.uint64)
        low = rng.integers(0, 16, _LENGTH).astype(np.uint64)
        yield np.concatenate([low, wide]).view(dtype)
        high = rng.integers(0, 1 << 62, _LENGTH).astype(np.uint64)
        yield np.concatenate([high, high ^ np.uint64(1), wide]).view(dtype)
    if dtype.kind == "f":
        for bits in (0, 7):  # NaNs alike, and NaNs of many kinds
            nans = numbers.copy()
            nans[::5] = np.nan
            nans.view(word)[::5] |= rng.integers(0, bits + 1, nans[::5].size).astype(word)
            yield nans
