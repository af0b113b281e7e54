"""Pieces of an external sort that are partitioned by common pivots instead of being sorted: a third of the work, after
which a bucket is the same part of every piece.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import attrs
import numpy as np

from ..algos.host_sort import Partition
from ..types.indices import SortOrder
from .cuts import Array, Indices


@runtime_checkable
class Partitions(Protocol):
    """An engine that can partition, faster than it sorts."""

    def partition_for(self, dtype: np.dtype[Any], /) -> Partition | None:
        """The partition of elements of a dtype in the order of NumPy's `<`; None if there is none."""
        ...

    def foresee_sorts(self, dtype: np.dtype[Any], order: SortOrder, length: int, /) -> None:
        """Loads in the background what sorts of pieces of about this length will need."""
        ...


class Unbalanced(Exception):
    """Pieces cannot be partitioned evenly, and have to be sorted."""


class Partitioned(Protocol):
    """Work whose runs may be partitioned: see `Work`."""

    @property
    def engine(self) -> object: ...

    @property
    def spilled(self) -> np.dtype[Any]: ...

    def elements(self, piece: Array, start: int, /) -> Array:
        """A piece of the input, from element `start` on, as runs have it. The piece may be overwritten."""
        ...

    def to_bucket(self, piece: Array, out: Array, /) -> None: ...


class Parting:
    """How a piece is partitioned, and how a bucket, a part or several of all pieces, is sorted."""

    def __init__(self, work: Partitioned, order: SortOrder) -> None:
        self._work, self._change = work, Ascending(work.spilled, order)

    @cached_property
    def partition(self) -> Partition | None:
        """None if the engine has none, and can only finish what another has begun."""
        engine = self._work.engine
        return engine.partition_for(self._change.numbers) if isinstance(engine, Partitions) else None

    def numbers(self, piece: Array, start: int) -> Array:
        """What is partitioned: a piece of the input, from element `start` on, as numbers that NumPy compares in the
        order of the result. The piece may be overwritten."""
        return self._change.apply(self._work.elements(piece, start))

    def to_parts(self, piece: Array, start: int, out: Array, pivots: Array) -> Indices:
        """Partitions it. Where parts begin, and the last one's end. Raises Unbalanced."""
        assert self.partition is not None  # else all runs are written
        numbers = self.numbers(piece, start)
        return self.partition(numbers, out.view(numbers.dtype), pivots)

    def foresee_buckets(self, length: int) -> None:
        """Has be loaded what `to_bucket` needs for about so many elements, while runs are made."""
        engine = self._work.engine
        if isinstance(engine, Partitions):
            engine.foresee_sorts(self._change.dtype, self._change.order, length)

    def to_bucket(self, piece: Array, out: Array) -> None:
        """Sorts concatenated parts to a bucket of the result. They may be overwritten."""
        self._change.undo(piece)
        self._work.to_bucket(piece, out)


@attrs.frozen(eq=False)
class Ascending:
    """An invertible change of keys, in place, after which they ascend with NaN and NaT last as NumPy compares them."""

    dtype: np.dtype[Any]  # in native byte order
    order: SortOrder

    @property
    def numbers(self) -> np.dtype[Any]:
        """The dtype of the numbers that are compared."""
        return np.dtype(np.int64) if self.dtype.kind in "Mm" else self.dtype

    def apply(self, keys: Array) -> Array:
        self._flip(keys, 1)
        return keys.view(self.numbers)

    def undo(self, keys: Array) -> None:
        self._flip(keys, -1)

    def _flip(self, keys: Array, step: int) -> None:
        bits = keys.view(f"i{keys.itemsize}")
        is_float, ascends = self.dtype.kind == "f", self.order is SortOrder.ASCENDING
        if is_float and not ascends:
            np.bitwise_xor(bits, np.iinfo(bits.dtype).min, out=bits)  # the sign: of NaNs no operation keeps all bits
        elif not ascends:
            np.invert(bits, out=bits)  # NaT, the least integer, becomes the greatest
        elif self.dtype.kind in "Mm":
            np.subtract(bits, step, out=bits)  # as here
