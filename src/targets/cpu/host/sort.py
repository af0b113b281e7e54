"""Sorts host arrays: chooses an algorithm by dtype, length and number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.host import is_packed
from ....types.dtypes import native
from ....types.indices import SortOrder
from ...base import HostArray
from ..background import background
from ..crew import is_worth_waking, threads_of_crew
from ..pool import ALONE, Pool, share_each_row, shared_pool
from .at_sight import LEAST_AT_SIGHT, counting_each, fill, sorted_at_sight
from .copies import copy_shared, packed
from .counting import count_words, rank_found, sort_by_counting, sort_few
from .crew_rows import sort_rows_by_crew
from .key_words import numbers_as
from .numpy_sort import sort_chunk
from .partition import reverse
from .partition_sort import loading_sorts, part_from, sort_long
from .radix_sort import can_sort_by_radix, sort_by_radix, suits_radix
from .row_networks import sort_short_rows
from .sample import different_of, seems_constant

_SHORT, _FEW, _HARDLY_ANY = 1 << 15, 10, 3  # a row, and how many of its elements that are looked at may differ there
_DIFFERENT = 192  # of the elements at a glance: more, and a row is not of so few as are counted
_SPREAD, _ALIKE = 1 << 9, 1 << 11  # elements of a row; bytes between them by which they are in one part of a cache
_LONG = 1 << 13  # elements of a row
_BESIDE = 1 << 4  # bytes of two to four columns: each is read and written as soon where it lies
_AT_ONCE = 1 << 26  # bytes of rows that are brought together in scratch memory
_WORTH_A_THREAD, _WORTH_ONE_THAT_WAITS = 1 << 16, 1 << 14  # elements that are sorted by radix


def sort_rows(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> None:
    """Sorts each row, along the last axis, into `results`, which is `source` itself or lies apart. Both of any layout.
    In place, an exception leaves the elements of each row in it, in some order: long rows are sorted in scratch memory,
    and one call into C copies the result back, which no signal handler interrupts. Floats that tie, zeros of both signs
    and NaNs of differing bits, are put in the order of their bits; all else that ties is alike."""
    length, in_place = source.shape[-1], results is source
    if length < 2 or not source.size:
        if not in_place:
            results[...] = source
        return
    if not in_place and np.may_share_memory(source, results):
        source = source.copy()  # the same memory by another name, or some of it
    if sort_short_rows(source, results, order, policy):
        return
    if _suits_numpy_as_they_lie(source, policy):
        _sort_chunks(source, results, order, policy)
        return
    if source.ndim > 1 and len(source) > 1 and source.nbytes > _AT_ONCE and not is_packed(source):
        step = max(1, len(source) * _AT_ONCE // source.nbytes)
        for first in range(0, len(source), step):
            sort_rows(*_some(source, results, slice(first, first + step)), order, policy)
        return
    given = packed(source)
    found = results if is_packed(results) else np.empty(source.shape, native(source.dtype))
    rows = given.reshape(-1, length)
    _sort_packed(rows, rows if found is given else found.reshape(-1, length), order, policy)
    if found is not results and in_place:
        results[...] = found
    elif found is not results:
        copy_shared(found, results)


def lie_well(length: int, apart: int) -> bool:
    """Whether a cache holds a row's elements that are so many bytes apart."""
    return length <= _SPREAD and apart % _ALIKE != 0


def is_worth_sharing(source: HostArray) -> bool:
    """Whether rows that NumPy sorts, along the last axis, take so long that few threads are worth waking. Such as are
    spread keep each of them waiting for memory."""
    is_near = abs(source.strides[-1]) == source.itemsize
    return is_worth_waking(source.nbytes << is_near)


def _suits_numpy_as_they_lie(source: HostArray, policy: HostSortPolicy) -> bool:
    """Whether rows that are spread are sorted by NumPy, which packs one after the other: of many those whose elements
    a cache holds at a time, where they lie in all parts of it."""
    if is_packed(source) or suits_radix(source.size, source.shape[-1], source.dtype, policy):
        return False
    length, apart, dtype = source.shape[-1], abs(source.strides[-1]), source.dtype
    if source.size < policy.serial_below or lie_well(length, apart):
        return True
    if dtype.kind not in "iuf" or dtype.char in "bBe" or apart > min(_BESIDE, 4 * dtype.itemsize):
        return False
    return length < part_from(dtype, policy, shared_pool().threads)


