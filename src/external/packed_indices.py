"""The argsort of keys of up to 32 bits: a run's element is one word of 64, a key's rank above its index in the input.

No two are equal, and to compare them is to compare a key and then the index. So runs and buckets are plain sorts of
words, which take a third of the time of an argsort and a gather, and less room on the disk and in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..algos.words import Transform
from ..types.indices import SortOrder
from .cuts import Array
from .order import Engine, words_of
from .parting import Parting
from .work import FindIndices

_WORD = np.dtype(np.uint64)
_BITS = 64
_WIDEST = 4  # bytes of a key
_BLOCK = 1 << 15  # elements packed or unpacked together, in the nearer caches


def finding_indices(
    dtype: np.dtype[Any], count: int, fields: Sequence[str], order: SortOrder, engine: Engine
) -> FindIndices:
    """The way to find the argsort of so many elements, or of records by some of their fields."""
    packed = FindPackedIndices(dtype, tuple(fields), order, engine)
    keys = packed.keys.columns
    if len(keys) == 1 and keys[0].dtype.itemsize <= _WIDEST and count <= 1 << packed.index_bits:
        return packed
    return FindIndices(dtype, tuple(fields), order, engine)


@attrs.frozen(eq=False, slots=False)
class FindPackedIndices(FindIndices):
    """Finds the stable argsort by one narrow key."""

    @property
    def spilled(self) -> np.dtype[Any]:
        return _WORD

    @property
    def extra(self) -> int:
        return 2 * _WORD.itemsize  # words to be sorted, and what a sort of them takes besides

    @cached_property
    def to_words(self) -> Transform:
        key = self.keys.columns[0]
        return words_of(key.dtype, key.order, ranks=True)

    @property
    def index_bits(self) -> int:
        return _BITS - 8 * self.keys.columns[0].dtype.itemsize

    @property
    def parting(self) -> Parting | None:
        return Parting(self, SortOrder.ASCENDING)

    def describe(self) -> str:
        return f"{super().describe()} packed"

    def elements(self, piece: Array, start: int) -> Array:
        """The words of a piece's elements, of which the first is element `start`."""
        (keys,) = self.keys_of(piece)
        packed, shift = np.empty(piece.size, _WORD), _WORD.type(self.index_bits)
        for first in range(0, piece.size, _BLOCK):
            block = packed[first : first + _BLOCK]
            block[:] = self.to_words(keys[first : first + _BLOCK])
            block <<= shift
            block |= np.arange(start + first, start + first + block.size, dtype=_WORD)
        return packed

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        self.engine.sort(self.elements(piece, start), out, SortOrder.ASCENDING, stable=False)

    def to_bucket(self, piece: Array, out: Array) -> None:
        words = out.view(_WORD)
        self.engine.sort(piece, words, SortOrder.ASCENDING, stable=False)
        words &= _WORD.type((1 << self.index_bits) - 1)
        if not self.result.isnative:
            words.byteswap(inplace=True)

    def words(self, spilled: Array) -> Array:
        return spilled
