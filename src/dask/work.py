"""The operations on chunks and runs of dask arrays: sort, argsort, sort by key.

Arrays are NumPy's or CuPy's. A run is cut by the words that its chunk was sorted by: those of all bits, or for a stable
sort those that equal elements (0.0 and -0.0, NaNs) share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ..api.arguments import ORDERS
from ..api.sorting import argsort, sort, sort_by_key, sort_inplace
from ..external.cuts import Array, Indices
from ..external.order import words_of
from .cutting import Run, Work


def joined(parts: Sequence[Any], axis: int = 0) -> Any:
    """Concatenates, keeping the dtype's byte order."""
    return np.concatenate(parts, axis).astype(parts[0].dtype, copy=False)


@attrs.frozen
class SortKeys(Work):
    """Sorts keys. Runs are tuples of arrays, keys first."""

    descending: bool
    target: str
    by_ranks: bool  # whether equal elements share a word, and so keep their order

    def to_run(self, chunk: Any) -> Run:
        return (sort(chunk, descending=self.descending, stable=self.by_ranks, target=self.target),)

    def dtype(self, run: Run) -> object:
        return run[0].dtype.newbyteorder("=")

    def words(self, run: Run, indices: slice | Indices) -> Array:
        keys = run[0]
        keys = keys[indices if isinstance(indices, slice) else np.asarray(indices, like=keys)]  # on the keys' device
        host: Array = keys.get() if hasattr(keys, "get") else np.asarray(keys)
        return words_of(host, ORDERS[self.descending], ranks=self.by_ranks)

    def to_chunk(self, pieces: Sequence[Run]) -> Any:
        keys = joined([keys for (keys,) in pieces])
        sort_inplace(keys, descending=self.descending, stable=self.by_ranks, target=self.target)
        return keys


@attrs.frozen
class FindIndices(SortKeys):
    """Finds the argsort: runs hold keys with indices into their chunk, to which pieces add the chunk's offset."""

    by_ranks: bool = True
    with_keys: bool = False  # whether the result has the sorted keys too

    def to_run(self, chunk: Any) -> Run:
        order = argsort(chunk, descending=self.descending, target=self.target)
        return chunk[order], order.astype(np.uint32 if order.size < 1 << 32 else np.int64)

    def piece(self, run: Run, start: int, stop: int, offset: int) -> Run:
        return *super().piece(run, start, stop, offset), offset

    def to_chunk(self, pieces: Sequence[Run]) -> Any:
        keys = joined([keys for keys, _, _ in pieces])
        indices = joined([indices.astype(np.int64) + offset for _, indices, offset in pieces])
        order = argsort(keys, descending=self.descending, target=self.target)
        return (keys[order], indices[order]) if self.with_keys else indices[order]


@attrs.frozen
class SortPairs(SortKeys):
    """Sorts keys and values as `sort_by_key` does: keys by all their bits."""

    by_ranks: bool = False

    def to_run(self, chunk: Run) -> Run:
        keys, values = chunk
        return sort_by_key(keys, values, descending=self.descending, target=self.target)

    def to_chunk(self, pieces: Sequence[Run]) -> Run:
        keys, values = zip(*pieces, strict=True)
        return self.to_run((joined(keys), joined(values)))
