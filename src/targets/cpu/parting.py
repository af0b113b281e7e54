"""Parts a long row about pivots by all threads, pass by pass, each of which halves all parts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np

from .plan import slices
from .policy import SortPolicy
from .pool import Pool
from .ranks import Elements

# How many of a piece's elements are below a pivot.
CountBelow: TypeAlias = Callable[[slice, Any], int]


@attrs.frozen
class Parted:
    """The bounds of the parts, and an array that still holds all elements as they came, though not where."""

    bounds: list[int]
    whole: Elements


def part_about(source: Elements, results: Elements, pivots: Elements, count_first: CountBelow, pool: Pool) -> Parted:
    """Brings elements into `results`, part by part. There is one pivot fewer than parts, a power of two.

    Passes go to and fro between `results` and another array, and end in `results`, which may lie where `source` does.
    An interrupted caller finds all its elements still in place: the array that a pass reads is whole.
    """
    passes = (pivots.size + 1).bit_length() - 1
    in_place = np.may_share_memory(source, results)
    spare = np.empty_like(source) if passes > 1 or in_place else results
    reading = source
    bounds = [0, source.size]
    try:
        for number in range(passes):
            target = results if (passes - number) % 2 else spare
            if number == 0 and in_place and target is results:
                copy_over(source, spare, pool)
                reading = spare
            stride = (pivots.size + 1) >> number
            count = count_first if number == 0 else _counter(reading)
            bounds = _halve(reading, target, bounds, pivots[stride // 2 - 1 :: stride], count, pool)
            if number < passes - 1:
                reading = target
    except BaseException:
        if in_place and reading is spare:
            results[...] = spare
        raise
    return Parted(bounds, reading)


def copy_over(source: Elements, target: Elements, pool: Pool) -> None:
    pieces = slices(source.size, 4 * pool.threads)

    def copy(number: int) -> None:
        target[pieces[number]] = source[pieces[number]]

    pool.run(copy, len(pieces))


def _counter(source: Elements) -> CountBelow:
    from .split_kernels import count_below

    return lambda piece, pivot: count_below(source[piece], pivot)


@attrs.frozen
class _Piece:
    """Some elements of a part, which one thread moves to either side of the part's pivot."""

    part: int
    elements: slice


def _halve(
    source: Elements, target: Elements, bounds: list[int], pivots: Elements, count_below: CountBelow, pool: Pool
) -> list[int]:
    """Parts each part about its pivot; the new bounds."""
    from .split_kernels import part

    share = max(1, 4 * pool.threads // pivots.size)
    parts = list(enumerate(pairwise(bounds)))
    pieces = [
        _Piece(number, slice(start + own.start, start + own.stop))
        for number, (start, stop) in parts
        for own in slices(stop - start, share)
    ]
    below = np.zeros(len(pieces), np.int64)

    def count(number: int) -> None:
        piece = pieces[number]
        below[number] = count_below(piece.elements, pivots[piece.part])

    pool.run(count, len(pieces))
    places: list[tuple[slice, slice]] = []
    halved = [0]
    for number, (start, stop) in parts:
        own = range(number * share, (number + 1) * share)
        low, high = start, start + int(below[own.start : own.stop].sum())
        halved += [high, stop]
        for index in own:
            elements = pieces[index].elements
            lows = int(below[index])
            highs = elements.stop - elements.start - lows
            places.append((slice(low, low + lows), slice(high, high + highs)))
            low, high = low + lows, high + highs

    def move(number: int) -> None:
        piece, (lows, highs) = pieces[number], places[number]
        part(source[piece.elements], pivots[piece.part], target[lows], target[highs])

    pool.run(move, len(pieces))
    return halved


def balanced_pivots(sample: Elements, policy: SortPolicy, pool: Pool) -> Elements:
    """What parts such a row into as much work for each thread; none where most of it would fall to one part.

    Of an element that occurs often each takes little work: equal ones stay together from the first parting on.
    """
    numbers: Elements = sample[sample == sample]  # without NaNs, which lie in the last part
    if not numbers.size:
        return numbers
    values, counts = np.unique(numbers, return_counts=True)
    work = np.cumsum(counts * (np.log2(numbers.size / counts) + 1), dtype=np.float64)
    threads = min(pool.threads, policy.most_threads)
    parts = 1 << (threads.bit_length() - 1)
    places = np.searchsorted(work, np.linspace(0, float(work[-1]), parts + 1)[1:-1], side="right")
    below = np.concatenate([[0], work])[[0, *places, values.size]]
    return values[places] if np.diff(below).max() < policy.most_share * work[-1] else values[:0]


def reverse_all(values: Elements, pool: Pool) -> None:
    from .split_kernels import reverse

    pieces = slices(values.size // 2, 4 * pool.threads)
    pool.run(lambda number: reverse(values, pieces[number].start, pieces[number].stop), len(pieces))
