"""Sorts rows by the radix sort kernels, on processors where NumPy's own sort is slow.

The schedule is the one that `algorithm=SerialRadix()` runs. Digits in which no element differs from another are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray, Prepared, prepared_by
from ..background import background
from ..pool import Pool
from .key_words import Places, bits_of
from .numpy_speed import numpy_sorts_slowly

if TYPE_CHECKING:
    from ....algos.radix_serial import SerialRadixPolicy

_BATCH = 1 << 19  # elements of several rows that are sorted together: as many as the caches hold
_LEAST_SHARE = 1 << 13


def suits_radix(size: int, length: int, dtype: np.dtype[np.generic], policy: HostSortPolicy) -> bool:
    """Whether rows of a length are to be sorted by radix."""
    are_many = length >= policy.radix_rows_from and size >= policy.radix_in_all_from
    if not (length >= policy.radix_from or are_many) or length > LARGEST_U32 or dtype.itemsize < 4:
        return False
    return goes_by_radix(dtype.itemsize, policy)


def goes_by_radix(itemsize: int, policy: HostSortPolicy) -> bool:
    """Whether the policy is for sorts by radix, or where it leaves that open NumPy sorts such elements slowly."""
    return numpy_sorts_slowly(itemsize) if policy.by_radix is None else policy.by_radix


def can_sort_by_radix(dtype: np.dtype[np.generic], order: SortOrder, nbytes: int) -> bool:
    """Whether the kernels are there, for rows of so many bytes in all."""
    return background.has((loading, dtype, order), nbytes)


def loading(dtype: np.dtype[np.generic], order: SortOrder) -> Iterator[object]:
    """Compiles all kernels that such rows need: of one that is shared out, and of rows that are not."""
    bits = 8 * dtype.itemsize
    for rows in (1, 2):
        for number in (1, 2, 3):  # of passes: a first one that is the last, a first and a last, and one between
            source = np.zeros((rows, 2), dtype)
            sort_by_bits(source, np.empty_like(source), order, range(bits - 8 * number, bits), 1)
            yield None


def sort_by_radix(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
    """Sorts each row into results that lie apart. Floats that tie are put in the order of their bits."""
    rows, length = source.shape
    are_few = rows < pool.threads or rows == 1
    batch = 1 if are_few else max(pool.threads, _BATCH // length)
    for start in range(0, rows, batch):
        some, found = source[start : start + batch], results[start : start + batch]
        bits, threads = (bits_that_differ(some[0]), pool.threads) if are_few else (range(8 * source.itemsize), 1)
        sort_by_bits(some, found, order, bits, threads)


def argsort_by_radix(row: HostArray, places: Places, threads: int) -> None:
    """Writes where the elements of a row come from, in order. Equal ones keep theirs."""
    bits, policy = range(8 * row.itemsize), _policy(threads)
    prepared = prepared_sort(row.dtype, SortOrder.ASCENDING, 1, row.size, bits, policy, finds_places=True)
    prepared.run([bits_of(row), places.view(np.uint64)])


def sort_by_bits(source: HostArray, results: HostArray, order: SortOrder, bits: range, threads: int) -> None:
    """Sorts rows by some of their bits: those that are alike in these keep their order."""
    rows, length = source.shape
    prepared = prepared_sort(source.dtype, order, rows, length, bits, _policy(threads))
    prepared.run([bits_of(source).reshape(-1), bits_of(results).reshape(-1)])


@cache
def _policy(shares: int) -> SerialRadixPolicy:
    from ....algos.radix_serial import SerialRadixPolicy

    return SerialRadixPolicy(shares=shares, least=_LEAST_SHARE)


@lru_cache(maxsize=128)
def prepared_sort(
    dtype: np.dtype[np.generic], order: SortOrder, rows: int, length: int, bits: range, policy: SerialRadixPolicy,
    *, finds_places: bool = False,
) -> Prepared:  # fmt: skip
    from ....algos.batch import Batch
    from ....algos.radix_serial import serial_radix_sort
    from ....types.keys import RankKey
    from ....types.scalars import U64
    from ...registry import target

    key = key_for(dtype)
    own, places = (RankKey(key), U64) if finds_places else (key, None)
    return prepared_by(target("cpu"), serial_radix_sort(Batch(own, rows, length, order, places=places), policy, bits))


def bits_that_differ(row: HostArray) -> range:
    """Of integers: numbers from a narrow range have their high digits in common. The lowest count in any case."""
    size = 8 * row.itemsize
    if row.dtype.kind not in "iu":
        return range(size)
    words = row.view(f"i{row.itemsize}") if row.dtype.kind == "i" else row
    low, high = int(words.min()), int(words.max())
    return range(size) if (low < 0) != (high < 0) else range(max(1, (low ^ high).bit_length()))
