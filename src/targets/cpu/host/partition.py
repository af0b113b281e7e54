"""The compiled partition of rows: of long ones by all threads, in passes that each part all parts in two; and about the
pivots of files by one thread, for their pieces go to as many threads.

A processor with AVX-512 parts a vector of elements by two compressions; any other takes them one by one, without
branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from textwrap import indent

import attrs
import numpy as np
import numpy.typing as npt

from ....types.dtypes import name_of
from ..loops import Kernel, compiled
from .key_words import Elements
from .numpy_speed import numpy_sorts_slowly

COUNTERS = 8  # numbers from one part's to the next's: those that different threads add to lie in different cache lines
_VECTOR_BYTES = 64

# All passes of a thread: its share of parting, in pass k, each of 2^k parts in two, about the pivot in its middle. They
# are one call, for every return to Python has to wait until the other threads' returns are over.
#
# Threads take block by block, count it, claim as much room as it needs, and move it, which finds it in the cache. Of
# part k of `row` the counters from (row + k) * 8 on say how much of the source, the front and the back is taken, and
# how much is moved. After each pass the threads wait for each other, though not for long: `missed` says that another
# one is late.
_PASSES = """
    beyond = stack({word}, {twice})
    missed[turn * {counters}] = 0
    for number in range(passes):
        row = 1 << number
        stride = parts >> number
        half = stride >> 1
        if number == 0:
{from_source}
        else:
            if (number & 1) == 1:
{from_first}
            else:
{from_second}
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
                    missed[turn * {counters}] = 1
                    break
        if missed[turn * {counters}] != 0:
            break
"""
_PASS = """
for part in range(row):
    mine = (turn + part) & (row - 1)
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
            low += i8({source}[index] < pivot)
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
            element = {source}[at]
            if element < pivot:
                if to_low < low_end:
                    {target}[to_low] = element
                to_low += 1
            else:
                if to_high < high_end:
                    {target}[to_high] = element
                to_high += 1
        moved = fetch_add(claimed, counter + 3, end - begin)
"""
_REVERSE = """
    last = len(values) - 1
    for index in range(start, stop):
        low = values[index]
        values[index] = values[last - index]
        values[last - index] = low
"""
_PATIENCE = 1 << 13  # looks at what another thread has come to: some ten microseconds


@cache
def part_in_turn(dtype: np.dtype[np.generic]) -> Kernel:
    """(source, first, second, pivots, claimed, bounds, missed, parts, passes, block, turn): all passes. The first pass
    reads the source and writes to the first, the second reads that and writes to the second, and so on to and fro.
    Every thread may call it, and call it again. Threads that start with different parts, `turn`, get less into each
    other's way. Nothing is written beyond a block's room, whatever another thread does to the source meanwhile."""
    word, lanes = name_of(dtype), _VECTOR_BYTES // dtype.itemsize

    def one(source: str, target: str, depth: int) -> str:
        vector = indent("\n".join(_vector(lanes, source, target)), 12 * " ")
        body = _PASS.format(
            source=source, target=target, lanes=lanes, last_lane=lanes - 1, vector=vector, counters=COUNTERS
        )
        return indent(body.strip("\n"), depth * " ")

    body = _PASSES.format(
        word=word, twice=2 * lanes, counters=COUNTERS, patience=_PATIENCE, from_source=one("source", "first", 12),
        from_first=one("first", "second", 16), from_second=one("second", "first", 16),
    )  # fmt: skip
    takes = (
        f"source: {word}[], first: {word}[], second: {word}[], pivots: {word}[], claimed: i8[], bounds: i8[], "
        "missed: i8[], parts: i8, passes: i8, block: i8, turn: i8"
    )
    return compiled("part_in_turn", takes, body)


def _vector(lanes: int, source: str, target: str) -> Iterator[str]:
    """Whole vectors are stored: near an end they go elsewhere first."""
    yield f"low_fits = to_low + {lanes} <= low_end"
    yield f"high_fits = to_high + {lanes} <= high_end"
    for test, low, high in (
        ("if low_fits & high_fits:", f"{target}, to_low", f"{target}, to_high"),
        ("if low_fits & (not high_fits):", f"{target}, to_low", f"beyond, {lanes}"),
        ("if (not low_fits) & high_fits:", "beyond, 0", f"{target}, to_high"),
        ("if (not low_fits) & (not high_fits):", "beyond, 0", f"beyond, {lanes}"),
    ):
        yield test
        yield f"    count = partition_vector({source}, at, pivot, {low}, {high})"
    yield "if not low_fits:"
    yield "    for k in range(min(count, low_end - to_low)):"
    yield f"        {target}[to_low + k] = beyond[k]"
    yield "if not high_fits:"
    yield f"    for k in range(min({lanes} - count, high_end - to_high)):"
    yield f"        {target}[to_high + k] = beyond[{lanes} + k]"


@cache
def reverse(dtype: np.dtype[np.generic]) -> Kernel:
    """(start, stop, values): swaps each of the elements start to stop with the one as far from the other end."""
    return compiled("reverse", f"start: i8, stop: i8, values: {name_of(dtype)}[]", _REVERSE)


_BLOCK = 1 << 15  # elements, which the nearer caches hold
_MOST = 512  # parts of elements of 8 bytes, or where vectors are compressed: more take as long as to sort
_MOST_ONE_BY_ONE = 32  # of 4 bytes where they are not
_MOST_BESIDE_RADIX = 8  # there, where the sort is not NumPy's and takes less


def can_partition(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in "iuf" and dtype.itemsize in (4, 8) and dtype.isnative


@attrs.frozen
class RowPartition:
    """The partition of rows of one dtype."""

    dtype: np.dtype[np.generic]

    @property
    def most_parts(self) -> int:
        """How many parts are made sooner than the row is sorted."""
        from ..compiler.machine import machine  # loads LLVM

        if self.dtype.itemsize == 8 or machine().compresses:
            return _MOST
        return _MOST_BESIDE_RADIX if numpy_sorts_slowly(self.dtype.itemsize) else _MOST_ONE_BY_ONE

    def __call__(self, source: Elements, results: Elements, pivots: Elements) -> npt.NDArray[np.int64]:
        """Elements below the first pivot, those below the second, ...; NaNs are in the last part. Passes go to and fro
        between the source and the results."""
        parts = pivots.size + 1
        passes = parts.bit_length() - 1
        assert parts == 1 << passes
        assert passes % 2  # the last pass writes to the results
        claimed, bounds = np.zeros((parts, COUNTERS), np.int64), np.zeros(parts + 1, np.int64)
        bounds[parts] = source.size
        arrays = source, results, source, pivots, claimed, bounds, np.zeros(COUNTERS, np.int64)
        part_in_turn(self.dtype).on(*arrays, parts, passes, _BLOCK, 0)()
        return bounds
