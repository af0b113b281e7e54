"""Parts a long row about pivots by all threads, pass by pass, each of which halves all parts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ..pool import Pool, slices
from .key_words import Elements
from .sample import Sample

# Moves some of a part's elements about a pivot into a target, as `claimed` says where: see part_kernels.
Move: TypeAlias = Callable[[Elements, slice, Any, Elements, "npt.NDArray[np.int64]"], None]


# Where the last pass goes to, asked when that must be known: so many passes are done then.
Goal: TypeAlias = Callable[[int], Elements]


@attrs.frozen
class Parted:
    """The parts, their bounds, and an array that still holds all elements as they came, though not where."""

    results: Elements
    bounds: list[int]
    whole: Elements


def part_about(
    source: Elements, goal: Goal, pivots: Elements, first: Move | None, policy: HostSortPolicy, pool: Pool
) -> Parted:
    """Brings elements to the goal, part by part, the first time by `first` if that is given.

    There is one pivot fewer than parts, a power of two. Passes go to and fro between the goal and another array. The
    goal may be the source once a pass is done: then passes that write there are seen through whatever strikes.
    """
    passes = (pivots.size + 1).bit_length() - 1
    results = goal(0) if passes % 2 else np.empty(0, pivots.dtype)
    spare = np.empty(source.size, pivots.dtype) if passes > 1 else results
    reading = whole = source
    bounds = [0, source.size]
    move = plain_move(policy)
    for number in range(passes):
        if number == 1 and not passes % 2:
            results = goal(number)
            if results is source and not pool.can_finish():
                results = np.empty_like(source)
        target = results if (passes - number) % 2 else spare
        stride = (pivots.size + 1) >> number
        own_move = first if first is not None and number == 0 else move
        bounds = _halve(
            reading, target, bounds, pivots[stride // 2 - 1 :: stride], own_move, pool, is_only_copy=target is source
        )
        whole, reading = reading, target
    return Parted(results, bounds, whole)


def plain_move(policy: HostSortPolicy) -> Move:
    from .partition_kernels import part

    def move(source: Elements, own: slice, pivot: Any, target: Elements, claimed: npt.NDArray[np.int64]) -> None:
        part(source[own], pivot, target, policy.block, claimed)

    return move


def _halve(
    source: Elements, target: Elements, bounds: list[int], pivots: Elements, move: Move, pool: Pool, is_only_copy: bool
) -> list[int]:
    """Parts each part about its pivot; the new bounds."""
    parts = [slice(start, stop) for start, stop in pairwise(bounds)]
    claimed = np.zeros((len(parts), 3), np.int64)

    def help_(number: int) -> None:
        """Every thread may come to help with every part, whoever is late or early."""
        part = number % len(parts)
        move(source, parts[part], pivots[part], target[parts[part]], claimed[part])

    if is_only_copy:
        move(source, slice(0, 0), pivots[0], target[:0], np.zeros(3, np.int64))  # compiles it
        pool.finish_pieces(help_, len(parts) * pool.threads)
    else:
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
