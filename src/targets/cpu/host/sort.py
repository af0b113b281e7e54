"""Sorts host arrays: chooses an algorithm by dtype, length and number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.host import copy_elements, is_packed
from ....types.dtypes import native
from ....types.indices import SortOrder
from ...base import HostArray
from ..background import background
from ..crew import threads_of_crew
from ..pool import Pool, shared_pool
from .counting import count_words, fill, rank_found, sort_by_counting, sort_few
from .crew_rows import sort_rows_by_crew, sorting_threads
from .key_words import numbers_of
from .numpy_sort import restore_ties, sort_chunk, sort_row
from .numpy_speed import numpy_sorts_slowly
from .partition import reverse
from .partition_sort import loading_sorts, part_from, sort_long
from .radix_sort import can_sort_by_radix, sort_by_radix, suits_radix
from .row_networks import sort_short_rows
from .sample import different_of, seems_constant, seems_in_order
from .strides import copy_shared

_Block: TypeAlias = tuple[int | slice, ...]
_Sort: TypeAlias = Callable[[HostArray, HostArray, SortOrder, HostSortPolicy, bool], None]

_SHORT, _FEW, _HARDLY_ANY = 1 << 15, 10, 3  # a row, and how many of its elements that are looked at may differ there
_DIFFERENT = 192  # of the elements at a glance: more, and a row is not of so few as are counted
_WORTH_A_THREAD, _WORTH_ONE_THAT_WAITS = 1 << 16, 1 << 14  # elements that are sorted by radix
_TOGETHER = 64  # rows at least of a block that is copied: so many neighbours are read while the caches hold them


def sort_rows(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool = False
) -> None:
    """Sorts each row, along the last axis, into `results`, which is `source` itself or lies apart. Both of any layout.
    In place, an exception leaves the elements of each row in it, in some order: long rows are sorted in scratch memory,
    and one call into C copies the result back, which no signal handler interrupts. `stable` keeps floats that tie,
    zeros of both signs and NaNs of differing bits, in the order they came in; all else that ties is alike."""
    length, stable = source.shape[-1], stable and source.dtype.kind == "f"
    if length < 2 or not source.size:
        if results is not source:
            results[...] = source
        return
    if results is not source and np.may_share_memory(source, results):
        source = source.copy()  # the same memory by another name, or some of it
    if not stable and sort_short_rows(source, results, order, policy):
        return
    by_radix = suits_radix(source.size, length, source.dtype, policy)
    if source.size < policy.serial_below and not by_radix and not sorting_threads(source, policy):
        _sort_packed(_sort_alone, source, results, order, policy, stable)
        return
    rows, pool = source.size // length, shared_pool()
    is_shared = source.size >= policy.serial_below and rows < 2 * pool.threads
    is_long = is_shared and length >= _part_from(source.dtype, policy, pool.threads)
    if is_long or by_radix:
        _sort_packed(_sort_long_rows, source, results, order, policy, stable)
    elif rows < _TOGETHER * pool.threads or sorting_threads(source, policy):
        _sort_packed(_sort_in_blocks, source, results, order, policy, stable)
    else:
        _sort_in_blocks(source, results, order, policy, stable)


def _sort_packed(
    sort: _Sort, source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool
) -> None:
    """Brings rows together first if they lie otherwise."""
    shape, in_place = (-1, source.shape[-1]), results is source
    found = results if is_packed(results) else np.empty(source.shape, native(source.dtype))
    if not is_packed(source):
        copy_shared(source, found)
        source = found
    rows = source.reshape(shape)
    sort(rows, rows if found is source else found.reshape(shape), order, policy, stable)
    if found is not results and in_place:
        results[...] = found
    elif found is not results:
        copy_shared(found, results)


def _sort_alone(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool) -> None:
    """By this thread, all rows at once."""
    sort_chunk(source, results, order, stable)


def _sort_long_rows(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool
) -> None:
    (rows, length), pool = source.shape, shared_pool()
    by_radix = suits_radix(source.size, length, source.dtype, policy)
    if by_radix and not (rows == 1 and is_easy(source[0], policy)):
        if rows == 1 and _is_counted(source, results, order, policy, stable):
            return
        if not sort_packed_by_radix(source, results, order, policy, stable):
            _sort_in_blocks(source, results, order, policy, stable)
        return
    few = pool.of_at_most(policy.threads_for(source.nbytes // rows))
    for number in range(rows):
        row = source[number]
        result = row if results is source else results[number]
        is_alone = source.size < policy.serial_below or _suits_numpy(row, policy, pool.threads)
        if is_alone or not can_sort(source.dtype, source.nbytes):
            sort_row(row, result, order, stable)
        else:
            sort_one(row, result, order, policy, few, stable)


def sort_packed_by_radix(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool
) -> bool:
    """Whether the kernels are there, and packed rows are sorted by them."""
    if not can_sort_by_radix(source.dtype, order, source.nbytes):
        return False
    worth_a_thread = _WORTH_ONE_THAT_WAITS if threads_of_crew(source.nbytes) else _WORTH_A_THREAD
    some = shared_pool().of_at_most(min(policy.most_threads, -(-source.size // worth_a_thread)))
    return _sort_apart(lambda ordered: sort_by_radix(source, ordered, order, some), source, results, order, stable)


def _sort_in_blocks(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool
) -> None:
    """By NumPy's sort alone: all rows by threads that wait in compiled code, or some at a time, where they lie if they
    are packed, else in memory of their own."""
    length, in_place, pool = source.shape[-1], results is source, shared_pool()
    are_packed = is_packed(source) and is_packed(results)
    threads, least = sorting_threads(source, policy) if are_packed else 0, 1 if are_packed else _TOGETHER
    if threads and _sort_apart(
        lambda ordered: sort_rows_by_crew(source, ordered, order, threads), source, results, order, stable
    ):
        return
    blocks = list(_blocks(source.shape, max(policy.chunk, least * length)))

    def sort(block: _Block) -> None:
        some, goal = source[block], results[block]
        found = goal if is_packed(goal) else np.empty(goal.shape, native(goal.dtype))
        if not is_packed(some):
            copy_elements(some, found)
            some = found
        rows = some.reshape(-1, length)
        sort_chunk(rows, rows if in_place or some is found else found.reshape(-1, length), order, stable)
        if found is not goal:
            goal[...] = found

    if source.size < policy.serial_below or len(blocks) == 1:
        sort(())
    else:
        pool.run(lambda number: sort(blocks[number]), len(blocks))


def _sort_apart(
    sort: Callable[[HostArray], bool | None], source: HostArray, results: HostArray, order: SortOrder, stable: bool
) -> bool:
    """What sorts rows into memory that lies apart sorts in place too; ties are looked up in the source. False, and
    nothing done, where it says so."""
    ordered = np.empty_like(source) if results is source else results
    if sort(ordered) is False:
        return False
    if stable:
        restore_ties(source, ordered, order, stable)
    if ordered is not results:
        results[...] = ordered
    return True


def _blocks(shape: tuple[int, ...], most: int) -> Iterator[_Block]:
    """What cuts an array into blocks of whole rows, of about so many elements, that lie near each other."""
    axis, inner = len(shape) - 2, shape[-1]
    while axis > 0 and inner * shape[axis] <= most:
        inner *= shape[axis]
        axis -= 1
    step = max(1, most // inner)
    for before in np.ndindex(shape[: max(0, axis)]):
        for first in range(0, math.prod(shape[:-1][axis : axis + 1]), step):
            yield *before, slice(first, first + step)


def is_easy(row: HostArray, policy: HostSortPolicy) -> bool:
    """Whether so few elements of a row differ that NumPy sorts it sooner, or a long one seems to be in order."""
    numbers = numbers_of(row)
    is_long = row.size >= policy.part_from(row.dtype)
    few = _FEW if row.size < _SHORT else _HARDLY_ANY
    return seems_constant(numbers, few) or (is_long and seems_in_order(numbers) and can_sort(row.dtype, row.nbytes))


def _is_counted(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool) -> bool:
    """Whether a row is of few different elements and done, in a fraction of the time that a radix sort takes."""
    if 2 * source.nbytes < policy.few_bytes_from or different_of(source[0], policy.glance) > _DIFFERENT:
        return False
    if not can_sort(source.dtype, source.nbytes):
        return False
    if stable and results is source:
        source = source.copy()
    row = source[0]
    return sort_few(row, row if results is source else results[0], order, policy, shared_pool(), stable)


def _part_from(dtype: np.dtype[np.generic], policy: HostSortPolicy, threads: int) -> int:
    """How long a row is worth more than NumPy's sort alone."""
    if dtype.itemsize > 2:
        return part_from(dtype, policy, threads)
    usual = policy.part_from(dtype, threads)
    return min(usual, policy.count_slow_pairs_from) if dtype.itemsize == 2 and numpy_sorts_slowly(2) else usual


