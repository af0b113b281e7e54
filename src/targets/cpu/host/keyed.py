"""Sorts host arrays by a user's key: computes the words of all elements and sorts these as integers.

Elements come back from their words. By a key that is lossy, whose words do not tell all elements apart, it is found
where they come from, and they are taken from there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....algos.host_sort import HostSort, HostSortPolicy
from ....algos.words import Array, KeyTransform, KeyWords
from ....operations.argsort import Argsort, SortPairs
from ....operations.base import Operation
from ....operations.select import TopK
from ....operations.sort import Sort
from ....types.elements import scalar_of
from ....types.indices import SortOrder
from ....types.keys import is_lossy
from ....types.layout import Type
from ...base import HostArray, Native
from .argsort import argsort_rows
from .compiled_words import are_compiled
from .copies import along_rows
from .fast_paths import sorted_pairs
from .key_words import Places
from .sort import pool_for, sort_rows
from .taking import taken_in_rows
from .top_k import top_k_rows

# Bytes worked on together: what is made of them on the way stays in the nearer caches, and in memory that the C library
# does not give back to the system each time.
_PIECE = 1 << 16


def sort_by_words(source: Array, by: KeyWords, policy: HostSortPolicy, stable: bool = False) -> Array:
    """The rows of a packed two-dimensional array, sorted. `stable` keeps elements that compare equal by the key's ranks
    in the order they came in, which those that share a word keep in any case."""
    by.require(source.dtype)
    words = None if is_lossy(by.key) else _on_all(by.to_words(), source, policy)
    if words is None or (stable and not np.array_equal(words, _on_all(by.to_words(ranks=True), source, policy))):
        return taken_in_rows(source, argsort_by_words(source, by, policy, ranks=stable))
    back = partial(_on_all, by.to_elements(), policy=policy)
    by.try_on(source.reshape(-1), words.reshape(-1), back)
    sort_rows(words, words, SortOrder.ASCENDING, policy)
    return back(words).view(source.dtype)


def argsort_by_words(source: Array, by: KeyWords, policy: HostSortPolicy, *, ranks: bool = True) -> Places:
    """Where each row's elements come from, in order. Equals, by `ranks` or by words, keep theirs."""
    by.require(source.dtype)
    return argsort_rows(_on_all(by.to_words(ranks=ranks), source, policy), policy)


def top_k_by_words(source: Array, by: KeyWords, k: int, policy: HostSortPolicy) -> tuple[Array, Places]:
    """The first k elements of each row, and where they stand: the first k of an argsort."""
    by.require(source.dtype)
    words = _on_all(by.to_words(ranks=True), source, policy)
    _, places = top_k_rows(words, k, SortOrder.ASCENDING, policy)
    return taken_in_rows(source, places), places


def _on_all(transform: KeyTransform, source: Array, policy: HostSortPolicy) -> Array:
    """A transform of all elements: by its compiled kernel if that is loaded, else by NumPy, on pieces side by side."""
    given = source.reshape(-1)
    results: Array = np.empty(given.size, transform.target.dtype)
    pieces = -(-max(given.nbytes, results.nbytes) // _PIECE)

    def work(own: slice) -> None:
        results[own] = transform(given[own])

    if not are_compiled(transform, given, results):
        pool_for(given, policy).over(given.size, work, pieces)
    return results.reshape(source.shape)


# -- arrays of any layout ----------------------------------------------------------------------------------


def _along(x: HostArray, /, axis: int | None, work: Callable[[HostArray], HostArray]) -> HostArray:
    """What is done to packed rows, to an array of any layout."""
    (found,) = along_rows(x, axis, lambda rows: (work(rows),))
    return found


def keyed_path(operation: Operation, policy: HostSortPolicy) -> Native | None:
    """The CPU's implementation of an operation by a key without a kernel; None if there is none."""
    match operation:
        case Sort(axis, order, stable, key, (None | HostSort()) as chosen) if key is not None:
            if chosen is None and scalar_of(key.word) not in (Type.U32, Type.U64):
                return None  # words that only compare: kernels do
            policy = policy if chosen is None else chosen.policy
            work = partial(sort_by_words, by=KeyWords(key, order), policy=policy, stable=stable)
            return Native(partial(_along, axis=axis, work=work))
        case Argsort(axis, order, key, by_bits) if key is not None:
            work = partial(argsort_by_words, by=KeyWords(key, order), policy=policy, ranks=not by_bits)
            return Native(partial(_along, axis=axis, work=work))
        case SortPairs(order, key) if key is not None:
            work = partial(argsort_by_words, by=KeyWords(key, order), policy=policy, ranks=False)
            return Native(partial(sorted_pairs, argsort=partial(_along, axis=0, work=work)))
        case TopK(k, axis, order, _, key) if key is not None:
            select = partial(top_k_by_words, by=KeyWords(key, order), k=k, policy=policy)
            return Native(partial(along_rows, axis=axis, work=select))
        case _:
            return None
