"""Parts a long row about pivots by all threads, pass by pass, each of which halves all parts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ..pool import Pool
from .key_words import Elements
from .sample import Sample


def part_about(source: Elements, results: Elements, pivots: Elements, policy: HostSortPolicy, pool: Pool) -> list[int]:
    """Brings elements into memory apart, part by part. The parts' bounds.

    There is one pivot fewer than parts, a power of two. Passes go to and fro between the results and another array.
    """
    passes = (pivots.size + 1).bit_length() - 1
    spare = np.empty(source.size, pivots.dtype) if passes > 1 else results
    reading, bounds = source, [0, source.size]
    for number in range(passes):
        target = results if (passes - number) % 2 else spare
        stride = (pivots.size + 1) >> number
        bounds = _halve(reading, target, bounds, pivots[stride // 2 - 1 :: stride], policy, pool)
        reading = target
    return bounds


def sort_parts(results: Elements, bounds: list[int], pool: Pool) -> None:
    pool.run(lambda part: results[bounds[part] : bounds[part + 1]].sort(), len(bounds) - 1)


def _halve(
    source: Elements, target: Elements, bounds: list[int], pivots: Elements, policy: HostSortPolicy, pool: Pool
) -> list[int]:
    """Parts each part about its pivot; the new bounds."""
    from .partition_kernels import part

    parts = [slice(start, stop) for start, stop in pairwise(bounds)]
    claimed = np.zeros((len(parts), 3), np.int64)

    def help_(number: int) -> None:
        """Every thread may come to help with every part, whoever is late or early."""
        mine = number % len(parts)
        own = parts[mine]
        part(source[own], pivots[mine], target[own], policy.block, claimed[mine])

    pool.run(help_, len(parts) * pool.threads)
    middles = [own.start + int(lows) for own, lows in zip(parts, claimed[:, 1], strict=True)]
    return [0, *(bound for own, middle in zip(parts, middles, strict=True) for bound in (middle, own.stop))]


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
    from .order_kernels import reverse

    pool.over(values.size // 2, lambda own: reverse(values, own.start, own.stop))
