"""sort, argsort and sort_by_key of dask arrays: their arguments, which are checked when the graph is built, and what is
done to chunks and runs.

Chunks are NumPy's or CuPy's. A run is cut by the words that its chunk was sorted by: those of all bits, or for a stable
sort those that equal elements (0.0 and -0.0, NaNs) share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, SupportsIndex

import attrs
import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from ..api import sorting as of_chunks
from ..api.arguments import ORDERS, axis_or_none
from ..arrays.registry import recognised
from ..external.cuts import Array, Indices
from ..external.order import words_of
from ..operations.argsort import different_sizes
from ..operations.base import checked_axis
from ..targets.registry import require_name
from ..types.checks import checked_flag
from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from .cutting import Run, Work
from .exchange import BOXED, Exchange, boxed, meta_of, sorted_chunks, unzipped


def sort(
    x: da.Array, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    target: str = "auto", exchange: str = "auto",
) -> da.Array:  # fmt: skip
    """A sorted dask array of the same chunks, bit for bit that of `gpusort.sort`. Lazy.

    `axis`, `descending` and `stable` are those of `gpusort.sort`.

    A row in one chunk is sorted there. A row in several chunks takes three steps: chunks are sorted, cut exactly at the
    result's chunk boundaries, and each result chunk sorts the pieces it gets. `exchange` is how pieces move: "shared"
    through the memory of one process, "p2p" by the P2P shuffle of `distributed`, "tasks" as results of tasks. "auto" is
    shared for dask's threads; with a distributed client it is tasks for up to 32 chunks, or for chunks that are not
    NumPy's, and else p2p. `target` sorts the chunks; "auto" works where they lie.
    """
    down, keep, name = checked_flag("descending", descending), checked_flag("stable", stable), checked_target(target)
    array, number, way = checked(x, "x", axis, exchange)
    chunk = partial(of_chunks.sort, axis=number, descending=down, stable=keep, target=name)
    return _sorted(array, number, SortKeys(down, name, keep), chunk, way, array.dtype)


def argsort(
    x: da.Array, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = True,
    target: str = "auto", exchange: str = "auto",
) -> da.Array:  # fmt: skip
    """The stable argsort along an axis, as int64 indices like those of `gpusort.argsort`. All else is as for `sort`."""
    checked_flag("stable", stable)
    down, name = checked_flag("descending", descending), checked_target(target)
    array, number, way = checked(x, "x", axis, exchange, takes_scalars=True)
    chunk = partial(of_chunks.argsort, axis=number, descending=down, target=name)
    return _sorted(array, number, FindIndices(down, name), chunk, way, np.dtype(np.int64))


def sort_by_key(
    keys: da.Array, values: da.Array, /, *, descending: bool = False, target: str = "auto", exchange: str = "auto"
) -> tuple[da.Array, da.Array]:
    """Sorts keys, and values by their keys, as `gpusort.sort_by_key` does.

    Both are one-dimensional, of one length; the values are rechunked like the keys. All else is as for `sort`.
    """
    down, name = checked_flag("descending", descending), checked_target(target)
    _, _, way = checked(keys, "keys", -1, exchange, takes_scalars=True)  # whose shape is refused beside the values'
    require("values", values)
    recognised("values", meta_of(values))
    values = _chunked_like(keys, values)
    pairs = boxed(keys, _pair, values)
    work = SortPairs(down, name)
    made = sorted_chunks(pairs, work, way, BOXED) if keys.numblocks[0] > 1 else boxed(pairs, work.to_run)
    return unzipped(made, meta_of(keys), meta_of(values), keys.chunks)


def _chunked_like(keys: da.Array, values: da.Array) -> da.Array:
    """The values rechunked like the keys. With unknown lengths the numbers of chunks must be equal; tasks compare their
    lengths."""
    is_known = not np.isnan(keys.size) and not np.isnan(values.size)
    fits = keys.shape == values.shape if is_known else keys.numblocks == values.numblocks
    if keys.ndim != 1 or values.ndim != 1 or not fits:
        raise different_sizes("values", keys.shape, values.shape)
    return values.rechunk(keys.chunks) if is_known and keys.chunks != values.chunks else values


def _pair(keys: Any, values: Any) -> Run:
    return keys, values


def _sorted(x: da.Array, axis: int, work: Work, chunk: Any, exchange: Exchange, dtype: np.dtype[Any]) -> da.Array:
    """Sorts rows along an axis: within their chunk, rechunked to one chunk if they fit, or row by row."""
    meta = meta_of(x, dtype)
    if x.numblocks[axis] == 1 or x.size == 0:  # without elements dask cannot divide other axes into chunks
        return x.map_blocks(chunk, token="gpusort-rows", meta=meta)
    if x.ndim == 1:
        return sorted_chunks(x, work, exchange, meta)
    require_sizes(x)
    if x.shape[axis] * x.dtype.itemsize <= parse_bytes(dask.config.get("array.chunk-size")):
        rows = x.rechunk({number: -1 if number == axis else "auto" for number in range(x.ndim)})
        return rows.map_blocks(chunk, token="gpusort-rows", meta=meta).rechunk(x.chunks)
    return _row_by_row(x, axis, work, exchange, dtype).rechunk(x.chunks)


def _row_by_row(x: da.Array, axis: int, work: Work, exchange: Exchange, dtype: np.dtype[Any]) -> da.Array:
    """A distributed sort for each row: rows are longer than a chunk, so there are not many."""
    if x.ndim == 1:
        return sorted_chunks(x, work, exchange, meta_of(x, dtype))
    other = 1 if axis == 0 else 0
    rows = [x[(slice(None),) * other + (number,)] for number in range(x.shape[other])]
    return da.stack([_row_by_row(row, axis - (other < axis), work, exchange, dtype) for row in rows], axis=other)


# -- arguments --------------------------------------------------------------------------------------------


def require(name: str, x: object, kind: type = da.Array) -> None:
    """Raises UnsupportedTypeError unless x is a dask collection of this kind."""
    if not isinstance(x, kind):
        what = "array" if kind is da.Array else "dataframe"
        raise UnsupportedTypeError(f"{name}: expected a dask {what}, found {type(x).__name__}")


def checked_target(target: object) -> str:
    """Raises UnsupportedTypeError unless the target is a name, for tasks open it where they run, and
    InvalidArgumentError if there is none of that name."""
    if not isinstance(target, str):
        raise UnsupportedTypeError(f"target: expected a name for dask arrays, e.g. 'cuda', found {target!r}")
    require_name(target)
    return target


def checked(
    x: da.Array, name: str, axis: SupportsIndex | None, exchange: str, *, takes_scalars: bool = False
) -> tuple[da.Array, int, Exchange]:
    """The array, the axis, and the exchange; the flattened array if axis is None. With `takes_scalars`, an array of no
    dimensions is a row of one."""
    require(name, x)
    recognised(name, meta_of(x))
    key_for(x.dtype, name)
    number = axis_or_none(axis)
    if number is None or (takes_scalars and not x.ndim):
        x, number = _flattened(x), number or 0
    number = checked_axis(number, x.ndim)
    return x, number, Exchange.of(exchange, x, x.numblocks[number])


def _flattened(x: da.Array) -> da.Array:
    """In one dimension. dask cannot flatten what has no elements, nor, of several dimensions, chunks that have none."""
    if x.size == 0:
        return da.zeros_like(meta_of(x), shape=(0,), chunks=(0,))
    if x.ndim > 1:
        require_sizes(x)
        x = x.rechunk(tuple(tuple(size for size in sizes if size) for sizes in x.chunks))
    return x.ravel()


def require_sizes(x: da.Array) -> None:
    """Raises InvalidArgumentError if chunks have unknown sizes."""
    if np.isnan(x.size):
        raise InvalidArgumentError("x: expected chunks of known sizes; x.compute_chunk_sizes() computes them")


# -- what tasks do ----------------------------------------------------------------------------------------


@attrs.frozen
class SortKeys(Work):
    """Sorts keys. Runs are tuples of arrays, keys first."""

    descending: bool
    target: str
    by_ranks: bool  # whether equal elements share a word, and so keep their order

    def to_run(self, chunk: Any) -> Run:
        return (of_chunks.sort(chunk, descending=self.descending, stable=self.by_ranks, target=self.target),)

    def dtype(self, run: Run) -> object:
        return run[0].dtype.newbyteorder("=")

    def words(self, run: Run, indices: slice | Indices) -> Array:
        keys = run[0]
        keys = keys[indices if isinstance(indices, slice) else np.asarray(indices, like=keys)]  # on the keys' device
        host: Array = keys.get() if hasattr(keys, "get") else np.asarray(keys)
        return words_of(host, ORDERS[self.descending], ranks=self.by_ranks)

    def to_chunk(self, pieces: Sequence[Run]) -> Any:
        keys = np.concatenate([keys for (keys,) in pieces])
        of_chunks.sort_inplace(keys, descending=self.descending, stable=self.by_ranks, target=self.target)
        return keys


@attrs.frozen
class FindIndices(SortKeys):
    """Finds the argsort: runs hold keys with indices into their chunk, to which pieces add the chunk's offset."""

    by_ranks: bool = True
    with_keys: bool = False  # whether the result has the sorted keys too

    def to_run(self, chunk: Any) -> Run:
        order = of_chunks.argsort(chunk, descending=self.descending, target=self.target)
        return chunk[order], order.astype(np.uint32 if order.size < 1 << 32 else np.int64)

    def piece(self, run: Run, start: int, stop: int, offset: int) -> Run:
        return *super().piece(run, start, stop, offset), offset

    def to_chunk(self, pieces: Sequence[Run]) -> Any:
        keys = np.concatenate([keys for keys, _, _ in pieces])
        indices = np.concatenate([indices.astype(np.int64) + offset for _, indices, offset in pieces])
        order = of_chunks.argsort(keys, descending=self.descending, target=self.target)
        return (keys[order], indices[order]) if self.with_keys else indices[order]


@attrs.frozen
class SortPairs(SortKeys):
    """Sorts keys and values as `sort_by_key` does: keys by all their bits."""

    by_ranks: bool = False

    def to_run(self, chunk: Run) -> Run:
        keys, values = chunk
        return of_chunks.sort_by_key(keys, values, descending=self.descending, target=self.target)

    def to_chunk(self, pieces: Sequence[Run]) -> Run:
        keys, values = zip(*pieces, strict=True)
        return self.to_run((np.concatenate(keys), np.concatenate(values)))
