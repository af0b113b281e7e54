"""Top-k of host arrays by NumPy and all threads: a threshold first, then whatever does not lie behind it.

Of a long row, a sample gives the threshold, and one reading finds the few that come up to it. Of many rows, the least
of a few columns gives one each. Whatever the threshold, what it lets pass is put in order by value and place, so equal
elements keep their order and the answer is the first k of a stable argsort. One that lets too few pass is given up for
a partition of everything.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from ..pool import shared_pool
from .argsort import argsort_rows
from .key_words import Elements, Places, bits_of, numbers_of, ordered_ranks, words_of
from .numpy_sort import places_in_rows

_SAMPLED_FROM, _BYTES_SAMPLED_FROM = 1 << 13, 1 << 15  # elements of a row: a shorter one NumPy parts as fast
_MOST_SAMPLES, _STRETCH, _MANY_SAMPLES, _WIDE_STRETCH = 1 << 16, 1 << 6, 1 << 14, 1 << 8  # how many, and how far apart
_ORDERED, _BYTES_ORDERED = 1 << 4, 1 << 10  # elements of a row, of many, that are sorted sooner than chosen from
_SHORT = 1 << 11  # elements in all rows
_FEW = 128  # elements of a row that are sorted outright
_COLUMN, _SHORTEST_COLUMN = 64, 8  # elements
_COLUMN_BYTES = 1 << 21  # of a row: of a longer one all threads read their part
_LARGE_SHARE = 16  # one of so many elements, or more of them: all are sorted
_SORTED_BY_NUMPY = 256  # candidates


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
        if length >= 4 * _sampled_from(source):
            for number in range(rows):
                indices[number] = _places_of_one(source[number], k, order, in_order, policy)
        else:
            _places_of_many(source, indices, k, order, policy)
    return _taken(source, indices), indices


def _taken(packed: Elements, places: Places) -> Elements:
    """Elements of each row. NumPy's function for that takes as long as a short row."""
    length: int = packed.shape[1]
    starts: Places = np.arange(0, packed.size, length)
    return packed.reshape(-1).take(places + starts[:, np.newaxis])


def top_k_of_one(
    row: HostArray, k: int, order: SortOrder, in_order: bool, policy: HostSortPolicy
) -> tuple[HostArray, npt.NDArray[np.int64]]:  # fmt: skip
    """The same of one row."""
    places = _places_of_one(row, k, order, in_order, policy)
    return row[places], places


def ascending_words(elements: Elements, order: SortOrder, out: Elements | None = None) -> Elements:
    """What ascends as elements should in an order, compares equal where they do, and has NaN last: one pass, if any."""
    ascends = order is SortOrder.ASCENDING
    match elements.dtype.kind:
        case "f":
            return elements if ascends else np.negative(elements, out=out)
        case "M" | "m":
            key = key_for(elements.dtype)
            words = words_of(key, bits_of(elements))
            # NaT's word is the one above `last`: the difference wraps round to it.
            return words if ascends else np.subtract(np.uint64(key.last), words, out=out)
        case _:
            numbers = numbers_of(elements)
            return numbers if ascends else np.invert(numbers, out=out)


# -- one row ------------------------------------------------------------------------------------------------


def _places_of_one(row: HostArray, k: int, order: SortOrder, in_order: bool, policy: HostSortPolicy) -> Places:
    if row.size < _sampled_from(row) or (row.nbytes < _COLUMN_BYTES and _height(row.size, k)):
        is_half = row.dtype == np.float16  # which are compared as integers in a tenth of the time
        words = ordered_ranks(key_for(row.dtype), bits_of(row), order) if is_half else ascending_words(row, order)
        return _first_of(words, k, in_order)
    if in_order and k > row.size // _LARGE_SHARE:
        return _argsort(row, order, policy)[:k]
    found = _candidates(row, k, order)
    if found is None:
        return _first_of(ascending_words(row, order), k, in_order)
    near = row[found]
    places = found[_first_of(ascending_words(near, order), k, in_order and k < _SORTED_BY_NUMPY)]
    return places[_argsort(row[places], order, policy)] if in_order and k >= _SORTED_BY_NUMPY else places


