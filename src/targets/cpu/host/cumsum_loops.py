"""The compiled loops of cumulative sums.

A loop's plan says where to go: start; two ways that stay (length, stride, stride of the results), and the one to add up
along; how many neighbours or how much of a row a task takes. Where neighbours stay, a row of sums is the one before it
and a row of elements. Where they go, rows are added up in pieces, four of them side by side, for one sum has to wait
for the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from ..loops import Kernel, compiled, inside, name_of, numbers_of_plan, text_of

BLOCK = 1 << 11  # sums at most that a task keeps at hand where neighbours stay

_PLAN = ("start", "n0", "s0", "o0", "n1", "s1", "o1", "length", "step", "out_step", "size")
_COUNTS = frozenset(["n0", "n1", "length", "size"])  # unsigned, so that they are divided as such

# What a row of sums is made of is kept at hand: LLVM would ask for all rows at once whether results lie apart from it.
_COLUMNS = """
    sums = stack({wide}, {block})
    blocks = (n1 + size - 1) // size
    for at in range(first, last):
        outer = u8(at)
        begin = u8(0)
        if blocks > 1:
            begin = outer % blocks * size
            outer = outer // blocks
        count = i8(min(size, n1 - begin))
        source = start + i8(outer) * s0 + i8(begin) * s1
        place = i8(outer) * o0 + i8(begin) * o1
        for j in range(count):
            element = {wide}(flat[source + j * s1])
            sums[j] = element
            out[place + j * o1] = element
        for r in range(1, i8(length)):
            base = source + r * step
            to = place + r * out_step
            if (o1 == 1) & (s1 == 1):
                for j in range(count):
                    sum = {wide}(sums[j] + {wide}(flat[base + j]))
                    sums[j] = sum
                    out[to + j] = sum
            else:
                for j in range(count):
                    sum = {wide}(sums[j] + {wide}(flat[base + j * s1]))
                    sums[j] = sum
                    out[to + j * o1] = sum
"""


@cache
def columns(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """For neighbours that stay; a task is a block of them."""
    body = _COLUMNS.format(wide=name_of(result), block=BLOCK)
    return _kernel("cumsum_columns", f"flat: {name_of(seen_as)}[], out: {name_of(result)}[], plan: i8[]", body)


@cache
def pieces(seen_as: np.dtype[np.generic], result: np.dtype[np.generic], writes: bool) -> Kernel:
    """For neighbours that go; a task is four pieces. It writes the sums of pieces, with what came before each; or only
    adds them up, into what is to come before the next."""
    wide = name_of(result)
    least = "least = min(min(count_0, count_1), min(count_2, count_3))"

    def first(n: int, number: str) -> Iterator[str]:
        yield f"before_{n} = sums[{number}]"
        yield f"sum_{n} = {wide}(flat[source_{n}])"
        if writes:
            yield f"out[place_{n}] = {wide}(before_{n} + sum_{n})"

    def following(n: int) -> Iterator[str]:
        yield f"sum_{n} = {wide}(sum_{n} + {wide}(flat[source_{n} + i * step]))"
        if writes:
            yield f"out[place_{n} + i * out_step] = {wide}(before_{n} + sum_{n})"

    def of_pieces(pieces: dict[int, str], count: str) -> Iterator[str]:
        """Of these numbers, side by side as long as each goes on."""
        for n, number in pieces.items():
            yield from first(n, number)
        yield from inside(f"for i in range(1, {count}):", [line for n in pieces for line in following(n)])
        for n in pieces if len(pieces) > 1 else ():
            yield from inside(f"for i in range({count}, count_{n}):", following(n))
        if not writes:
            yield from (f"sums[{number}] = sum_{n}" for n, number in pieces.items())

    places = (line for n in range(4) for line in _place(n, f"min(four + {n}, len(sums) - 1)"))
    alone = inside(
        "for number in range(four, min(four + 4, len(sums))):",
        [*_place(1, "number"), *of_pieces({1: "number"}, "count_1")],
    )
    four = inside("if four + 3 < len(sums):", [least, *of_pieces({n: f"four + {n}" for n in range(4)}, "least")])
    tasks = inside("for at in range(first, last):", ["four = 4 * at", *places, *four, *inside("else:", alone)])
    body = text_of(["pieces = (length + size - 1) // size", *tasks])
    arrays = f"flat: {name_of(seen_as)}[], out: {wide}[], sums: {wide}[], plan: i8[]"
    return _kernel("cumsum_pieces" if writes else "cumsum_totals", arrays, f"\n{body}")


def _kernel(name: str, arrays: str, body: str) -> Kernel:
    return compiled(name, f"first: i8, last: i8, {arrays}", numbers_of_plan(_PLAN, _COUNTS) + body)


def _place(n: int, number: str) -> Iterator[str]:
    """Where a piece begins, where its sums do, and how long it is."""
    yield f"number_{n} = u8({number})"
    yield f"row = number_{n} // pieces"
    yield f"begin = number_{n} % pieces * size"
    yield f"source_{n} = start + i8(row // n1) * s0 + i8(row % n1) * s1 + i8(begin) * step"
    yield f"place_{n} = i8(row // n1) * o0 + i8(row % n1) * o1 + i8(begin) * out_step"
    yield f"count_{n} = i8(min(size, length - begin))"
