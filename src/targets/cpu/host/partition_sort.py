"""Sorts one long row: all threads partition it about pivots, in passes that halve all parts, then NumPy's SIMD sort
sorts the parts in parallel.

NumPy's vectorised sort runs without the GIL. A pass of partition is cheap beside it, so each thread gets a part of its
own to sort. Input that holds few different elements is seen first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...addresses import address_of
from ...base import HostArray
from .. import crew as at
from ..crew import Crew, crew, share, threads_of_crew
from ..loops import Kernel, compiled, place_of
from ..pool import Pool
from .counting import sort_few
from .key_words import Elements, numbers_as, numbers_of
from .numpy_pointer import sort_address
from .numpy_sort import restore_ties, sort_chunk
from .numpy_speed import radix_sorts_sooner
from .partition import COUNTERS, part_in_turn, reverse
from .sample import Sample

_SORT, _RESULTS, _SIZE, _ARRAYS = range(at.ARGUMENTS, at.ARGUMENTS + 4)
_PASSES, _BLOCK = range(_ARRAYS + 8, _ARRAYS + 10)
_SORT_PARTS = f"""
    while True:
        parted = native(crew[{at.FUNCTION}], {at.words(_ARRAYS, 8)},
            {at.as_array(at.CLAIMED, at.MOST_THREADS * COUNTERS)}, {at.as_array(at.BOUNDS, at.MOST_THREADS + 1)},
            {at.as_array(at.OWN, (at.MOST_THREADS + 1) * COUNTERS)},
            crew[{at.PARTS}], crew[{_PASSES}], crew[{_BLOCK}], number)
        if crew[{at.OWN} + number * {COUNTERS}] == 0:
            break
        waited = native(crew[{at.YIELD}])
    while True:
        mine = fetch_add(crew, {at.NEXT}, 1)
        if mine >= crew[{at.PARTS}]:
            break
        begun = crew[{at.BOUNDS} + mine]
        count = crew[{at.BOUNDS + 1} + mine] - begun
        if native(crew[{_SORT}], crew[{_RESULTS}] + begun * crew[{_SIZE}], count, 0) != 0:
            failed = fetch_add(crew, {at.FAILED}, 1)
"""


@attrs.frozen(eq=False)
class PartedRow:
    """A row, the pivots between its parts, and the memories to part it into: to and fro between `first` and `second`,
    at last to `results`."""

    source: Elements
    first: Elements
    second: Elements
    results: Elements
    pivots: Elements


@cache
def sort_parts() -> Kernel:
    """(crew, number): a thread's share: it partitions, then sorts parts, as long as there are any."""
    return compiled("sort_parts", "crew: i8[], number: i8", _SORT_PARTS)


