"""Top-k of host arrays: the first k of each row are found as they lie, and then put in order.

A few of each of many rows, or of one that is not long, are found in order by a compiled loop; more of them as they lie,
by another one, or while that is not loaded by NumPy's partition. A long row is cut into one for each thread, whose
first k compete. Of equals the first come first, as in a stable argsort.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import is_worth_waking
from ..pool import shared_pool
from .argsort import argsort_by_network, argsort_row, argsort_rows
from .key_words import Elements, Places
from .numpy_sort import ascending, compared_soon, places_in_order
from .row_networks import least_for_networks
from .select_loops import ORDERED, SHORT_ROWS, parted_in_rows, selected_in_rows
from .taking import taken_in_rows, taken_with_places

# Elements of one row: more are worth a loop, where new ones come each time; of bytes, which NumPy sorts by their
# digits, as many as of all rows. Few of four bytes or more are sorted where no loop inserts them.
_LEAST_OF_WORDS, _FEW = 160, 1 << 8
_SORTED_AT_ONCE = {1: SHORT_ROWS << 1, 2: SHORT_ROWS}  # elements in all rows, of a narrow dtype by its bytes
_BYTES_ORDERED = 1 << 10  # bytes of one of some rows that are sorted sooner than chosen from
# Of a row that is not short, one of so many elements or more of them, and all are sorted: integers are sooner than
# floats, and a very long row is parted among threads.
_LARGE, _LARGE_OF_INTS, _LARGE_OF_FLOATS, _LARGE_ALONE = 16, 9, 4, 3
_PART = 1 << 17  # elements of a row that are worth a thread
_PIECE = 1 << 15  # elements of rows that NumPy parts at a time, in a core's own cache


def top_k_rows(
    source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy
) -> tuple[HostArray, npt.NDArray[np.int64]]:
    """The first k elements of each row of a packed array in an order, NaN and NaT last, and where in the row they
    stand. Of equals the first come first."""
    found = selected_in_rows(source, k, order)
    if found is not None:
        return found
    return taken_with_places(source, _places(source, k, order, policy))


def top_k_of_row(row: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> tuple[HostArray, Places]:
    """The same of one row."""
    are_words = row.itemsize > 2
    if row.size > (_LEAST_OF_WORDS if are_words else SHORT_ROWS if row.itemsize == 1 else _FEW):
        found = selected_in_rows(row[np.newaxis], k, order)
        if found is not None:
            return found[0][0], found[1][0]
    if row.size <= _FEW and are_words:
        places: Places = ascending(row, order).argsort(kind="stable")[:k]
        return row.take(places), places
    places = _of_row(row, k, order, policy) if k else np.empty(0, np.intp)
    if k < row.size > _FEW and places.base is not None:
        places = places.copy()  # or it would hold those of all elements
    return row.take(places), places


def _places(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    """Where they stand: packed, or the first ones of places of all elements."""
    rows, length = source.shape
    if not k or not rows:
        return np.empty((rows, k), np.intp)
    if source.size <= _SORTED_AT_ONCE.get(source.itemsize, _FEW << 1):
        return places_in_order(ascending(source, order), 1)[:, :k]
    if rows < shared_pool().threads and length >= 2 * _PART:
        return np.stack([_of_row(row, k, order, policy) for row in source])
    are_short = length <= (_BYTES_ORDERED if source.itemsize == 1 else ORDERED)
    halves = 5 if source.size >= least_for_networks(policy) else 4  # of k: of more elements some are chosen
    if are_short or _is_large(k, source) or 2 * length <= halves * k:
        return _argsorted(source, k, order, policy)
    near = _parted(source, k, order)
    return taken_in_rows(near, _argsorted(taken_in_rows(source, near), k, order, policy))


def _of_row(row: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    size, is_large = row.size, _is_large(k, row)
    if is_large and row.itemsize > 2:  # of which looks for what is soon done mostly take longer than they save
        places: Places = _argsorted(row[np.newaxis], k, order, policy)[0]
        return places
    if size <= SHORT_ROWS and row.itemsize <= 2:
        return places_in_order(ascending(row, order), -1)[:k]
    if 2 * k >= size or is_large:
        return argsort_row(ascending(row, order), policy)[:k]
    threads = shared_pool().threads if is_worth_waking(row.nbytes >> 2) else 1
    parts = max(1, min(threads, size // max(_PART, 8 * k)))
    length = size // parts
    found = parted_in_rows(row[: parts * length].reshape(parts, length), k, order)
    if found is None:
        near = _not_behind(_words(row, order), k)
    elif parts == 1:
        near = found[0]
    else:
        found += np.arange(0, parts * length, length)[:, np.newaxis]
        near = np.concatenate((found.reshape(-1), np.arange(parts * length, size)))
    return near.take(argsort_row(ascending(row.take(near), order), policy)[:k])


def _is_large(k: int, source: HostArray) -> bool:
    """Whether so many elements of rows that are not short are wanted that all are sorted."""
    length, size = source.shape[-1], source.itemsize
    if source.ndim == 1 and length >= 2 * _PART:
        large = _LARGE_ALONE
    elif size <= 2:
        large = _LARGE
    elif source.dtype.kind == "f":
        large = _LARGE_OF_FLOATS
    else:
        large = _LARGE_OF_INTS if size == 4 else _LARGE
    return large * k > length > SHORT_ROWS


def _argsorted(source: HostArray, k: int, order: SortOrder, policy: HostSortPolicy) -> Places:
    found = None
    if order is SortOrder.DESCENDING:  # what ascends already is asked of below
        found = argsort_by_network(source, 1, order, policy)
    return (argsort_rows(ascending(source, order), policy) if found is None else found)[:, :k]


def _parted(source: HostArray, k: int, order: SortOrder) -> Places:
    """Where the first k of each row stand, which has more, as they lie."""
    found = parted_in_rows(source, k, order)
    if found is not None:
        return found
    places: Places = np.empty((len(source), k), np.intp)

    def part(own: slice) -> None:
        places[own] = _parted_by_numpy(_words(source[own], order), k)

    shared_pool().over(len(source), part, min(len(source), -(-source.size // _PIECE)))
    return places


def _words(elements: HostArray, order: SortOrder) -> Elements:
    """What ascends as elements should, in memory that no other thread changes while NumPy parts it."""
    words = compared_soon(ascending(elements, order))
    return words.copy() if np.may_share_memory(words, elements) else words


def _not_behind(words: Elements, k: int) -> Places:
    """Where those of a row stand that are not behind the k-th."""
    best = words.copy()
    best.partition(k - 1)
    near: Places = (~(words > best[k - 1])).nonzero()[0]
    return near


def _parted_by_numpy(words: Elements, k: int) -> Places:
    """NumPy's partition takes any of those that tie with the k-th: where not all of them are taken, they are taken anew
    as they lie."""
    near: Places = words.argpartition(k, axis=1)[:, : k + 1]
    behind = taken_in_rows(words, near[:, k:])
    near = near[:, :k].copy()
    near.sort(axis=1)
    values = taken_in_rows(words, near)
    last = values.max(axis=1, keepdims=True)
    tied: Places = ((last == behind) | (last != last)).reshape(-1).nonzero()[0]
    if tied.size:
        some, last, own, chosen = words[tied], last[tied], values[tied], near[tied]
        equals = (some == last) | ((last != last) & (some != some))
        row, column = cast("tuple[Places, Places]", equals.nonzero())
        are_before = (own < last) | ((last != last) & (own == own))
        rank = np.arange(row.size) - row.searchsorted(np.arange(len(tied)))[row]
        chosen[~are_before] = column[rank < (k - are_before.sum(axis=1))[row]]
        near[tied] = np.sort(chosen, axis=1)
    return near
