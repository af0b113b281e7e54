"""The compiled two-way partition of long rows.

A processor with AVX-512 parts a vector of elements by two compressions; any other takes them one by one, without
branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from ...render import Lines
from .loops import Loop, compiled, name_of

COUNTERS = 8  # numbers from one part's to the next's: those that different threads add to lie in different cache lines
_VECTOR_BYTES = 64

# One pass: this thread's share of parting each of `row` parts in two, about the pivot in its middle.
#
# Threads take block by block, count it, claim as much room as it needs, and move it, which finds it in the cache. Of
# part k the counters from (row + k) * 8 on say how much of the source, the front and the back is taken, and how much is
# moved. At last the threads wait for each other, though not for long: `missed` says that another one is late.
_PASS = """
    beyond = stack({word}, {twice})
    for number in range(row):
        mine = (turn + number) & (row - 1)
        begun = bounds[mine * stride]
        stop = bounds[mine * stride + stride]
        pivot = pivots[mine * stride + half - 1]
        counter = (row + mine) * {counters}
        while True:
            begin = begun + fetch_add(claimed, counter, block)
            if begin >= stop:
                break
            end = min(begin + block, stop)
            low = 0
            for index in range(begin, end):
                low += i8(source[index] < pivot)
            high = end - begin - low
            to_low = begun + fetch_add(claimed, counter + 1, low)
            to_high = stop - fetch_add(claimed, counter + 2, high) - high
            low_end = to_low + low
            high_end = to_high + high
            whole = end - ((end - begin) & {last_lane})
            for at in range(begin, whole, {lanes}):
{vector}
                to_low += count
                to_high += {lanes} - count
            for at in range(whole, end):
                element = source[at]
                if element < pivot:
                    if to_low < low_end:
                        target[to_low] = element
                    to_low += 1
                else:
                    if to_high < high_end:
                        target[to_high] = element
                    to_high += 1
            moved = fetch_add(claimed, counter + 3, end - begin)
    for mine in range(row):
        begun = bounds[mine * stride]
        stop = bounds[mine * stride + stride]
        looks = 0
        while True:
            if load_acquire(claimed, (row + mine) * {counters} + 3) >= stop - begun:
                bounds[mine * stride + half] = begun + claimed[(row + mine) * {counters} + 1]
                break
            looks += 1
            if looks == {patience}:
                missed[0] = 1
                break
"""
_PATIENCE = 1 << 13  # looks at what another thread has come to: some ten microseconds


@cache
def part_in_two(dtype: np.dtype[np.generic]) -> Loop:
    """(source, target, pivots, claimed, bounds, missed, row, stride, half, block, turn): one pass.

    Every thread may call it, and call it again. Threads that start with different parts, `turn`, get less into each
    other's way. Nothing is written beyond a block's room, whatever another thread does to the source meanwhile.
    """
    word, lanes = name_of(dtype), _VECTOR_BYTES // dtype.itemsize
    lines = Lines()
    with lines.indented(), lines.indented(), lines.indented(), lines.indented():
        for line in _vector(lanes):
            lines.add(line)
    body = _PASS.format(
        word=word, lanes=lanes, twice=2 * lanes, last_lane=lanes - 1, vector=lines.text().rstrip("\n"),
        counters=COUNTERS, patience=_PATIENCE,
    )  # fmt: skip
    takes = (
        f"source: {word}[], target: {word}[], pivots: {word}[], claimed: i8[], bounds: i8[], missed: i8[], "
        "row: i8, stride: i8, half: i8, block: i8, turn: i8"
    )
    return compiled("part_in_two", takes, body)


def _vector(lanes: int) -> Iterator[str]:
    """Whole vectors are stored: near an end they go elsewhere first."""
    yield f"low_fits = to_low + {lanes} <= low_end"
    yield f"high_fits = to_high + {lanes} <= high_end"
    for test, low, high in (
        ("if low_fits & high_fits:", "target, to_low", "target, to_high"),
        ("if low_fits & (not high_fits):", "target, to_low", f"beyond, {lanes}"),
        ("if (not low_fits) & high_fits:", "beyond, 0", "target, to_high"),
        ("if (not low_fits) & (not high_fits):", "beyond, 0", f"beyond, {lanes}"),
    ):
        yield test
        yield f"    count = partition_vector(source, at, pivot, {low}, {high})"
    yield "if not low_fits:"
    yield "    for k in range(min(count, low_end - to_low)):"
    yield "        target[to_low + k] = beyond[k]"
    yield "if not high_fits:"
    yield f"    for k in range(min({lanes} - count, high_end - to_high)):"
    yield f"        target[to_high + k] = beyond[{lanes} + k]"