def _sampled_from(source: HostArray) -> int:
    return _BYTES_SAMPLED_FROM if source.itemsize == 1 else _SAMPLED_FROM


def _argsort(row: HostArray, order: SortOrder, policy: HostSortPolicy) -> Places:
    places = np.empty(row.size, np.intp)
    argsort_rows(row[np.newaxis], places[np.newaxis], order, policy)
    return places


def _first_of(words: Elements, k: int, in_order: bool) -> Places:
    """The places of the first k of ascending words: in order, or as they lie."""
    if words.size <= _FEW or k == words.size:
        return words.argsort(kind="stable")[:k]
    near = _near_first(words, k)
    if near is not None:
        return near[words[near].argsort(kind="stable")[:k]]
    parted = words.copy()
    parted.partition(k - 1)
    threshold = parted[k - 1]
    places: Places = (words <= threshold).nonzero()[0]
    if places.size != k:
        places = _cut(words, threshold, k, places)
    return places[words[places].argsort(kind="stable")] if in_order else places


def _height(length: int, k: int) -> int:
    """How many elements a column has, if there are some times as many columns as are looked for; or else 0."""
    height = min(_COLUMN, length // (4 * k))
    return height if height >= _SHORTEST_COLUMN else 0


def _near_first(words: Elements, k: int) -> Places | None:
    """Where the first k of ascending words stand, and a few more. The least of each of some columns are told by one
    reading, and the k-th of those is at least the k-th of all. None where that does not part them."""
    height = _height(words.size, k)
    if not height:
        return None
    width = words.size // height
    least = words[: height * width].reshape(height, width).min(0)
    least.partition(k - 1)
    threshold = least[k - 1]
    places: Places = (words <= threshold).nonzero()[0]  # none, where it is NaN
    if k <= places.size <= max(4 * k + 64, words.size >> 6):
        return places
    if places.size < k:
        return None
    is_less: npt.NDArray[np.bool_] = words[places] < threshold  # where many are equal to it, the first of them will do
    wanted = k - count_nonzero(is_less)
    if wanted < 0:
        return None
    is_less[(~is_less).nonzero()[0][:wanted]] = True
    chosen: Places = places[is_less]
    return chosen


def _cut(words: Elements, threshold: Any, k: int, places: Places) -> Places:
    """Of elements that are equal to the k-th, those that come first."""
    if threshold != threshold:
        numbers = words == words
        places, equal = numbers.nonzero()[0], (~numbers).nonzero()[0]
    else:
        is_equal = words[places] == threshold
        places, equal = places[~is_equal], places[is_equal]
    return np.sort(np.concatenate([places, equal[: k - places.size]]))


def _candidates(row: Elements, k: int, order: SortOrder) -> Places | None:
    """Where the elements stand, as they lie, that come up to a threshold which k of them hardly ever do not."""
    count = min(_MOST_SAMPLES, max(min(_MANY_SAMPLES, row.size // _STRETCH), row.size // _WIDE_STRETCH))
    expected = k * count / row.size
    rank = math.ceil(expected + 6.4 * math.sqrt(expected) + 12)
    if 2 * rank > count:
        return None
    sample = ascending_words(row[_sampled_places(row.size, count)], order)
    threshold = np.partition(sample, rank)[rank]
    if threshold != threshold:
        return None
    found: dict[int, Places] = {}

    def look(own: slice) -> None:
        piece = row[own]
        hits = _hits(_comes_up_to(piece, threshold, order))
        if hits.size > 2 * k + 64:  # then many are equal to it, of which k are enough
            is_equal = ascending_words(piece[hits], order) == threshold
            is_equal[is_equal.nonzero()[0][:k]] = False
            hits = hits[~is_equal]
        found[own.start] = hits + own.start

    shared_pool().over(row.size, look, max(1, row.size >> 16))
    places = np.concatenate([found[start] for start in sorted(found)])
    return places if places.size >= k else None


def _comes_up_to(elements: Elements, threshold: Any, order: SortOrder) -> npt.NDArray[np.bool_]:
    """Which elements do not lie behind a word: without making words of them all where the word can be turned back."""
    found: npt.NDArray[np.bool_]
    if order is SortOrder.ASCENDING or elements.dtype.kind in "Mm":
        found = ascending_words(elements, order) <= threshold
    else:
        found = numbers_of(elements) >= (-threshold if elements.dtype.kind == "f" else ~threshold)
    return found


_BEHIND_ALL = np.uint64((1 << 64) - 1)


def _sampled_places(length: int, count: int) -> Places:
    """One place in each of so many stretches of a row, anywhere in it: no period of the data is met."""
    places = np.arange(count) * length // count
    return places + (_chances()[:count] * (length // count)).astype(np.intp)


@cache
def _chances() -> npt.NDArray[np.float64]:
    """Numbers from 0 to 1, always the same."""
    hashed = np.arange(_MOST_SAMPLES, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((hashed ^ (hashed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(11)) / 2.0**53


def _hits(mask: npt.NDArray[np.bool_], at_least: int = 0) -> Places:
    """Where a flat mask is true: eight elements at a time, if that is hardly anywhere."""
    if at_least > mask.size >> 6:
        return mask.nonzero()[0]
    whole = mask.size & ~7
    eights = (mask[:whole].view(np.uint64) != 0).nonzero()[0]
    if eights.size > mask.size >> 6:
        return mask.nonzero()[0]
    inside = mask[:whole].reshape(-1, 8)[eights].reshape(-1).nonzero()[0]
    found = eights[inside >> 3] * 8 + (inside & 7)
    return found if whole == mask.size else np.concatenate([found, mask[whole:].nonzero()[0] + whole])


# -- many rows ----------------------------------------------------------------------------------------------


def _places_of_many(source: HostArray, places: Places, k: int, order: SortOrder, policy: HostSortPolicy) -> None:
    rows, length = source.shape
    if 2 * k >= length or length <= (_BYTES_ORDERED if source.itemsize == 1 else _ORDERED):
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
    hits = _hits(mask.reshape(-1), rows * k)
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
    if source.itemsize > 4:
        behind_all = np.nan if words.dtype.kind == "f" else np.iinfo(words.dtype).max
        padded = np.full(shape, behind_all, words.dtype)
        padded[row, slot] = words.reshape(-1)[hits]
        where = np.zeros(shape, np.intp)
        where[row, slot] = hits - row * length
        places[...] = np.take_along_axis(where, padded.argsort(axis=1, kind="stable")[:, :k], axis=1)
    else:  # a rank and a place make one word
        ranks = ordered_ranks(key_for(source.dtype), bits_of(source.reshape(-1)[hits]), order)
        packed = np.full(shape, _BEHIND_ALL)
        packed[row, slot] = (ranks.astype(np.uint64) << np.uint64(32)) | (hits - row * length).astype(np.uint64)
        packed.sort(axis=1)
        np.bitwise_and(packed[:, :k], np.uint64(0xFFFFFFFF), out=places.view(np.uint64))


def _least_of_columns(words: Elements, k: int, scratch: Elements) -> Elements:
    """Of each row, the least elements of some columns: more than k of them, numbers before NaNs."""
    width = words.shape[1]
    least = np.fmin if words.dtype.kind == "f" else np.minimum
    while width >= max(8 * k, 128):
        width //= 2
        words = least(words[:, :width], words[:, width : 2 * width], out=scratch[:, :width])
    return words
