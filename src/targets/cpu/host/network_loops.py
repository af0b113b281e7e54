"""Sorting networks for short rows, one row a lane of a vector, many side by side: these sort, or find places.

A block of rows lies turned round: the first elements of all rows, then the second ones, and so on. So comparing two
places of a row is one minimum and one maximum of whole vectors. Up to sixteen places are sorted in registers; longer
rows are merged from such. In an argsort, what stood where goes along, and tells equals apart, so that they keep their
order. How far apart two places lie is a number in the text wherever they are compared: else LLVM would have to ask, as
it runs, whether they overlap.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from ...render import Lines
from .loops import compiled, numbers_of_plan
from .word_loops import lines_of_bits, ranked, turned, turned_back

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

Pair = tuple[int, int]

_PLAN = ("start", "out_start", "n0", "s0", "o0", "n1", "s1", "o1", "length", "step", "out_step")
_TOGETHER = 16  # places whose elements the registers hold; half as many with what goes along
BLOCK_BYTES = 512  # of one place of all rows in a block


def lanes(size: int) -> int:
    """Rows in a block, of elements of so many bytes."""
    return BLOCK_BYTES // size


@cache
def network(length: int, size: int, is_float: bool) -> Kernel:
    """Sorts rows of so many places, a power of two, of which the last may be left empty."""
    word, count = f"i{size}", lanes(size)
    lines = Lines()
    with _each_block(lines, word, length, count, is_float):
        _turns(lines, count, turned(word, "block[j]", is_float))
        _network(lines, length, count, _Exchange())
        _turns(lines, count, turned_back(word, "block[j]", is_float))
        _moves(lines, count, "goal", "out_step", "o1", "out[{}] = block[own + j]")
    return _made("rows", word, word, lines)


@cache
def places_network(length: int, size: int, is_float: bool) -> Kernel:
    """Finds where the elements of such rows stand, in stable order. Zeros of both signs are equal, and all NaNs."""
    word, count = f"i{size}", lanes(size)
    lines = Lines()
    with lines.indented():
        lines.add(f"places = stack({word}, {length * count})")
    with _each_block(lines, word, length, count, is_float):
        _turns(lines, count, ranked(word, "block[j]", is_float))
        lines.add(f"for place in range({length}):")
        with lines.indented():
            lines.add(f"for j in range({count}):")
            with lines.indented():
                lines.add(f"places[place * {count} + j] = {word}(place)")
        _network(lines, length, count, _PlacedExchange())
        _moves(lines, count, "goal", "out_step", "o1", "out[{}] = i8(places[own + j])")
    return _made("places", word, "i8", lines)


@contextmanager
def _each_block(lines: Lines, word: str, length: int, count: int, is_float: bool) -> Generator[None]:
    """Loads block by block."""
    with lines.indented():
        for line in lines_of_bits(is_float):
            lines.add(line)
        lines.add(f"block = stack({word}, {length * count})")
        lines.add(f"for j in range({length * count}):")
        with lines.indented():
            lines.add(f"block[j] = {word}({(1 << (8 * int(word[1:]) - 1)) - 1})  # behind all others")
        lines.add(f"blocks = (u8(n1) + {count - 1}) // {count}")
        lines.add("for task in range(first, last):")
        with lines.indented():
            lines.add("outer = i8(u8(task) // blocks)")
            lines.add(f"begin = i8(u8(task) % blocks * {count})")
            lines.add(f"count = min({count}, n1 - begin)")
            lines.add("source = start + outer * s0 + begin * s1")
            lines.add("goal = out_start + outer * o0 + begin * o1")
            _moves(lines, count, "source", "step", "s1", "block[own + j] = flat[{}]")
            yield


def _made(name: str, word: str, out: str, lines: Lines) -> Kernel:
    takes = f"first: i8, last: i8, flat: {word}[], out: {out}[], plan: i8[], bits: {word}[]"
    return compiled(name, takes, f"{numbers_of_plan(_PLAN, ())}\n{lines.text()}").kernel


class _Exchange:
    """How places are loaded, put in order by pairs, and stored: a register of words each."""

    together = _TOGETHER

    def load(self, place: int, at: str) -> Iterator[str]:
        yield f"x{place} = block[{at}]"

    def store(self, place: int, at: str) -> Iterator[str]:
        yield f"block[{at}] = x{place}"

    def order(self, low: int, high: int) -> Iterator[str]:
        yield f"lesser = min(x{low}, x{high})"
        yield f"x{high} = max(x{low}, x{high})"
        yield f"x{low} = lesser"


class _PlacedExchange(_Exchange):
    """With the place that each came from: of equal words the first one's is less."""

    together = _TOGETHER // 2

    def load(self, place: int, at: str) -> Iterator[str]:
        yield from super().load(place, at)
        yield f"y{place} = places[{at}]"

    def store(self, place: int, at: str) -> Iterator[str]:
        yield from super().store(place, at)
        yield f"places[{at}] = y{place}"

    def order(self, low: int, high: int) -> Iterator[str]:
        yield f"swaps = (x{high} < x{low}) | ((x{high} == x{low}) & (y{high} < y{low}))"
        for name in "xy":
            yield f"lesser = select(swaps, {name}{high}, {name}{low})"
            yield f"{name}{high} = select(swaps, {name}{low}, {name}{high})"
            yield f"{name}{low} = lesser"


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


def _network(lines: Lines, length: int, count: int, exchange: _Exchange) -> None:
    most = exchange.together
    run = min(length, most)
    _together(lines, length, run, exchanges(run), count, exchange)
    while run < length:
        # The second run backwards: each half rises and falls once.
        _apart(lines, length, 2 * run, [(low, 2 * run - 1 - low) for low in range(run)], count, exchange)
        apart = run // 2
        while apart >= most:
            _apart(lines, length, 2 * apart, [(low, apart + low) for low in range(apart)], count, exchange)
            apart //= 2
        _together(lines, length, most, _halvings(most), count, exchange)
        run *= 2


def _together(
    lines: Lines, length: int, run: int, pairs: Iterable[Pair], count: int, exchange: _Exchange
) -> None:  # fmt: skip
    """So many places after the other, held in registers while pairs of them are put in order."""
    _passes(lines, length, run, [(range(run), [*pairs])], count, exchange)


def _apart(lines: Lines, length: int, run: int, pairs: list[Pair], count: int, exchange: _Exchange) -> None:
    """Pairs of so many places after the other, put in order by some at a time."""
    some = [pairs[first : first + exchange.together] for first in range(0, len(pairs), exchange.together)]
    _passes(lines, length, run, [([place for pair in each for place in pair], each) for each in some], count, exchange)


def _passes(
    lines: Lines, length: int, run: int, passes: Iterable[tuple[Iterable[int], list[Pair]]], count: int,
    exchange: _Exchange,
) -> None:  # fmt: skip
    """Loops over vectors, each of which loads some places, puts pairs of them in order, and stores them."""
    lines.add(f"for at in range(0, {length * count}, {run * count}):")
    with lines.indented():
        for places, pairs in passes:
            lines.add(f"for j in range({count}):")
            with lines.indented():
                for place in places:
                    for line in exchange.load(place, f"at + j + {place * count}"):
                        lines.add(line)
                for low, high in pairs:
                    for line in exchange.order(low, high):
                        lines.add(line)
                for place in places:
                    for line in exchange.store(place, f"at + j + {place * count}"):
                        lines.add(line)


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
