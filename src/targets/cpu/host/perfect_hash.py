"""Finding an element among a few: what counting a row of few different elements goes by."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ...base import HostArray
from .key_words import Elements, bits_of
from .sample import different_of, sample_of

U8s = npt.NDArray[np.uint8]

_MOST = 256  # as many as a byte tells apart
_SEEN_OF_MOST = 176  # so many of them are seen at a glance, or a few more than that
_SAMPLE = 4096  # here all of them are seen, and often, unless some are rare
_TRIES = 64


@attrs.frozen
class Finder:
    """Finds an element among a few by a product: its highest bits are another number for each."""

    values: Elements
    multiplier: np.uint64
    shift: np.uint64
    table: U8s

    @classmethod
    def of(cls, values: Elements) -> Finder | None:
        bits = max(8, 2 * (values.size - 1).bit_length())
        shift, wide = np.uint64(64 - bits), values.astype(np.uint64)
        rng = np.random.default_rng(values.size)
        for _ in range(_TRIES):  # about every other multiplier will do
            multiplier = rng.integers(0, 1 << 64, dtype=np.uint64) | np.uint64(1)
            slots = (wide * multiplier) >> shift
            if np.unique(slots).size == values.size:
                table = np.zeros(1 << bits, np.uint8)
                table[slots] = np.arange(values.size)
                return cls(values, multiplier, shift, table)
        return None


def finder_for(row: HostArray, policy: HostSortPolicy) -> Finder | None:
    """For the bits of a row's elements, if a sample has few, and all of them more than once: else there are others."""
    if different_of(row, policy.glance) > _SEEN_OF_MOST:
        return None
    values, counts = np.unique(sample_of(bits_of(row), _SAMPLE), return_counts=True)
    return Finder.of(values) if values.size <= _MOST and counts.min() > 1 else None
