"""Sorting networks for short rows, as Numba source: one row a lane of a vector, and many side by side.

A block of rows lies turned round: the first elements of all rows, then the second ones, and so on. So comparing two
places of a row is one minimum and one maximum of whole vectors. Up to sixteen places are sorted in registers; longer
rows are merged from such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from ...render import Lines

Pair = tuple[int, int]

_TOGETHER = 16  # places whose elements the registers hold
BLOCK_BYTES = 512  # of one place of all rows in a block


def lanes(size: int) -> int:
    """Rows in a block, of elements of so many bytes."""
    return BLOCK_BYTES // size


@cache
def module_text(length: int, size: int, is_float: bool) -> str:
    """The module for rows of so many places, a power of two, of which the last may be left empty."""
    lines, word, count = Lines(), f"i{size}", lanes(size)
    kind = f"{'float' if is_float else 'plain'}_{size}"
    lines.add(f'"""Sorts rows of at most {length} elements, {size} bytes each. Generated; do not edit."""')
    lines.add()
    lines.add("import numpy as np")
    lines.add(f"from numba import {word}")
    lines.add()
    lines.add(f"from {__name__.rpartition('.')[0]}.network_kernels import load_{kind}, store_{kind}")
    lines.add(f"from {__name__.rpartition('.host.')[0]}.jit import njit")
    lines.add()
    lines.add(f'SIGNATURE = "void({word}[::1], {word}[::1], i8[::1], {word}[::1], i8, i8)"')
    lines.add()
    lines.add()
    lines.add('@njit(nogil=True, error_model="numpy", boundscheck=False)')
    lines.add("def kernel(flat, out, plan, bits, first, last):")
    with lines.indented():
        lines.add("start, out_start, n0, s0, o0, n1, s1, o1, length, step, out_step = plan")
        lines.add(f"block = np.empty({length * count}, {word})")
        lines.add(f"block[:] = {(1 << (8 * size - 1)) - 1}  # behind all others")
        lines.add(f"blocks = (n1 + {count - 1}) // {count}")
        lines.add("for task in range(first, last):")
        with lines.indented():
            lines.add(f"outer, begin = task // blocks, task % blocks * {count}")
            lines.add(f"count = min({count}, n1 - begin)")
            lines.add("source, goal = start + outer * s0 + begin * s1, out_start + outer * o0 + begin * o1")
            lines.add(f"load_{kind}(flat, source, s1, step, block, {count}, length, count, bits)")
            _network(lines, length, count)
            lines.add(f"store_{kind}(out, goal, o1, out_step, block, {count}, length, count, bits)")
    return lines.text()


def _network(lines: Lines, length: int, count: int) -> None:
    run = min(length, _TOGETHER)
    _together(lines, length, run, exchanges(run), count)
    while run < length:
        lines.add(f"for at in range(0, {length}, {2 * run}):")
        with lines.indented():
            lines.add(f"for low in range({run}):  # the second run backwards: each half rises and falls once")
            with lines.indented():
                _pair(lines, "at + low", f"at + {2 * run - 1} - low", count)
        apart = run // 2
        while apart >= _TOGETHER:
            lines.add(f"for at in range(0, {length}, {2 * apart}):")
            with lines.indented():
                lines.add(f"for low in range({apart}):")
                with lines.indented():
                    _pair(lines, "at + low", f"at + {apart} + low", count)
            apart //= 2
        _together(lines, length, _TOGETHER, _halvings(_TOGETHER), count)
        run *= 2


def _together(lines: Lines, length: int, run: int, pairs: Iterable[Pair], count: int) -> None:
    """So many places after the other, held in registers while pairs of them are put in order."""
    lines.add(f"for at in range(0, {length * count}, {run * count}):")
    with lines.indented():
        lines.add(f"some = block[at : at + {run * count}]")
        lines.add(f"for j in range({count}):")
        with lines.indented():
            for place in range(run):
                lines.add(f"x{place} = some[np.uint64(j + {place * count})]")
            for low, high in pairs:
                lines.add(f"x{low}, x{high} = min(x{low}, x{high}), max(x{low}, x{high})")
            for place in range(run):
                lines.add(f"some[np.uint64(j + {place * count})] = x{place}")


def _pair(lines: Lines, low: str, high: str, count: int) -> None:
    """Two places, put in order where they lie."""
    lines.add(f"less = block[({low}) * {count} : ({low}) * {count} + {count}]")
    lines.add(f"more = block[({high}) * {count} : ({high}) * {count} + {count}]")
    lines.add(f"for j in range({count}):")
    with lines.indented():
        lines.add("less[j], more[j] = min(less[j], more[j]), max(less[j], more[j])")


def _halvings(length: int) -> Iterator[Pair]:
    """What puts so many places in order that rise and fall once."""
    apart = length // 2
    while apart:
        for first in range(0, length, 2 * apart):
            for low in range(first, first + apart):
                yield low, low + apart
        apart //= 2


def exchanges(length: int) -> Iterator[Pair]:
    """Batcher's merge exchange: the pairs to put in order, one after the other, to sort so many places."""
    top = 1 << (length - 1).bit_length() >> 1
    rank = top
    while rank:
        other, offset, apart = top, 0, rank
        while apart:
            for low in range(length - apart):
                if low & rank == offset:
                    yield low, low + apart
            apart, offset = other - rank, rank
            other >>= 1
        rank >>= 1
