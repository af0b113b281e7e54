"""The dask graph of a distributed sort, with three implementations of the all-to-all exchange.

For R chunks there are R tasks each to sort, to sample, to read brackets and to make buckets, and a few to compute the
cuts. The exchange adds (after dask's fusion of tasks):

| exchange | tasks | where pieces are |
|---|---|---|
| shared | 1 | in the memory of the one process that runs all tasks: nothing is moved |
| p2p | R, and up to 128 | moved once, between workers, by way of their disks |
| tasks | R² up to 64 chunks, else 2 R√R | moved once, or twice, as dask moves any result |
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from itertools import chain
from math import isqrt
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import get_scheduler

from ..external.cuts import Array
from ..types.dtypes import native
from ..types.errors import InvalidArgumentError
from .cutting import Brackets, Counts, Cuts, Run, RunSamples, Work

_FEW = 32  # up to so many chunks, a cluster exchanges faster by tasks than by p2p
_ONE_STEP = 64  # up to so many chunks, each piece is a task; beyond, the exchange takes two steps
_FILES = 128  # of p2p: each run writes to all of them, at about 0.1 ms each
_CUTS = 64  # computed by each task

BOXED = np.empty(0, object)
Boxed: TypeAlias = da.Array  # chunks are arbitrary objects, not arrays
Chunks: TypeAlias = tuple[tuple[int, ...], ...]


class Exchange(Enum):
    """How pieces of runs are moved to their buckets."""

    SHARED = "shared"
    P2P = "p2p"
    TASKS = "tasks"

    @classmethod
    def of(cls, name: str, x: da.Array, count: int) -> Exchange:
        """The named exchange; for "auto" by the scheduler that dask would use now, whether its tasks share memory or it
        has p2p, and by the number of chunks. Raises InvalidArgumentError."""
        if name != "auto":
            known = [exchange.value for exchange in cls]
            if name not in known:
                raise InvalidArgumentError(f"exchange: expected one of auto, {', '.join(known)}, found {name!r}")
            return cls(name)
        home = str(getattr(get_scheduler(collections=[x]), "__module__", ""))
        if home in ("dask.threaded", "dask.local"):
            return cls.SHARED
        has_p2p = home.partition(".")[0] == "distributed"
        return cls.P2P if has_p2p and count > _FEW and isinstance(meta_of(x), np.ndarray) else cls.TASKS


def sorted_chunks(x: da.Array, work: Work, exchange: Exchange, meta: Any, chunks: Chunks | None = None) -> da.Array:
    """Sorts the chunks of x, arrays or boxed, as a whole, into the same chunks, or what `chunks` says of them."""
    return exchanged(boxed(x, work.to_run), work, exchange, meta, chunks or x.chunks)


def exchanged(runs: Boxed, work: Work, exchange: Exchange, meta: Any, chunks: Chunks) -> da.Array:
    """Merges sorted runs into as many chunks."""
    cuts = _cuts(runs, work)
    if exchange is Exchange.SHARED:
        to_bucket = partial(_bucket_of_shared, work, meta)
        return runs.map_blocks(to_bucket, gathered(list, runs), cuts, token="gpusort-bucket", chunks=chunks, meta=meta)
    count = runs.numblocks[0]
    each = ((1,) * count,)
    pieces = runs.map_blocks(
        partial(_pieces, work), cuts, token="gpusort-pieces", new_axis=1, chunks=(*each, (count,)),
        meta=np.empty((0, 0), object),
    )  # fmt: skip
    columns = _to_columns(pieces, exchange)
    return columns.map_blocks(
        partial(_bucket, work, meta), token="gpusort-bucket", drop_axis=0, chunks=chunks, meta=meta
    )


def boxed(x: da.Array, function: Any, *others: da.Array) -> Boxed:
    """Maps a function that returns any object over chunks."""
    return da.map_blocks(function, x, *others, token="gpusort", meta=np.empty((0,) * x.ndim, object))


def gathered(function: Any, x: da.Array, *others: da.Array, axis: int = 0) -> Boxed:
    """Calls a function with the list of all chunks along an axis, in one task for each such list. `others` have one
    chunk. The list is the result of a task (`concatenate=False`); else each dependent task would build it again from
    all chunks."""
    chunks = tuple(range(x.ndim))
    result = tuple(x.ndim if number == axis else number for number in chunks)
    rest = chain.from_iterable((other, (x.ndim,)) for other in others)
    return da.blockwise(
        function, result, x, chunks, *rest, new_axes={x.ndim: 1}, token="gpusort", meta=np.empty((0,) * x.ndim, object),
        align_arrays=False, concatenate=False,
    )  # fmt: skip


def unzipped(boxes: Boxed, first: Any, second: Any, chunks: Chunks) -> tuple[da.Array, da.Array]:
    """Splits boxed pairs of arrays, with the metas `first` and `second`, into two dask arrays."""
    keys, values = (
        boxes.map_blocks(partial(_part, number, meta), token="gpusort-part", chunks=chunks, meta=meta)
        for number, meta in enumerate((first, second))
    )
    return keys, values


def meta_of(x: da.Array, dtype: np.dtype[Any] | None = None) -> Any:
    """dask's meta of an array (an empty chunk), with another dtype if given."""
    return meta_from_array(x, dtype=dtype)


