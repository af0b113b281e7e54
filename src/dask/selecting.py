"""top_k and unique for dask arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar, SupportsIndex, cast

import attrs
import dask.array as da
import numpy as np

from ..api.arguments import checked_count
from ..api.sorting import top_k as top_k_of_chunk
from ..external.cuts import Array, Indices
from ..types.checks import checked_flag
from ..types.errors import InvalidArgumentError
from .cutting import Run
from .exchange import BOXED, boxed, gathered, meta_of, sorted_chunks, unzipped
from .sorting import FindIndices, SortKeys, checked, checked_target


def top_k(
    x: da.Array, /, k: SupportsIndex, *, axis: SupportsIndex | None = -1, largest: bool = True, sorted: bool = True,
    target: str = "auto", exchange: str = "auto",
) -> tuple[da.Array, da.Array]:  # fmt: skip
    """The k largest (or smallest) elements along an axis, and their int64 indices, as in `gpusort.top_k`. Lazy.

    The top k of each chunk are gathered in one task, which selects the top k of those. If that would be a quarter of a
    long row or more, the row is sorted instead, and the result has several chunks. `axis`, `largest` and `sorted` are
    those of `gpusort.top_k`; all else is as for `sort`.
    """
    count, name = checked_count(k), checked_target(target)
    down, in_order = checked_flag("largest", largest), checked_flag("sorted", sorted)
    array, number, way = checked(x, "x", axis, exchange)
    length, several = array.shape[number], array.numblocks[number]
    if count > length:
        raise InvalidArgumentError(f"k: expected 0 to the {length} elements of a row, found {count}")
    values, indices = meta_of(array), meta_of(array, np.dtype(np.int64))
    if array.ndim == 1 and several > 1 and 4 * count * several >= length:
        work = FindIndices(down, name, with_keys=True)
        first, second = unzipped(sorted_chunks(array, work, way, BOXED), values, indices, array.chunks)
        return first[:count], second[:count]
    selection = Selection(count, number, down, in_order, name)
    found = boxed(array, selection.of_chunk)
    if several > 1:
        found = gathered(selection.of_all, found, axis=number)
    return unzipped(found, values, indices, (*array.chunks[:number], (count,), *array.chunks[number + 1 :]))


def unique(x: da.Array, /, *, target: str = "auto", exchange: str = "auto") -> da.Array:
    """The distinct elements of a dask array, sorted: one-dimensional, in as many chunks, of unknown lengths. Lazy.

    Of equal elements the first is kept; all NaNs (or NaTs) are equal. Duplicates within a chunk are dropped before the
    exchange. All else is as for `sort`.
    """
    name = checked_target(target)
    array, _, way = checked(x, "x", None, exchange)
    work, count = KeepFirsts(False, name, True), array.numblocks[0]
    meta, chunks = meta_of(array), (cast("tuple[int, ...]", (np.nan,) * count),)
    if count == 1:
        return array.map_blocks(work.of_chunk, chunks=chunks, meta=meta)
    return sorted_chunks(array, work, way, meta, chunks)


@attrs.frozen
class Selection:
    """Top-k of chunks and of gathered candidates. Chunks return their length too, for the offsets of later indices."""

    k: int
    axis: int
    largest: bool
    in_order: bool
    target: str

    def of_chunk(self, chunk: Any) -> tuple[Any, Any, int]:
        length: int = chunk.shape[self.axis]
        return (*self._first(chunk, min(self.k, length)), length)

    def of_all(self, found: Sequence[tuple[Any, Any, int]]) -> tuple[Any, Any]:
        lengths = [length for _, _, length in found]
        offsets = accumulate(lengths, initial=0)
        values = np.concatenate([values for values, _, _ in found], self.axis)
        indices = np.concatenate(
            [indices + start for (_, indices, _), start in zip(found, offsets, strict=False)], self.axis
        )
        values, order = self._first(values, self.k)
        return values, np.take_along_axis(indices, order, self.axis)

    def _first(self, x: Any, k: int) -> tuple[Any, Any]:
        return top_k_of_chunk(x, k, axis=self.axis, largest=self.largest, sorted=self.in_order, target=self.target)


@attrs.frozen
class KeepFirsts(SortKeys):
    """Sorts keys and drops duplicates, in chunks and again in the result's chunks."""

    keeps_equals: ClassVar[bool] = True

    def words(self, run: Run, indices: slice | Indices) -> Array:
        """Of bools two: any byte but zero is true."""
        found = super().words(run, indices)
        return np.minimum(found, 1) if run[0].dtype == np.bool_ else found

    def of_chunk(self, chunk: Any) -> Any:
        (keys,) = self.to_run(chunk)
        return keys

    def to_run(self, chunk: Any) -> Run:
        return tuple([_firsts(keys) for keys in super().to_run(chunk)])

    def to_chunk(self, pieces: Sequence[Run]) -> Any:
        return _firsts(super().to_chunk(pieces))


def _firsts(keys: Any) -> Any:
    """The distinct elements of sorted keys; NaNs are equal."""
    before, behind = keys[:-1], keys[1:]
    is_other = keys == keys
    is_other[:1] = True
    is_other[1:] = (before != behind) & ((before == before) | (behind == behind))
    return keys[is_other]
