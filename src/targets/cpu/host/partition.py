"""Parts a long row about pivots by all threads, pass by pass, each of which halves all parts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ..pool import Pool, slices
from .key_words import Elements
from .sample import Sample

# Moves some of a part's elements about a pivot into a target, as `claimed` says where: see part_kernels.
Move: TypeAlias = Callable[[Elements, slice, Any, Elements, "npt.NDArray[np.int64]"], None]


def part_about(
    source: Elements, results: Elements, pivots: Elements, policy: HostSortPolicy, pool: Pool, first: Move | None = None
) -> list[int]:
    """Brings elements into memory apart, part by part, the first time by `first` if that is given. The parts' bounds.

    There is one pivot fewer than parts, a power of two. Passes go to and fro between the results and another array.
    """
    passes = (pivots.size + 1).bit_length() - 1
    spare = np.empty(source.size, pivots.dtype) if passes > 1 else results
    reading, bounds, move = source, [0, source.size], first or plain_move(policy)
    for number in range(passes):
        target = results if (passes - number) % 2 else spare
        stride = (pivots.size + 1) >> number
        bounds = _halve(reading, target, bounds, pivots[stride // 2 - 1 :: stride], move, pool)
        reading, move = target, plain_move(policy)
    return bounds


def sort_parts(results: Elements, bounds: list[int], pool: Pool) -> None:
    pool.run(lambda part: results[bounds[part] : bounds[part + 1]].sort(), len(bounds) - 1)


def plain_move(policy: HostSortPolicy) -> Move:
    from .partition_kernels import part

    def move(source: Elements, own: slice, pivot: Any, target: Elements, claimed: npt.NDArray[np.int64]) -> None:
        part(source[own], pivot, target, policy.block, claimed)

    return move


def _halve(
    source: Elements, target: Elements, bounds: list[int], pivots: Elements, move: Move, pool: Pool
) -> list[int]:
    """Parts each part about its pivot; the new bounds."""
    parts = [slice(start, stop) for start, stop in pairwise(bounds)]
    claimed = np.zeros((len(parts), 3), np.int64)

    def help_(number: int) -> None:
        """Every thread may come to help with every part, whoever is late or early."""
        part = number % len(parts)
        move(source, parts[part], pivots[part], target[parts[part]], claimed[part])

    pool.run(help_, len(parts) * pool.threads)
    middles = [own.start + int(lows) for own, lows in zip(parts, claimed[:, 1], strict=True)]
    return [0, *(bound for own, middle in zip(parts, middles, strict=True) for bound in (middle, own.stop))]


def copy_over(source: Elements, target: Elements, pool: Pool) -> None:
    pieces = slices(source.size, 4 * pool.threads)

    def copy(number: int) -> None:
        target[pieces[number]] = source[pieces[number]]

    pool.run(copy, len(pieces))


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

    pieces = slices(values.size // 2, 4 * pool.threads)
    pool.run(lambda number: reverse(values, pieces[number].start, pieces[number].stop), len(pieces))
