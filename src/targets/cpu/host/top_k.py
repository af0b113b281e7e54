"""Top-k of host arrays by NumPy and all threads: a threshold first, then whatever does not lie behind it.

Of a long row, a sample gives the threshold, and one reading finds the few that come up to it. Of many rows, the least
of a few columns gives one each. Whatever the threshold, what it lets pass is put in order by value and place, so equal
elements keep their order and the answer is the first k of a stable argsort. One that lets too few pass is given up for
a partition of everything.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from .argsort import argsort_rows
from .key_words import Elements, Places, bits_of, numbers_of, ordered_ranks, words_of
from .top_k_filter import places_up_to

_SAMPLED_FROM, _BYTES_SAMPLED_FROM = 1 << 13, 1 << 15  # elements of a row: a shorter one NumPy parts as fast
_MOST_SAMPLES, _STRETCH, _MANY_SAMPLES, _WIDE_STRETCH = 1 << 16, 1 << 6, 1 << 14, 1 << 8  # how many, and how far apart
_FEW = 128  # elements of a row that are sorted outright
_COLUMN, _SHORTEST_COLUMN = 64, 8  # elements
_COLUMN_BYTES = 1 << 21  # of a row: of a longer one all threads read their part
_LARGE_SHARE = 16  # one of so many elements, or more of them: all are sorted
_SORTED_BY_NUMPY = 256  # candidates


def top_k_of_one(
    row: HostArray, k: int, order: SortOrder, in_order: bool, policy: HostSortPolicy
) -> tuple[HostArray, npt.NDArray[np.int64]]:  # fmt: skip
    """The same of one row."""
    places = places_of_one(row, k, order, in_order, policy)
    return row[places], places


def ascending_words(elements: Elements, order: SortOrder, out: Elements | None = None) -> Elements:
    """What ascends as elements should in an order, compares equal where they do, and has NaN last: one pass, if any."""
    ascends = order is SortOrder.ASCENDING
    match elements.dtype.kind:
        case "f" if elements.dtype.itemsize == 2:  # which are compared as integers in a tenth of the time
            return ordered_ranks(key_for(elements.dtype), bits_of(elements), order)
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


def places_of_one(row: HostArray, k: int, order: SortOrder, in_order: bool, policy: HostSortPolicy) -> Places:
    if row.size < sampled_from(row) or (row.nbytes < _COLUMN_BYTES and _height(row.size, k)):
        return _first_of(ascending_words(row, order), k, in_order)
    if in_order and k > row.size // _LARGE_SHARE:
        return _argsort(row, order, policy)[:k]
    found = _candidates(row, k, order)
    if found is None:
        return _first_of(ascending_words(row, order), k, in_order)
    near = row[found]
    places = found[_first_of(ascending_words(near, order), k, in_order and k < _SORTED_BY_NUMPY)]
    return places[_argsort(row[places], order, policy)] if in_order and k >= _SORTED_BY_NUMPY else places


def sampled_from(source: HostArray) -> int:
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
    sample = ascending_words(_sampled(row, count), order)
    count = sample.size
    expected = k * count / row.size
    rank = math.ceil(expected + 6.4 * math.sqrt(expected) + 12)
    if 2 * rank > count:
        return None
    threshold = np.partition(sample, rank)[rank]
    if threshold != threshold:
        return None
    most = 4 * rank * (row.size // count + 1)  # four times as many as there should be, unless many are equal
    if row.dtype.kind in "Mm" or row.dtype == np.float16 or order is SortOrder.ASCENDING:
        return places_up_to(ascending_words(row, order), threshold, False, k, most)
    return places_up_to(numbers_of(row), -threshold if row.dtype.kind == "f" else ~threshold, True, k, most)


def _sampled(row: Elements, count: int) -> Elements:
    """About so many of its elements: the step is odd, for few periods of data are."""
    return row[:: row.size // count | 1]