def loading_sorts(dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles and finds all that is needed to sort elements of a dtype."""
    yield part_in_turn(dtype)
    if sort_address(dtype):
        yield sort_parts()


def threads_to_sort(dtype: np.dtype[np.generic], nbytes: int, policy: HostSortPolicy) -> int:
    """How many threads of the crew sort so many bytes; 0 where it is none of theirs."""
    threads = threads_of_crew(nbytes, policy) if dtype.itemsize > 2 else 0
    return threads if threads and sort_address(numbers_as(dtype)) else 0


def sort_by_crew(row: PartedRow, block: int, threads: int, threads_of: Crew | None = None) -> bool:
    """Whether the process's crew, or another, has sorted a row: else nothing is done, as it is busy."""
    parts = row.pivots.size + 1
    part, sort = part_in_turn(row.pivots.dtype).address, sort_address(row.pivots.dtype)
    arrays = [number for array in (row.source, row.first, row.second, row.pivots) for number in place_of(array)]
    arguments = sort, address_of(row.results), row.pivots.itemsize, *arrays, parts.bit_length() - 1, block
    return (threads_of or crew()).does(sort_parts, threads, parts, row.source.size, part, arguments)


_LEAST_BLOCK = 1 << 11  # elements that are worth claiming


def part_from(dtype: np.dtype[np.generic], policy: HostSortPolicy, threads: int) -> int:
    """How long a row is worth more than NumPy's sort alone."""
    usual, least = policy.part_from(dtype, threads), policy.crew_bytes_from
    if dtype.itemsize == 2 and radix_sorts_sooner():
        return min(usual, policy.count_slow_pairs_from)
    return min(usual, least // dtype.itemsize) if threads_to_sort(dtype, least, policy) else usual


def sort_long(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> None:
    """Sorts a one-dimensional array of 32- or 64-bit elements. `results` is `source` itself, or lies apart."""
    numbers, is_short = numbers_of(source), source.nbytes < policy.few_bytes_from
    sample = Sample.of(numbers, policy)
    is_left = False
    if sample.different <= policy.some:
        if not is_short and sort_few(source, results, order, policy, pool):
            return
        is_left = is_short or (sample.different <= policy.skewed and source.nbytes < policy.skewed_bytes_from)
    ordered = np.empty_like(numbers) if results is source else numbers_of(results)
    if is_left or not _sort_shared(numbers, ordered, sample, policy, pool):
        sort_chunk(source, results, order)
        return
    _turn(ordered, order, source.dtype.kind, pool)
    if source.dtype.kind == "f":
        restore_ties(source, ordered, order)
    if results is source:
        numbers_of(results)[...] = ordered


def _turn(ordered: Elements, order: SortOrder, kind: str, pool: Pool) -> None:
    """From NumPy's order of numbers to ours: descending, if it is to be, and NaN and NaT last."""
    if order is SortOrder.DESCENDING:
        numbers = ordered.size if kind != "f" else int(ordered.searchsorted(np.array([np.nan], ordered.dtype))[0])
        values = ordered[:numbers]
        share(reverse(values.dtype), numbers // 2, pool, values)
    elif kind in "Mm":  # NaT is the least integer
        count = int(ordered.searchsorted(np.iinfo(np.int64).min, side="right"))
        if count:
            ordered[...] = np.concatenate([ordered[count:], ordered[:count]])


def _sort_shared(source: Elements, results: Elements, sample: Sample, policy: HostSortPolicy, pool: Pool) -> bool:
    """Brings elements into memory apart, part by part, and sorts the parts: ascending, as NumPy has it. False, and
    nothing done, where threads would not share the work, or the crew is busy and the row too short for others. There is
    one pivot fewer than parts, a power of two. Every thread may come to help with everything, whoever is late or early;
    all is one piece of work, for to wake threads takes as long as a pass."""
    waiting = threads_to_sort(source.dtype, source.nbytes, policy)
    pivots = _balanced_pivots(sample, policy, waiting or min(pool.threads, policy.most_threads))
    if not pivots.size:
        return False
    parts = pivots.size + 1
    spare = np.empty(source.size if parts > 2 else 0, pivots.dtype)
    passes = parts.bit_length() - 1
    first, second = (results, spare) if passes % 2 else (spare, results)  # to and fro, at last to the results
    if waiting and sort_by_crew(
        PartedRow(source, first, second, results, pivots), _block(source, parts, policy), parts
    ):
        return True
    if source.size < policy.part_from(source.dtype, pool.threads):
        return False
    pool = pool.of_at_most(parts)
    block = _block(source, pool.threads, policy)
    claimed, bounds = np.zeros((parts, COUNTERS), np.int64), np.zeros(parts + 1, np.int64)
    bounds[parts] = source.size
    missed = np.zeros((pool.threads + parts) * COUNTERS, np.int64)
    # Bound here, once: threads come one after the other as long as Python runs.
    part = part_in_turn(pivots.dtype).on(source, first, second, pivots, claimed, bounds, missed, parts, passes, block)
    parted: list[None] = []

    def help_(number: int) -> None:
        while not parted:
            part(number)
            if not missed[number * COUNTERS]:
                parted.append(None)
                break
            time.sleep(0)  # the one that is waited for may need this core
        mine = number - pool.threads
        if mine >= 0:
            results[bounds[mine] : bounds[mine + 1]].sort()

    pool.run(help_, pool.threads + parts)
    return True


def _block(source: Elements, threads: int, policy: HostSortPolicy) -> int:
    """How many elements a thread partitions at a time."""
    return min(policy.block, max(_LEAST_BLOCK, source.size // (4 * threads)))


def _balanced_pivots(sample: Sample, policy: HostSortPolicy, threads: int) -> Elements:
    """What parts such a row into as much work for each thread; none where most of it would fall to one part. Of an
    element that occurs often each takes little work: equal ones stay together from the first parting on. NaNs, which
    lie in the last part, take none."""
    numbers = sample.numbers
    if sample.is_mostly_nan:
        return numbers[:0]
    parts = 1 << (threads.bit_length() - 1)
    if sample.different >= numbers.size - numbers.size // 8:
        return numbers[[numbers.size * part // parts for part in range(1, parts)]]
    values, counts = np.unique(numbers, return_counts=True)
    work = np.cumsum(counts * (np.log2(numbers.size / counts) + 1), dtype=np.float64)
    places = np.searchsorted(work, np.linspace(0, float(work[-1]), parts + 1)[1:-1], side="right")
    below = np.concatenate([[0], work])[[0, *places, values.size]]
    return values[places] if np.diff(below).max() < policy.most_share * work[-1] else values[:0]
