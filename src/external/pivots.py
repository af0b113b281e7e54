"""Chooses the pivots that pieces of an external sort are partitioned by: from pages all over the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .cuts import Array
from .direct import PAGE, Bytes
from .parting import Parting

Sampled: TypeAlias = Callable[[int, int], Bytes]  # some of the input, from a byte to another

_PAGES = 256  # looked at, each a read: together they take less than a hundredth of a sort's time
_PARTS = (8, 32, 128, 512)  # numbers of parts that a partition makes
_ROOM = 1.5  # parts for a bucket of usual size, at least: they are of about one size
_MOST = 0.9  # of a bucket's room that the largest part may take, by the samples


def pivots_of(sampled: Sampled, parting: Parting, dtype: np.dtype[Any], count: int, length: int) -> Array | None:
    """The pivots for `count` elements of a dtype, in runs of a length; None if the samples say that some part would be
    longer than a run, or so many parts took longer than to sort. The same whenever it is called."""
    partition = parting.partition
    parts = next((parts for parts in _PARTS if parts * length >= _ROOM * count), 0)
    page = max(1, PAGE // dtype.itemsize)
    looks = min(_PAGES, count // page)
    if not parts or not looks or partition is None or parts > partition.most_parts:
        return None
    numbers = np.random.default_rng(0)  # not at equal distances, with which the data may have something in common
    starts = [count * look // looks + int(numbers.integers(count // looks - page + 1)) for look in range(looks)]
    sample = np.concatenate(
        [
            parting.numbers(sampled(start * dtype.itemsize, (start + page) * dtype.itemsize).view(dtype), start)
            for start in starts
        ]
    )
    sample.sort()
    ordered = sample[: np.count_nonzero(sample == sample)]  # without NaNs, which are in the last part
    if not ordered.size:
        return None
    pivots: Array = ordered[np.arange(1, parts) * ordered.size // parts]
    sizes = np.diff(np.searchsorted(sample, pivots), prepend=0, append=sample.size)
    return pivots if sizes.max() * count <= _MOST * length * sample.size else None
