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

from ..algos.host_partition import Partition
from ..algos.words import Transform
from ..types.indices import SortOrder
from .cuts import Array
from .order import Engine, words_of
from .parting import Parting, foresee_sorts, partition_of
from .work import FindIndices, Work

_WORD, _INDEX = np.dtype(np.uint64), np.dtype("<i8")
_BITS = 64
_WIDEST = 4  # bytes of a key
_BLOCK = 1 << 15  # elements packed or unpacked together, in the nearer caches
_EXTRA = 2 * _WORD.itemsize  # words to be sorted, and what a sort of them takes besides


def finding_indices(dtype: np.dtype[Any], count: int, fields: Sequence[str], order: SortOrder, engine: Engine) -> Work:
    """The way to find the argsort of so many elements, or of records by some of their fields."""
    by_all = FindIndices(dtype, tuple(fields), order, engine)
    keys = by_all.keys.columns
    is_packed = len(keys) == 1 and keys[0].dtype.itemsize <= _WIDEST
    return FindPackedIndices(by_all) if is_packed and count <= 1 << _index_bits(keys[0].dtype) else by_all


def _index_bits(key: np.dtype[Any]) -> int:
    return _BITS - 8 * key.itemsize


@attrs.frozen(eq=False)
class FindPackedIndices:
    """Finds the stable argsort by one narrow key."""

    by_all: FindIndices
    spilled: np.dtype[Any] = _WORD
    result: np.dtype[Any] = _INDEX

    @property
    def source(self) -> np.dtype[Any]:
        return self.by_all.source

    @property
    def engine(self) -> Engine:
        return self.by_all.engine

    @property
    def extra(self) -> int:
        return _EXTRA

    @cached_property
    def to_words(self) -> Transform:
        key = self.by_all.keys.columns[0]
        return words_of(key.dtype, key.order, ranks=True)

    @cached_property
    def _index_bits(self) -> int:
        return _index_bits(self.by_all.keys.columns[0].dtype)

    @property
    def parting(self) -> Parting | None:
        return PartIndices(self, partition_of(self.engine, _WORD))

    def describe(self) -> str:
        return f"{self.by_all.describe()} packed"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        self.engine.sort(self.packed(piece, start), out, SortOrder.ASCENDING, stable=False)

    def packed(self, piece: Array, start: int) -> Array:
        """Words of a piece's elements, of which the first is element `start`."""
        keys = piece[self.by_all.fields[0]] if self.by_all.fields else piece
        packed, shift = np.empty(piece.size, _WORD), _WORD.type(self._index_bits)
        for first in range(0, piece.size, _BLOCK):
            block = packed[first : first + _BLOCK]
            block[:] = self.to_words(keys[first : first + _BLOCK])
            block <<= shift
            block |= np.arange(start + first, start + first + block.size, dtype=_WORD)
        return packed

    def to_bucket(self, piece: Array, out: Array) -> None:
        words = out.view(_WORD)
        self.engine.sort(piece, words, SortOrder.ASCENDING, stable=False)
        words &= _WORD.type((1 << self._index_bits) - 1)
        if not _INDEX.isnative:
            words.byteswap(inplace=True)

    def to_result(self, piece: Array, out: Array) -> None:
        self.by_all.to_result(piece, out)

    def words(self, spilled: Array) -> Array:
        return spilled


@attrs.frozen(eq=False)
class PartIndices:
    """Partitions the words."""

    work: FindPackedIndices
    partition: Partition | None

    def note(self, piece: Array, start: int) -> None:
        pass

    def numbers(self, piece: Array, start: int) -> Array:
        return self.work.packed(piece, start)

    def foresee_buckets(self, length: int) -> None:
        foresee_sorts(self.work.engine, _WORD, SortOrder.ASCENDING, length)

    def to_bucket(self, piece: Array, out: Array) -> None:
        self.work.to_bucket(piece, out)
