"""Sorts host arrays by a user's key: computes the words of all elements and sorts these as integers.

Elements come back from their words. By a key that is lossy, whose words do not tell all elements apart, it is found
where they come from, and they are taken from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSort, HostSortPolicy
from ....algos.words import Array, KeyWords, Transform
from ....operations.argsort import Argsort, SortPairs
from ....operations.base import Operation
from ....operations.sort import Sort
from ....types.indices import SortOrder
from ....types.keys import is_lossy
from ....types.specs import Spec
from ...base import HostArray, Native
from ..pool import Pool, shared_pool
from .argsort import argsort_rows
from .fast_paths import PairsPath
from .key_words import Places
from .sort import sort_rows
from .strides import along_rows

# Bytes worked on together: what is made of them on the way stays in the nearer caches, and in memory that the C library
# does not give back to the system each time.
_PIECE = 1 << 16


def sort_by_words(source: Array, results: Array, by: KeyWords, policy: HostSortPolicy, stable: bool = False) -> None:
    """Sorts each row of a packed two-dimensional array into `results`, which is `source` itself or lies apart. In
    place, an exception leaves the elements as they came, or in order. `stable` keeps elements that compare equal by the
    key's ranks in the order they came in, which those that share a word keep in any case."""
    by.require(source.dtype)
    if not source.size:
        return
    if is_lossy(by.key) or (stable and not _ranks_are_words(source, by, policy)):
        places = np.empty(source.shape, np.intp)
        argsort_by_words(source, places, by, policy, ranks=stable)
        ordered = taken(source, places, policy)
    else:
        to_words, to_elements = by.to_words(), by.to_elements()
        by.try_on(source.reshape(-1), to_words, to_elements)
        words = _in_pieces(to_words, source, by.word, policy)
        sort_rows(words, words, SortOrder.ASCENDING, policy)
        ordered = _in_pieces(to_elements, words, by.element, policy).view(source.dtype)
    results[...] = ordered


def argsort_by_words(
    source: Array, places: Places, by: KeyWords, policy: HostSortPolicy, *, ranks: bool = True
) -> None:
    """Where each row's elements come from, in order. Equals, by `ranks` or by words, keep theirs."""
    by.require(source.dtype)
    if source.size:
        words = _in_pieces(by.to_words(ranks=ranks), source, by.word, policy)
        argsort_rows(words, places, SortOrder.ASCENDING, policy)


def taken(source: Array, places: Places, policy: HostSortPolicy) -> Array:
    """The elements of each row at these places."""
    results, rows = np.empty_like(source), len(source)
    if rows == 1:
        row, result, own = source[0], results[0], places[0]
        count, pieces = row.size, -(-row.nbytes // _PIECE)

        def take(some: slice) -> None:
            row.take(own[some], out=result[some], mode="clip")
    else:
        count, pieces = rows, min(rows, -(-source.nbytes // _PIECE))

        def take(some: slice) -> None:
            results[some] = np.take_along_axis(source[some], places[some], axis=1)

    _pool_for(source, policy).over(count, take, pieces)
    return results


def _ranks_are_words(source: Array, by: KeyWords, policy: HostSortPolicy) -> bool:
    """Whether no element shares a rank with another but one of its bits, as the key's own methods say."""
    flat, words, ranks = source.reshape(-1), by.to_words(), by.to_words(ranks=True)

    def are_alike(own: slice) -> bool:
        return bool((words(flat[own]) == ranks(flat[own])).all())

    return _pool_for(source, policy).all_over(flat.size, are_alike, -(-flat.size * by.word.itemsize // _PIECE))


def _in_pieces(function: Transform, source: Array, dtype: npt.DTypeLike, policy: HostSortPolicy) -> Array:
    """A function of arrays, done to the pieces of one side by side."""
    flat, results = source.reshape(-1), np.empty(source.size, dtype)

    def work(own: slice) -> None:
        results[own] = function(flat[own])

    _pool_for(source, policy).over(flat.size, work, -(-max(flat.nbytes, results.nbytes) // _PIECE))
    return results.reshape(source.shape)


def _pool_for(source: Array, policy: HostSortPolicy) -> Pool:
    return Pool(1) if source.size < policy.serial_below else shared_pool()


# -- arrays of any layout ----------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class KeyedWay:
    """What is done to packed rows, for arrays of any layout."""

    axis: int | None
    work: Callable[[HostArray], HostArray]

    def run(self, x: HostArray, /) -> HostArray:
        (found,) = along_rows(x, self.axis, lambda rows: (self.work(rows),))
        return found if found.dtype == np.intp else found.astype(x.dtype, copy=False)


def keyed_path(operation: Operation, given: Sequence[Spec], policy: HostSortPolicy) -> Native | None:
    """The CPU's implementation of an operation by a key without a kernel; None if there is none."""
    match operation:
        case Sort(axis, order, stable, key, (None | HostSort()) as chosen) if key is not None:
            policy = policy if chosen is None else chosen.policy
            work = partial(_sorted, by=KeyWords(key, order), policy=policy, stable=stable)
            return Native(KeyedWay(axis, work).run, takes_empty=False)
        case Argsort(axis, order, key, by_bits) if key is not None:
            work = partial(_argsorted, by=KeyWords(key, order), policy=policy, ranks=not by_bits)
            return Native(KeyedWay(axis, work).run, takes_empty=False)
        case SortPairs(order, key) if key is not None:
            work = partial(_argsorted, by=KeyWords(key, order), policy=policy, ranks=False)
            return Native(PairsPath(KeyedWay(0, work).run).run)
        case _:
            return None


def _sorted(rows: HostArray, by: KeyWords, policy: HostSortPolicy, stable: bool) -> HostArray:
    results = np.empty_like(rows)
    sort_by_words(rows, results, by, policy, stable)
    return results


def _argsorted(rows: HostArray, by: KeyWords, policy: HostSortPolicy, ranks: bool) -> HostArray:
    places = np.empty(rows.shape, np.intp)
    argsort_by_words(rows, places, by, policy, ranks=ranks)
    return places
