"""What an external sort does with fixed-size elements: sorts keys, sorts records by fields, or finds an argsort."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self, cast

import attrs
import numpy as np

from ..types.dtypes import native
from ..types.indices import SortOrder
from .cuts import Array
from .order import Engine, KeyColumn, KeyOrder, words_of
from .parting import Parting

_INDEX = np.dtype("<i8")
_WORD, _BITS = np.dtype(np.uint64), 64
_WIDEST = 4  # bytes of a key whose element in a run is one word
_BLOCK = 1 << 15  # elements packed or unpacked together, in the nearer caches


class Work(ABC):
    """How pieces become sorted runs, and slices of runs become sorted buckets. Its repr identifies the work, for the
    journal."""

    source: np.dtype[Any]  # of input elements
    order: SortOrder
    engine: Engine

    @property
    def spilled(self) -> np.dtype[Any]:
        """The dtype of elements in runs."""
        return self.source

    @property
    def result(self) -> np.dtype[Any]:
        """The dtype of the result's elements."""
        return self.source

    @property
    @abstractmethod
    def extra(self) -> int:
        """Temporary bytes for an element while a piece is sorted, besides input and output."""

    @property
    def parting(self) -> Parting | None:
        """How pieces are partitioned instead of sorted; None if they are not."""
        return None

    @abstractmethod
    def to_run(self, piece: Array, start: int, out: Array) -> None:
        """Sorts a piece of the input, from element `start` on, to a run. The piece may be overwritten."""

    @abstractmethod
    def to_bucket(self, piece: Array, out: Array) -> None:
        """Sorts concatenated slices of runs to a bucket of the result. They may be overwritten."""

    @property
    def alone(self) -> Self:
        """The same for a single piece, which may use all threads."""
        return cast(Self, attrs.evolve(cast(Any, self), engine=self.engine.alone))

    def elements(self, piece: Array, start: int) -> Array:
        """A piece of the input, from element `start` on, as runs have it, maybe in place."""
        return piece

    def to_result(self, piece: Array, out: Array) -> None:
        """Sorts the whole input at once. It may be overwritten."""
        self.to_bucket(self.elements(piece, 0), out)

    @abstractmethod
    def words(self, spilled: Array) -> Array:
        """Integers or bytes that compare in the order of the runs' elements."""


@attrs.frozen(eq=False)
class SortElements(Work):
    """Sorts elements that are keys themselves."""

    source: np.dtype[Any]
    order: SortOrder
    stable: bool
    engine: Engine = attrs.field(repr=False)

    @property
    def spilled(self) -> np.dtype[Any]:
        return native(self.source)

    @property
    def extra(self) -> int:
        return self.source.itemsize

    @property
    def parting(self) -> Parting | None:
        if self.stable and self.source.kind == "f":
            return None  # a partition leaves floats that tie in any order
        return Parting(self, self.order)

    def elements(self, piece: Array, start: int) -> Array:
        return self._swapped(piece).view(self.spilled)

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        self.engine.sort(self.elements(piece, start), out, self.order, stable=self.stable)

    def to_bucket(self, piece: Array, out: Array) -> None:
        machines = out.view(self.spilled)
        self.engine.sort(piece, machines, self.order, stable=self.stable)
        self._swapped(machines)

    def words(self, spilled: Array) -> Array:
        return words_of(spilled, self.order, ranks=self.stable)

    def _swapped(self, elements: Array) -> Array:
        """Converts in place between the file's and the machine's byte order."""
        return elements if self.source.isnative else elements.byteswap(inplace=True)


@attrs.frozen(eq=False, slots=False)
class ByFields(Work):
    """By some fields of records, stably; by the elements themselves, where there are none."""

    source: np.dtype[Any]
    fields: tuple[str, ...]
    order: SortOrder
    engine: Engine = attrs.field(repr=False)

    @cached_property
    def keys(self) -> KeyOrder:
        dtypes = [self.source[field] for field in self.fields] or [self.source]
        return KeyOrder([KeyColumn(native(dtype), self.order) for dtype in dtypes])

    def keys_of(self, piece: Array) -> list[Array]:
        """The keys of a piece of the input."""
        return [piece[field] for field in self.fields] or [piece]

    @property
    def extra(self) -> int:
        return self.keys.extra


@attrs.frozen(eq=False, slots=False)
class SortRecords(ByFields):
    """Sorts records."""

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        self.to_bucket(piece, out)

    def to_bucket(self, piece: Array, out: Array) -> None:
        indices = self.keys.argsort(self.keys_of(piece), self.engine)
        np.take(piece, indices, out=out, mode="clip")  # mode "raise" would buffer the output

    def words(self, spilled: Array) -> Array:
        return self.keys.words(self.keys_of(spilled))


@attrs.frozen(eq=False, slots=False)
class FindIndices(ByFields):
    """Finds the argsort. Runs hold keys with their indices in the input."""

    @property
    def spilled(self) -> np.dtype[Any]:
        return np.dtype([("index", _INDEX), *((f"key{i}", key.dtype) for i, key in enumerate(self.keys.columns))])

    @property
    def result(self) -> np.dtype[Any]:
        return _INDEX

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        keys = self.keys_of(piece)
        indices = self.keys.argsort(keys, self.engine)
        np.add(indices, start, out=out["index"])
        for i, key in enumerate(keys):
            out[f"key{i}"] = key[indices]

    def to_bucket(self, piece: Array, out: Array) -> None:
        np.take(piece["index"], self.keys.argsort(self._of_run(piece), self.engine), out=out, mode="clip")

    def to_result(self, piece: Array, out: Array) -> None:
        out[:] = self.keys.argsort(self.keys_of(piece), self.engine)

    def words(self, spilled: Array) -> Array:
        return self.keys.words(self._of_run(spilled))

    def _of_run(self, spilled: Array) -> list[Array]:
        return [spilled[f"key{i}"] for i in range(len(self.keys.columns))]


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
    """By one narrow key: a run's element is one word of 64 bits, a key's rank above its index in the input. No two are
    equal, and to compare them is to compare a key and then the index. So runs and buckets are plain sorts of words,
    which take a third of the time of an argsort and a gather, and less room on the disk and in memory."""

    @property
    def spilled(self) -> np.dtype[Any]:
        return _WORD

    @property
    def extra(self) -> int:
        return 2 * _WORD.itemsize  # words to be sorted, and what a sort of them takes besides

    @property
    def index_bits(self) -> int:
        return _BITS - 8 * self.keys.columns[0].dtype.itemsize

    @property
    def parting(self) -> Parting | None:
        return Parting(self, SortOrder.ASCENDING)

    def elements(self, piece: Array, start: int) -> Array:
        """The elements' words."""
        (keys,) = self.keys_of(piece)
        packed, shift = np.empty(piece.size, _WORD), _WORD.type(self.index_bits)
        for first in range(0, piece.size, _BLOCK):
            block = packed[first : first + _BLOCK]
            block[:] = words_of(keys[first : first + _BLOCK], self.order, ranks=True)
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