def _cuts(runs: Boxed, work: Work) -> Boxed:
    """The Cuts of all runs, in one chunk."""
    count = runs.numblocks[0]
    bracket = partial(Brackets.of, keeps_equals=work.keeps_equals)
    brackets = gathered(bracket, boxed(runs, partial(RunSamples.of, work, runs=count)))
    inside = gathered(list, boxed(runs, partial(_inside, work), brackets))
    tasks = da.zeros(-(-(count - 1) // _CUTS), chunks=1)
    return gathered(Cuts.of, boxed(tasks, partial(_some_cuts, count - 1), inside, brackets), brackets)


def _to_columns(pieces: da.Array, exchange: Exchange) -> da.Array:
    """Transposes ownership: from a chunk for each row (a run's pieces) to one for each column (a bucket's pieces)."""
    count = pieces.numblocks[0]
    if exchange is Exchange.P2P:
        pieces = pieces.rechunk((count, -(-count // _FILES)), method="p2p")
    elif count > _ONE_STEP:
        side = isqrt(count - 1) + 1
        pieces = _by_tasks(pieces, (side, side))
    return _by_tasks(pieces, (count, 1))


def _by_tasks(pieces: da.Array, chunks: tuple[int, int]) -> da.Array:
    """Rechunks in one step. dask's planner assumes 8 bytes for an object, and would gather everything in one block."""
    return pieces.rechunk(chunks, method="tasks", threshold=1 << 62)


def _inside(work: Work, run: Run, brackets: Brackets, *, block_id: tuple[int, ...]) -> Array:
    return brackets.inside(work, run, block_id[0])


def _some_cuts(
    count: int, _: object, inside: Sequence[Array], brackets: Brackets, *, block_id: tuple[int, ...]
) -> Counts:
    first = block_id[0] * _CUTS
    return brackets.cuts(inside, first, min(first + _CUTS, count))


def _bucket_of_shared(
    work: Work, meta: Any, _: object, runs: Sequence[Run], cuts: Cuts, *, block_id: tuple[int, ...]
) -> Any:
    return _chunk(work, meta, [cuts.piece(work, run, number, block_id[0]) for number, run in enumerate(runs)])


def _pieces(work: Work, run: Run, cuts: Cuts, *, block_id: tuple[int, ...]) -> Array:
    """A run's pieces for all buckets, as a row of an object array."""
    row = np.empty((1, len(cuts.at) - 1), object)
    for bucket in range(row.size):
        row[0, bucket] = cuts.piece(work, run, block_id[0], bucket)
    return row


def _bucket(work: Work, meta: Any, column: Array) -> Any:
    return _chunk(work, meta, column[:, 0].tolist())


def _chunk(work: Work, meta: Any, pieces: Sequence[Run | None]) -> Any:
    made = work.to_chunk([piece for piece in pieces if piece is not None])
    return made if meta.dtype == BOXED.dtype else _in_byte_order(made, meta)


def _part(number: int, meta: Any, pair: Run) -> Any:
    return _in_byte_order(pair[number], meta)


def _in_byte_order(chunk: Any, meta: Any) -> Any:
    """The chunk in the byte order of meta: when joined, and by pickles of p2p, arrays get the machine's."""
    is_all = native(chunk.dtype) == native(meta.dtype)  # that may differ
    return chunk.astype(meta.dtype, copy=False) if is_all else chunk
