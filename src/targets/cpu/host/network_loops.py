"""Sorting networks for short rows: one row a lane of a vector, many side by side.

A block of rows lies turned round: the first elements of all rows, then the second ones, and so on. So comparing two
places of a row is one minimum and one maximum of whole vectors. Up to sixteen places are sorted in registers; longer
rows are merged from such. How far apart two places lie is a number in the text wherever they are compared: else LLVM
would have to ask, as it runs, whether they overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ...render import Lines
from .loops import compiled, numbers_of_plan
from .word_loops import lines_of_bits, turned, turned_back

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

Pair = tuple[int, int]

_PLAN = ("start", "out_start", "n0", "s0", "o0", "n1", "s1", "o1", "length", "step", "out_step")
_TOGETHER = 16  # places whose elements the registers hold
BLOCK_BYTES = 512  # of one place of all rows in a block


def lanes(size: int) -> int:
    """Rows in a block, of elements of so many bytes."""
    return BLOCK_BYTES // size


@cache
def network(length: int, size: int, is_float: bool) -> Kernel:
    """For rows of so many places, a power of two, of which the last may be left empty."""
    lines, word, count = Lines(), f"i{size}", lanes(size)
    with lines.indented():
        for line in lines_of_bits(is_float):
            lines.add(line)
        lines.add(f"block = stack({word}, {length * count})")
        lines.add(f"for j in range({length * count}):")
        with lines.indented():
            lines.add(f"block[j] = {word}({(1 << (8 * size - 1)) - 1})  # behind all others")
        lines.add(f"blocks = (u8(n1) + {count - 1}) // {count}")
        lines.add("for task in range(first, last):")
        with lines.indented():
            lines.add("outer = i8(u8(task) // blocks)")
            lines.add(f"begin = i8(u8(task) % blocks * {count})")
            lines.add(f"count = min({count}, n1 - begin)")
            lines.add("source = start + outer * s0 + begin * s1")
            lines.add("goal = out_start + outer * o0 + begin * o1")
            _moves(lines, count, "source", "step", "s1", "block[own + j] = flat[{}]")
            _turns(lines, count, turned(word, "block[j]", is_float))
            _network(lines, length, count)
            _turns(lines, count, turned_back(word, "block[j]", is_float))
            _moves(lines, count, "goal", "out_step", "o1", "out[{}] = block[own + j]")
    takes = f"first: i8, last: i8, flat: {word}[], out: {word}[], plan: i8[], bits: {word}[]"
    return compiled("rows", takes, f"{numbers_of_plan(_PLAN, ())}\n{lines.text()}").kernel


def _moves(lines: Lines, count: int, start: str, step: str, beside: str, move: str) -> None:
    """Elements of all rows between memory and the block."""
    lines.add("for place in range(length):")
    with lines.indented():
        lines.add(f"own = place * {count}")
        lines.add(f"base = {start} + place * {step}")
        lines.add(f"if {beside} == 1:")
        with lines.indented():
            lines.add("for j in range(count):")
            with lines.indented():
                lines.add(move.format("base + j"))
        lines.add("else:")
        with lines.indented():
            lines.add("for j in range(count):")
            with lines.indented():
                lines.add(move.format(f"base + j * {beside}"))


def _turns(lines: Lines, count: int, steps: Iterable[str]) -> None:
    """All words of the block, whichever rows they are of."""
    lines.add(f"for j in range(length * {count}):")
    with lines.indented():
        for step in steps:
            lines.add(step)


def _network(lines: Lines, length: int, count: int) -> None:
    run = min(length, _TOGETHER)
    _together(lines, length, run, exchanges(run), count)
    while run < length:
        # The second run backwards: each half rises and falls once.
        _apart(lines, length, 2 * run, [(low, 2 * run - 1 - low) for low in range(run)], count)
        apart = run // 2
        while apart >= _TOGETHER:
            _apart(lines, length, 2 * apart, [(low, apart + low) for low in range(apart)], count)
            apart //= 2
        _together(lines, length, _TOGETHER, _halvings(_TOGETHER), count)
        run *= 2


def _together(lines: Lines, length: int, run: int, pairs: Iterable[Pair], count: int) -> None:
    """So many places after the other, held in registers while pairs of them are put in order."""
    lines.add(f"for at in range(0, {length * count}, {run * count}):")
    with lines.indented():
        lines.add(f"for j in range({count}):")
        with lines.indented():
            for place in range(run):
                lines.add(f"x{place} = block[at + j + {place * count}]")
            for low, high in pairs:
                lines.add(f"lesser = min(x{low}, x{high})")
                lines.add(f"x{high} = max(x{low}, x{high})")
                lines.add(f"x{low} = lesser")
            for place in range(run):
                lines.add(f"block[at + j + {place * count}] = x{place}")


def _apart(lines: Lines, length: int, run: int, pairs: list[Pair], count: int) -> None:
    """Pairs of so many places after the other, put in order where they lie."""
    lines.add(f"for at in range(0, {length * count}, {run * count}):")
    with lines.indented():
        for first in range(0, len(pairs), _TOGETHER):
            lines.add(f"for j in range({count}):")
            with lines.indented():
                for low, high in pairs[first : first + _TOGETHER]:
                    lines.add(f"a = block[at + j + {low * count}]")
                    lines.add(f"b = block[at + j + {high * count}]")
                    lines.add(f"block[at + j + {low * count}] = min(a, b)")
                    lines.add(f"block[at + j + {high * count}] = max(a, b)")


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
