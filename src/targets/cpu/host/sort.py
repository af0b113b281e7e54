"""Sorts host arrays: chooses an algorithm by dtype, length and number of rows."""

from __future__ import annotations

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import threads_of_crew
from ..pool import Pool, shared_pool
from .commit import put_in_place
from .counting import sort_by_counting
from .crew_rows import sort_rows_by_crew, sorting_threads
from .few_values import sort_few
from .key_words import numbers_of
from .loading import can_sort
from .numpy_sort import sort_chunk, sort_row
from .numpy_speed import numpy_sorts_slowly
from .partition_sort import part_from, sort_long
from .radix_sort import can_sort_by_radix, sort_by_radix, suits_radix
from .sample import different_of, seems_constant, seems_in_order
from .ties import restore_ties

_SHORT, _FEW, _HARDLY_ANY = 1 << 15, 10, 3  # a row, and how many of its elements that are looked at may differ there
_DIFFERENT = 192  # of the elements at a glance: more, and a row is not of so few as are counted
_WORTH_A_THREAD, _WORTH_ONE_THAT_WAITS = 1 << 16, 1 << 14  # elements that are sorted by radix


def sort_rows(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool = False
) -> None:
    """Sorts each row of a packed two-dimensional array into `results`, which is `source` itself or lies apart.

    In place, an exception leaves the elements of each row in it, in some order: see commit.py. `stable` keeps floats
    that tie, zeros of both signs and NaNs of differing bits, in the order they came in; all else that ties is alike.
    """
    stable = stable and source.dtype.kind == "f"
    rows, length = source.shape
    if length < 2 or not rows:
        if results is not source:
            results[...] = source
        return
    is_long = source.size >= policy.serial_below
    if results is not source and (is_long or source.dtype.kind == "f") and np.may_share_memory(source, results):
        source = source.copy()  # the same memory by another name, or some of it
    if suits_radix(source.size, length, source.dtype, policy) and not (rows == 1 and _is_easy(source[0], policy)):
        if rows == 1 and _is_counted(source, results, order, policy, stable):
            return
        if can_sort_by_radix(source.dtype, order, source.nbytes):
            _sort_by_radix(source, results, order, policy, stable)
        else:
            _sort_in_chunks(source, results, order, policy, stable)
        return
    if not is_long:
        sort_chunk(source, results, order, stable)
        return
    pool = shared_pool()
    if rows == 1 and _suits_numpy(source[0], policy, pool.threads):
        sort_chunk(source, results, order, stable)
        return
    is_shared = length >= _part_from(source.dtype, policy, pool.threads)
    if is_shared and rows < 2 * pool.threads and can_sort(source.dtype, source.nbytes):
        few = pool.of_at_most(policy.threads_for(source.nbytes // rows))
        for number in range(rows):
            row = source[number]
            result = row if results is source else results[number]
            if rows > 1 and _suits_numpy(row, policy, pool.threads):
                sort_row(row, result, order, stable)
                continue
            sort_one(row, result, order, policy, few, stable)
        return
    _sort_in_chunks(source, results, order, policy, stable)


def _sort_in_chunks(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool
) -> None:
    """By NumPy's sort alone, some rows at a time, or all of them by threads that wait in compiled code."""
    rows, length = source.shape
    threads = sorting_threads(source, policy)
    if threads:
        ordered = np.empty_like(source) if results is source else results
        if sort_rows_by_crew(source, ordered, order, threads):
            if stable:
                restore_ties(source, ordered, order, stable)
            if ordered is not results:
                put_in_place(ordered, results, shared_pool())
            return
    chunk = max(1, policy.chunk // length)
    if chunk >= rows:
        sort_chunk(source, results, order, stable)
        return
    chunks = [slice(start, start + chunk) for start in range(0, rows, chunk)]

    def work(number: int) -> None:
        some = source[chunks[number]]
        sort_chunk(some, some if results is source else results[chunks[number]], order, stable)

    shared_pool().run(work, len(chunks))


def _is_easy(row: HostArray, policy: HostSortPolicy) -> bool:
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


def _sort_by_radix(
    source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, stable: bool
) -> None:
    worth_a_thread = _WORTH_ONE_THAT_WAITS if threads_of_crew(source.nbytes) else _WORTH_A_THREAD
    pool = shared_pool().of_at_most(min(policy.most_threads, -(-source.size // worth_a_thread)))
    ordered = np.empty_like(source) if results is source else results
    sort_by_radix(source, ordered, order, pool)
    if stable:
        restore_ties(source, ordered, order, stable)
    if ordered is not results:
        put_in_place(ordered.reshape(-1), results.reshape(-1), pool)


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
    if stable and results is source:  # ties are looked up in the source at the end: it stays as it is until then
        ordered = np.empty_like(source)
        sort_one(source, ordered, order, policy, pool, stable)
        put_in_place(ordered, results, pool)
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
