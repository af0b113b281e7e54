"""Partitions a long row about pivots with all threads, in passes that halve all parts, then sorts the parts."""

from __future__ import annotations

import time

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ..pool import Pool
from .key_words import Elements
from .loops import PIECE, flag
from .order_loops import reverse
from .partition_loops import COUNTERS, part_in_two
from .sample import Sample

_LEAST_BLOCK = 1 << 11  # elements that are worth claiming


def sort_parts(source: Elements, results: Elements, pivots: Elements, policy: HostSortPolicy, pool: Pool) -> None:
    """Brings elements into memory apart, part by part, and sorts the parts.

    There is one pivot fewer than parts, a power of two. Every thread may come to help with everything, whoever is late
    or early; all is one piece of work, for to wake threads takes as long as a pass.
    """
    parts = pivots.size + 1
    spare = np.empty(source.size if parts > 2 else 0, pivots.dtype)
    claimed, bounds = np.zeros((parts, COUNTERS), np.int64), np.zeros(parts + 1, np.int64)
    bounds[parts] = source.size
    pool = pool.of_at_most(parts)
    block = min(policy.block, max(_LEAST_BLOCK, source.size // (4 * pool.threads)))

    part = part_in_two(pivots.dtype)
    passes = [1 << number for number in range(parts.bit_length() - 1)]  # parts there are before each
    to_spare = [number % 2 == len(passes) % 2 for number in range(len(passes))]  # to and fro, at last to the results
    parted: list[None] = []

    def help_(number: int) -> None:
        missed, read = flag(), source
        for row, goes_to_spare in zip(passes, to_spare, strict=True):
            written, stride = spare if goes_to_spare else results, parts // row
            while not parted:
                missed[0] = 0
                part(read, written, pivots, claimed, bounds, missed, row, stride, stride // 2, block, number)
                if not missed[0]:
                    break
                time.sleep(0)  # the one that is waited for may need this core
            read = written
        parted.append(None)
        mine = number - pool.threads
        if mine >= 0:
            results[bounds[mine] : bounds[mine + 1]].sort()

    pool.run(help_, pool.threads + parts)


def copy_over(source: Elements, target: Elements, pool: Pool) -> None:
    def copy(own: slice) -> None:
        target[own] = source[own]

    pool.over(source.size, copy)


def balanced_pivots(sample: Sample, policy: HostSortPolicy, pool: Pool) -> Elements:
    """What parts such a row into as much work for each thread; none where most of it would fall to one part.

    Of an element that occurs often each takes little work: equal ones stay together from the first parting on. NaNs,
    which lie in the last part, take none.
    """
    numbers = sample.numbers
    if sample.is_mostly_nan:
        return numbers[:0]
    threads = min(pool.threads, policy.most_threads)
    parts = 1 << (threads.bit_length() - 1)
    if sample.different >= numbers.size - numbers.size // 8:
        return numbers[[numbers.size * part // parts for part in range(1, parts)]]
    values, counts = np.unique(numbers, return_counts=True)
    work = np.cumsum(counts * (np.log2(numbers.size / counts) + 1), dtype=np.float64)
    places = np.searchsorted(work, np.linspace(0, float(work[-1]), parts + 1)[1:-1], side="right")
    below = np.concatenate([[0], work])[[0, *places, values.size]]
    return values[places] if np.diff(below).max() < policy.most_share * work[-1] else values[:0]


def reverse_all(values: Elements, pool: Pool) -> None:
    swap = reverse(values.dtype).on(values)
    pool.over(values.size // 2, lambda own: swap(own.start, own.stop), least=PIECE)
