"""The compiled loops of cumulative sums.

A loop's plan is an array of integers: start; two loops over the other axes (length, stride, stride of the results
each); the same of the axis to sum along; the size of a task, in neighbours or in elements of a row. `columns` adds a
row of elements to the row of sums before it. `one_by_one` adds up whole rows. `pieces` adds up rows of floats, or
pieces of rows, four side by side, as each sum has to wait for the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ....types.dtypes import name_of
from ..loops import Kernel, compiled, inside, numbers_of_plan, text_of
from .reducers import Summing

BLOCK = 1 << 11  # sums at most that a task of `columns` keeps at hand

_PLAN = ("start", "n0", "s0", "o0", "n1", "s1", "o1", "length", "step", "out_step", "size")
_COUNTS = frozenset(["n0", "n1", "length", "size"])  # unsigned, so that they are divided as such

# What a row of sums is made of is kept at hand: LLVM would ask for all rows at once whether results lie apart from it.
_COLUMNS = """
    sums = stack({state}, {block})
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
            sums[j] = {nothing}
        for r in range(i8(length)):
            base = source + r * step
            to = place + r * out_step
            if (o1 == 1) & (s1 == 1):
                for j in range(count):
                    element = flat[base + j]
                    sum = {state}(sums[j] + {lifted})
                    sums[j] = sum
                    out[to + j] = {lowered}
            else:
                for j in range(count):
                    element = flat[base + j * s1]
                    sum = {state}(sums[j] + {lifted})
                    sums[j] = sum
                    out[to + j * o1] = {lowered}
"""


_ONE_BY_ONE = """
    for at in range(first, last):
        row = u8(at)
        outer = u8(0)
        if n0 > 1:
            outer = row // n1
            row = row % n1
        source = start + i8(outer) * s0 + i8(row) * s1
        place = i8(outer) * o0 + i8(row) * o1
        sum = {nothing}
        for i in range(i8(length)):
            element = flat[source + i * step]
            sum = {state}(sum + {lifted})
            out[place + i * out_step] = {lowered}
"""


@cache
def columns(summing: Summing) -> Kernel:
    """For neighbours that stay; a task is a block of them."""
    return _kernel("cumsum_columns", f"{_arrays(summing)}, plan: i8[]", _filled(_COLUMNS, summing))


@cache
def one_by_one(summing: Summing) -> Kernel:
    """For neighbours that go; a task is a row."""
    return _kernel("cumsum_rows", f"{_arrays(summing)}, plan: i8[]", _filled(_ONE_BY_ONE, summing))


def _filled(text: str, summing: Summing) -> str:
    return text.format(
        state=name_of(summing.state), nothing=summing.nothing, block=BLOCK,
        lifted=summing.lifted("element"), lowered=summing.lowered("sum"),
    )  # fmt: skip


@cache
def pieces(summing: Summing) -> Kernel:
    """For neighbours that go; a task is four pieces. It writes their sums, with what came before each."""
    return _pieces(summing, writes=True)


@cache
def totals(summing: Summing) -> Kernel:
    """The same of pieces that are only added up, into what is to come before the next."""
    return _pieces(summing, writes=False)


def _pieces(summing: Summing, *, writes: bool) -> Kernel:
    state = name_of(summing.state)
    least = "least = min(min(count_0, count_1), min(count_2, count_3))"

    def element(n: int) -> Iterator[str]:
        yield f"element = flat[source_{n} + i * step]"
        yield f"sum_{n} = {state}(sum_{n} + {summing.lifted('element')})"
        if writes:
            yield f"sum = {state}(before_{n} + sum_{n})"
            yield f"out[place_{n} + i * out_step] = {summing.lowered('sum')}"

    def of_pieces(pieces: dict[int, str], count: str) -> Iterator[str]:
        """Of these numbers, side by side as long as each goes on."""
        for n, number in pieces.items():
            yield from (f"before_{n} = sums[{number}]", f"sum_{n} = {summing.nothing}")
        yield from inside(f"for i in range({count}):", [line for n in pieces for line in element(n)])
        for n in pieces if len(pieces) > 1 else ():
            yield from inside(f"for i in range({count}, count_{n}):", element(n))
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
    arrays = f"{_arrays(summing)}, sums: {state}[], plan: i8[]"
    return _kernel("cumsum_pieces" if writes else "cumsum_totals", arrays, f"\n{body}")


def _arrays(summing: Summing) -> str:
    left_as = summing.seen_as if summing.is_half else summing.result
    return f"flat: {name_of(summing.seen_as)}[], out: {name_of(left_as)}[]"


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
