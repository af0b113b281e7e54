"""sort, argsort and sort_by_key of dask arrays."""

from __future__ import annotations

from functools import partial
from typing import Any, SupportsIndex

import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from ..api.arguments import checked_flag
from ..api.sorting import argsort as argsort_chunk
from ..api.sorting import sort as sort_chunk
from ..arrays.registry import recognised
from ..operations.argsort import different_sizes
from .arguments import checked, checked_target, require, require_sizes
from .cutting import Run, Work
from .exchange import BOXED, Exchange, boxed, meta_of, sorted_chunks, unzipped
from .work import FindIndices, SortKeys, SortPairs


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
    chunk = partial(sort_chunk, axis=number, descending=down, stable=keep, target=name)
    return _sorted(array, number, SortKeys(down, name, keep), chunk, way, array.dtype)


def argsort(
    x: da.Array, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = True,
    target: str = "auto", exchange: str = "auto",
) -> da.Array:  # fmt: skip
    """The stable argsort along an axis, as int64 indices like those of `gpusort.argsort`. All else is as for `sort`."""
    checked_flag("stable", stable)
    down, name = checked_flag("descending", descending), checked_target(target)
    array, number, way = checked(x, "x", axis, exchange, takes_scalars=True)
    chunk = partial(argsort_chunk, axis=number, descending=down, target=name)
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
