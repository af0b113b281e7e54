"""Top-k of many rows of host arrays: the least of a few columns gives each row a threshold; see top_k.py."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import shared_pool
from .argsort import argsort_rows
from .key_words import Elements, Places
from .numpy_sort import places_in_rows
from .row_blocks import LONGEST_TO_ARGSORT
from .top_k import ascending_words, places_of_one, sampled_from, top_k_of_one
from .top_k_filter import hits_of

_SHORT = 1 << 11  # elements in all rows
_ORDERED, _BYTES_ORDERED = 1 << 4, 1 << 10  # elements of a row, of many, that are sorted sooner than chosen from


def top_k_rows(
    source: HostArray, k: int, order: SortOrder, in_order: bool, policy: HostSortPolicy
) -> tuple[HostArray, npt.NDArray[np.int64]]:  # fmt: skip
    """The first k elements of each row of a packed array in an order, NaN and NaT last, and where in the row they
    stand. Of equals the first come first. They need not be in order where that is not asked for."""
    rows, length = source.shape
    if rows == 1 and k:
        values, places = top_k_of_one(source[0], k, order, in_order, policy)
        return values[np.newaxis], places[np.newaxis]
    if 0 < source.size <= _SHORT:  # sorted before anything else has begun
        found: Places = places_in_rows(ascending_words(source, order))[:, :k]
        return _taken(source, found), found.copy()
    indices = np.empty((rows, k), np.intp)
    if indices.size:
        if length >= 4 * sampled_from(source):
            for number in range(rows):
                indices[number] = places_of_one(source[number], k, order, in_order, policy)
        else:
            _places_of_many(source, indices, k, order, policy)
    return _taken(source, indices), indices


def _taken(packed: Elements, places: Places) -> Elements:
    """Elements of each row. NumPy's function for that takes as long as a short row."""
    length: int = packed.shape[1]
    starts: Places = np.arange(0, packed.size, length)
    return packed.reshape(-1).take(places + starts[:, np.newaxis])


def _places_of_many(source: HostArray, places: Places, k: int, order: SortOrder, policy: HostSortPolicy) -> None:
    rows, length = source.shape
    ordered = LONGEST_TO_ARGSORT if source.size >= policy.serial_below else _ORDERED
    if 2 * k >= length or length <= (_BYTES_ORDERED if source.itemsize == 1 else ordered):
        everywhere = np.empty(source.shape, np.intp)
        argsort_rows(source, everywhere, order, policy)
        places[...] = everywhere[:, :k]
        return
    chunk = min(rows, max(1, policy.chunk // length))
    alone = source.size < policy.serial_below
    chunks = -(-rows // chunk)

    def work(share: slice) -> None:
        scratch = _Scratch.of(source, chunk)
        for first in range(share.start * chunk, min(rows, share.stop * chunk), chunk):
            own = slice(first, min(rows, first + chunk))
            _places_of_rows(source[own], places[own], k, order, scratch)

    if alone:
        work(slice(0, chunks))
    else:
        shared_pool().over(chunks, work)


@attrs.frozen
class _Scratch:
    """What a thread writes to, chunk after chunk: the system clears fresh memory each time."""

    words: Elements
    least: Elements
    mask: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, source: HostArray, rows: int) -> _Scratch:
        length = source.shape[1]
        words = ascending_words(source[:1, :1], SortOrder.ASCENDING).dtype
        return cls(
            np.empty((rows, length), words), np.empty((rows, length // 2), words), np.empty((rows, length), np.bool_)
        )


def _places_of_rows(source: Elements, places: Places, k: int, order: SortOrder, scratch: _Scratch) -> None:
    """What comes up to a row's threshold is put in order, as many in each row as in the fullest."""
    rows, length = source.shape
    words = ascending_words(source, order, scratch.words[:rows])
    least = _least_of_columns(words, k, scratch.least[:rows])
    thresholds = np.partition(least, k - 1, axis=1)[:, k - 1 : k]
    mask = np.less_equal(words, thresholds, out=scratch.mask[:rows])
    if words.dtype.kind == "f":
        mask[(thresholds != thresholds)[:, 0]] = True
    hits = hits_of(mask.reshape(-1), rows * k)
    if hits.size == rows * k:  # then k in each row, for none has fewer
        near = words.reshape(-1).take(hits).reshape(rows, k)
        np.remainder(_taken(hits.reshape(rows, k), near.argsort(axis=1, kind="stable")), length, out=places)
        return
    if 2 * hits.size > words.size:  # mostly equal, of which NumPy makes long runs
        places[...] = places_in_rows(words)[:, :k]
        return
    row = hits // length
    counts = np.bincount(row, minlength=rows)
    slot = np.arange(hits.size) - (np.cumsum(counts) - counts)[row]
    shape = rows, int(counts.max())
    behind_all = np.nan if words.dtype.kind == "f" else np.iinfo(words.dtype).max
    padded, where = np.full(shape, behind_all, words.dtype), np.zeros(shape, np.intp)
    padded[row, slot] = words.reshape(-1)[hits]
    where[row, slot] = hits - row * length
    places[...] = np.take_along_axis(where, padded.argsort(axis=1, kind="stable")[:, :k], axis=1)


def _least_of_columns(words: Elements, k: int, scratch: Elements) -> Elements:
    """Of each row, the least elements of some columns: more than k of them, numbers before NaNs."""
    width = words.shape[1]
    least = np.fmin if words.dtype.kind == "f" else np.minimum
    while width >= max(8 * k, 128):
        width //= 2
        words = least(words[:, :width], words[:, width : 2 * width], out=scratch[:, :width])
    return words