def _suits_numpy(row: HostArray, policy: HostSortPolicy, threads: int) -> bool:
    """Whether NumPy's sort has less to do than threads have to wake: a short row, or 16 bits of few different ones."""
    if row.size < _part_from(row.dtype, policy, threads):
        return True
    if row.itemsize != 2 or row.nbytes >= policy.few_bytes_from or numpy_sorts_slowly(2):
        return False
    return different_of(row, policy.sample) <= policy.some


def sort_one(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool, stable: bool = False
) -> None:
    """A row that is worth the compiled loops."""
    if stable and results is source:
        _sort_apart(
            lambda ordered: sort_one(source, ordered, order, policy, pool, stable), source, source, order, False
        )
        return
    if source.itemsize == 1:
        sort_by_counting(source, results, order, pool)
    elif source.itemsize == 2:
        # Equal elements in a row would wait for each other at one counter.
        if not sort_few(source, results, order, policy, pool, stable):
            sort_by_counting(source, results, order, pool)
            if stable:
                restore_ties(source[np.newaxis], results[np.newaxis], order, stable)
    else:
        sort_long(source, results, order, policy, pool, stable)


def can_sort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Whether a long row of so many bytes should be sorted by compiled loops, now or at last."""
    return background.has(("sort", dtype), partial(_sorting, dtype), nbytes)


def _sorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles all loops that long rows of a dtype may need, whatever they hold: the commonest first."""
    size = dtype.itemsize
    if size <= 2:
        yield count_words(size, np.dtype(np.uint32))
        yield fill(size)
    if size >= 4:
        numbers = numbers_of(np.empty(0, dtype)).dtype
        yield from loading_sorts(numbers)
        yield reverse(numbers)
        yield fill(size)
    if size >= 2:
        yield count_words(1, np.dtype(np.uint32))
        yield rank_found(size)
