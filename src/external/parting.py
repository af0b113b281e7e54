"""Pieces of an external sort that are partitioned by common pivots instead of being sorted: a third of the work, after
which a bucket is the same part of every piece. The pivots are chosen from pages all over the input."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..algos.host_sort import Partition
from ..types.indices import SortOrder
from .cuts import Array, Indices
from .direct import PAGE, Bytes

if TYPE_CHECKING:
    from .work import FindPackedIndices, SortElements

_PAGES = 256  # looked at, each a read: together they take less than a hundredth of a sort's time
_PARTS = (8, 32, 128, 512)  # numbers of parts that a partition makes
_ROOM = 1.5  # parts for a bucket of usual size, at least: they are of about one size
_MOST = 0.9  # of a bucket's room that the largest part may take, by the samples


class Unbalanced(Exception):
    """Pieces cannot be partitioned evenly, and have to be sorted."""


class Parting:
    """How a piece is partitioned, and how a bucket, a part or several of all pieces, is sorted."""

    def __init__(self, work: SortElements | FindPackedIndices, order: SortOrder) -> None:
        self._work, self._change = work, Ascending(work.spilled, order)

    @cached_property
    def partition(self) -> Partition | None:
        """None if the engine has none, and can only finish what another has begun."""
        return self._work.engine.partition_for(self._change.numbers)

    def pivots(self, copied: Callable[[int, int], Bytes], count: int, length: int) -> Array:
        """Those for so many elements, in runs of a length, by some of the input's bytes. Raises Unbalanced if these say
        that some part would be longer than a run, or so many parts took longer than to sort. The same whenever it is
        called, by any version of Python and NumPy: a sort may be gone on with by others."""
        parts, dtype = next((parts for parts in _PARTS if parts * length >= _ROOM * count), 0), self._work.source
        page = max(1, PAGE // dtype.itemsize)
        looks = min(_PAGES, count // page)
        if not parts or not looks or self.partition is None or parts > self.partition.most_parts:
            raise Unbalanced
        numbers = Random(0)  # not at equal distances, with which the data may have something in common
        starts = [count * look // looks + int(numbers.random() * (count // looks - page + 1)) for look in range(looks)]
        pages = [copied(start * dtype.itemsize, (start + page) * dtype.itemsize).view(dtype) for start in starts]
        sample = np.concatenate([self._numbers(held, start) for held, start in zip(pages, starts, strict=True)])
        sample.sort()
        ordered = sample[: np.count_nonzero(sample == sample)]  # without NaNs, which are in the last part
        if not ordered.size:
            raise Unbalanced
        pivots: Array = ordered[np.arange(1, parts) * ordered.size // parts]
        sizes = np.diff(np.searchsorted(sample, pivots), prepend=0, append=sample.size)
        if sizes.max() * count > _MOST * length * sample.size:
            raise Unbalanced
        return pivots

    def _numbers(self, piece: Array, start: int) -> Array:
        """A piece of the input, from element `start` on, as numbers that NumPy compares in the order of the result. The
        piece may be overwritten."""
        return self._change.apply(self._work.elements(piece, start))

    def to_parts(self, piece: Array, start: int, out: Array, pivots: Array) -> Indices:
        """Partitions it. Where parts begin, and the last one's end. Raises Unbalanced. Parts hold the elements
        themselves, as in place there may be no others."""
        assert self.partition is not None  # else all runs are written
        numbers = self._numbers(piece, start)
        ends = self.partition(numbers, out.view(numbers.dtype), pivots)
        self._change.flip(out, -1)
        return ends

    def foresee_buckets(self, length: int) -> None:
        """Has be loaded what `to_bucket` needs for about so many elements, while runs are made."""
        self._work.engine.foresee_sorts(self._change.dtype, self._change.order, length)

    def to_bucket(self, piece: Array, out: Array) -> None:
        """Sorts concatenated parts to a bucket of the result. They may be overwritten."""
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
        self.flip(keys, 1)
        return keys.view(self.numbers)

    def flip(self, keys: Array, step: int) -> None:
        """With -1 after 1 all is as before."""
        bits = keys.view(f"i{keys.itemsize}")
        is_float, ascends = self.dtype.kind == "f", self.order is SortOrder.ASCENDING
        if is_float and not ascends:
            np.bitwise_xor(bits, np.iinfo(bits.dtype).min, out=bits)  # the sign: of NaNs no operation keeps all bits
        elif not ascends:
            np.invert(bits, out=bits)  # NaT, the least integer, becomes the greatest
        elif self.dtype.kind in "Mm":
            np.subtract(bits, step, out=bits)  # as here