def _sort_packed(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> None:
    (rows, length), pool = source.shape, pool_for(source, policy)
    is_shared = (
        source.size >= policy.serial_below
        and share_each_row(rows, pool.threads, source.itemsize)
        and length >= part_from(source.dtype, policy, pool.threads)
    )
    by_radix = suits_radix(source.size, length, source.dtype, policy)
    if rows > 1 and (is_shared or by_radix) and _are_sorted_at_sight(source, results, order, policy):
        return
    if by_radix and not (rows == 1 and seems_constant(source[0], _FEW if length < _SHORT else _HARDLY_ANY)):
        if rows == 1 and _is_counted(source, results, order, policy):
            return
        if _sort_by_radix(source, results, order, policy):
            return
    elif is_shared:
        few = pool.of_at_most(policy.threads_for(source.nbytes // rows))
        for number in range(rows):
            sort_one(*_some(source, results, number), order, policy, few)
        return
    # by NumPy's sort alone: all rows by threads that wait in compiled code, or some at a time
    if rows > 1 and pool is not ALONE:
        by_crew = partial(sort_rows_by_crew, source, order=order, policy=policy)
        if _sort_apart(by_crew, source, results):
            return
    _sort_chunks(source, results, order, policy)


def _sort_chunks(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> None:
    """By NumPy, some rows at a time: parts of the outermost axis that has as many, as neighbours are read together."""
    if source.size < policy.serial_below or source.ndim < 2 or not is_worth_sharing(source):
        sort_chunk(source, results, order)
        return
    others, wanted = source.shape[:-1], -(-source.size // policy.chunk)
    parted = next((axis for axis, size in enumerate(others) if size >= wanted), others.index(max(others)))
    rows = source.swapaxes(0, parted)
    to = rows if results is source else results.swapaxes(0, parted)
    pieces = min(len(rows), wanted)
    if source.shape[-1] >= _LONG and not is_packed(source):
        pieces = len(rows)  # of a single one ties are found sooner
    shared_pool().over(len(rows), lambda own: sort_chunk(*_some(rows, to, own), order), pieces)


def _some(source: HostArray, results: HostArray, which: int | slice) -> tuple[HostArray, HostArray]:
    """Some rows, and where they are wanted: in place, if all are."""
    some: HostArray = source[which]
    return some, some if results is source else results[which]


def _are_sorted_at_sight(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Whether the first row is done at sight; each of the others is then looked at for itself."""
    if source.shape[1] < LEAST_AT_SIGHT or source.itemsize == 1:
        return False
    for number, row in enumerate(source):
        seen = sorted_at_sight(row, order, policy)
        if seen is not None:
            results[number] = seen
        elif not number:
            return False
        else:
            _sort_packed(*_some(source, results, slice(number, number + 1)), order, policy)
    return True


def pool_for(source: HostArray, policy: HostSortPolicy) -> Pool:
    """All threads, where they are worth it."""
    return ALONE if source.size < policy.serial_below else shared_pool()


def _sort_apart(sort: Callable[[HostArray], bool | None], source: HostArray, results: HostArray) -> bool:
    """What sorts rows into memory that lies apart sorts in place too. False, and nothing done, where it says so."""
    ordered = np.empty_like(source) if results is source else results
    if sort(ordered) is False:
        return False
    if ordered is not results:
        results[...] = ordered
    return True


def _sort_by_radix(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Whether the kernels are there, and packed rows are sorted by them."""
    if not can_sort_by_radix(source.dtype, order, source.nbytes):
        return False
    worth_a_thread = _WORTH_ONE_THAT_WAITS if threads_of_crew(source.nbytes) else _WORTH_A_THREAD
    some = shared_pool().of_at_most(min(policy.most_threads, -(-source.size // worth_a_thread)))
    return _sort_apart(lambda ordered: sort_by_radix(source, ordered, order, some), source, results)


def _is_counted(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Whether the row is of few different elements and done, in a fraction of the time that a radix sort takes."""
    if 2 * source.nbytes < policy.few_bytes_from or different_of(source[0], policy.glance) > _DIFFERENT:
        return False
    if not can_sort(source.dtype, source.nbytes):
        return False
    return sort_few(*_some(source, results, 0), order, policy, shared_pool())


def sort_one(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> None:
    """A row that is worth the compiled loops, if these are there."""
    if not can_sort(source.dtype, source.nbytes):
        sort_chunk(source, results, order)
    elif source.itemsize <= 2:
        sort_by_counting(source, results, order, pool)
    else:
        sort_long(source, results, order, policy, pool)


def can_sort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Whether a long row of so many bytes should be sorted by compiled loops, now or at last."""
    return background.has((_sorting, dtype), nbytes)


def _sorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles all loops that long rows of a dtype may need, whatever they hold: the commonest first."""
    size = dtype.itemsize
    if size <= 2:
        yield count_words(size, np.dtype(np.uint32))
        yield from counting_each(size) if size > 1 else [fill(size)]
    else:
        numbers = numbers_as(dtype)
        yield from loading_sorts(numbers)
        yield reverse(numbers)
        yield from counting_each(size)
        yield count_words(1, np.dtype(np.uint32))
        yield rank_found(size)
