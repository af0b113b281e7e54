"""Compiled loops that reduce strided arrays.

A loop's plan is an array of integers: start; two loops over kept axes (length, stride each), two over reduced axes; the
number of parts of the first reduced loop; the length of a block of the second kept loop; a constant for the elements. A
task is one block in one part; its results are in `out` at (part, first kept index, second kept index).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from textwrap import indent
from typing import Any, cast

import attrs
import numpy as np

from ....operations.reduce import Reducer
from ....types.dtypes import name_of
from ..background import background
from ..loops import Kernel, compiled, inside, numbers_of_plan, text_of
from .reducers import TRUTHS, Summing

_PLAN = ("start", "n0", "s0", "n1", "s1", "m0", "t0", "m1", "t1", "parts", "block", "constant")
_COUNTS = frozenset(["n0", "n1", "m0", "m1", "parts", "block"])

# Divisions take as long as a short row, and are left out where there is nothing to divide.
_PART = """
    for at in range(first, last):
        task = u8(at)
        part = u8(0)
        outer = task
        low = 0
        high = i8({reduced})
        if parts > 1:
            part = task // ({tasks})
            outer = task % ({tasks})
            low = i8({reduced} * part // parts)
            high = i8({reduced} * (part + 1) // parts)"""

_TASK = f"""
    blocks = (n1 + block - 1) // block{_PART.format(reduced="m0", tasks="n0 * blocks")}
        begin = u8(0)
        if blocks > 1:
            begin = outer % blocks * block
            outer = outer // blocks
        count = i8(min(block, n1 - begin))
        place = i8((part * n0 + outer) * n1 + begin)
        origin = start + i8(outer) * s0 + i8(begin) * s1"""

_ROW = f"""{_PART.format(reduced="m1", tasks="n0 * n1")}
        origin = start + i8(outer) * s1
        if n0 > 1:
            origin = start + i8(outer // n1) * s0 + i8(outer % n1) * s1"""

# For neighbours that go: one result after the other, in any order of operations. Neighbours of which every second one
# goes are all read, for gathering takes ten times as long on some machines.
_ROWS = f"""{_ROW}
        found = {{nothing}}
{{begun}}
        begin = low
        for r in range(i8(m0)):
            base = origin + r * t0 + begin * t1
            count = high - begin
{{line}}
            begin = low
        out[i8(task)] = found
{{ended}}
"""
_LOOK = 1 << 7  # elements among which one is looked for at once: bytes can number them
_NEARBY = 1 << 12  # elements in which an extreme is known to be: it is looked for while a cache holds them
# Where an extreme is among neighbours that go: first what it is, and in which stretch, then the first there that equals
# it, by numbers as wide as the elements, so that as many lie in a vector.
_PLACES_IN_ROWS = f"""{_ROW}
        element = flat[origin + low * t1]
        found = {{lifted}}
        nearby = low
        for b in range(i8(u8(high - low + {_NEARBY - 1}) // {_NEARBY})):
            begin = low + {_NEARBY} * b
            end = min(begin + {_NEARBY}, high)
            before = found
{{extreme}}
            if found != before:
                nearby = begin
        place = high
        for b in range(i8(u8(min(high - nearby, {_NEARBY}) + {_LOOK - 1}) // {_LOOK})):
            if place == high:
                begin = nearby + {_LOOK} * b
                near = {{nowhere}}
{{first}}
                if near != {{nowhere}}:
                    place = begin + i8(near)
        best[i8(task)] = found
        where[i8(task)] = i4(min(place, high - 1))  # or other threads write to it
"""
_CHAINS = 4  # steps that go on at a time
# When `any` and `all` look whether they are settled: after so many bytes of a line of some times as many, and so many
# elements.
_HEAD, _OF_LINE, _BLOCK = 1 << 6, 1 << 3, 1 << 10


@attrs.frozen
class Elements:
    """What the loops make of elements of a dtype."""

    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]
    lifted: str  # of an element, what is found by it alone
    nothing: str  # the same of an element that changes nothing
    step: str  # of what is found so far, and what an element lifted is

    @classmethod
    def of(cls, fold: Reducer, dtype: np.dtype[np.generic]) -> Elements:
        size, is_float = dtype.itemsize, dtype.kind == "f"
        match fold:
            case Reducer.SUM | Reducer.PROD:  # in the type of the result, or 32 bits
                summing = Summing.of(fold, dtype)
                step = f"{'multiply' if fold is Reducer.PROD else 'add'}_in_any_order(found, {{0}})"
                return cls(summing.seen_as, summing.state, summing.lifted("element"), summing.nothing, step)
            case Reducer.MIN | Reducer.MAX:
                seen, lifted = dtype, "element"
                if is_float:  # by their bits as signed integers, in the order of the numbers from the constant on
                    seen, shift = np.dtype(f"i{size}"), 8 * size - 1
                    magnitude = f"i{size}((element >> {shift}) & {(1 << shift) - 1})"
                    lifted = f"i{size}(i{size}(element ^ {magnitude}) - i{size}(constant))"
                if dtype.kind in "mM":  # NaT, the least integer, becomes the greatest where that is looked for
                    seen = np.dtype(np.int64)
                    lifted = "i8(element - 1)" if fold is Reducer.MAX else "element"
                limits = np.iinfo(cast("np.dtype[np.integer[Any]]", seen))
                last, better = (limits.max, "<") if fold is Reducer.MIN else (limits.min, ">")
                step = f"select({{0}} {better} found, {{0}}, found)"
                return cls(seen, seen, lifted, f"{name_of(seen)}({last})", step)
            case _:  # floats by their bits, of which the highest makes none true: it is shifted out
                bits = f"u{size}(element << 1)" if is_float else "element"
                operator, nothing = ("|", "0") if fold is Reducer.ANY else ("&", "1")
                step = f"u1(found {operator} {{0}})"
                return cls(np.dtype(f"u{size}"), np.dtype(np.uint8), f"u1({bits} != 0)", f"u1({nothing})", step)


def can_fold(fold: Reducer, dtype: np.dtype[np.generic], nbytes: int, *, is_few: bool = False) -> bool:
    """Whether so many bytes should be reduced by compiled loops, now or at last: else they are requested, where it
    `is_few` by many calls alone. All of them are there then: what times them should not wait for that."""
    return background.has((_loading, fold, dtype), nbytes, is_little=is_few) and all(_loading(fold, dtype))


def _loading(fold: Reducer, dtype: np.dtype[np.generic]) -> Iterator[object]:
    of = places_for if fold.finds_index else loop_for
    yield from (of(fold, dtype, in_rows) for in_rows in (False, True))


@cache
def loop_for(fold: Reducer, dtype: np.dtype[np.generic], in_rows: bool) -> tuple[Kernel, np.dtype[np.generic]]:
    """The loop, and the dtype of what it leaves."""
    made = Elements.of(fold, dtype)
    arrays = f"out: {name_of(made.state)}[]"
    if in_rows:
        return _kernel(f"{fold.value}_rows", made.seen_as, arrays, _rows(made, fold in TRUTHS)), made.state
    step = ("found = out[place + j]", f"out[place + j] = {made.step.format(made.lifted)}")
    body = _columns([f"out[place + j] = {made.lifted}"], step, loops=2)
    return _kernel(f"{fold.value}_columns", made.seen_as, arrays, body), made.state


@cache
def places_for(fold: Reducer, dtype: np.dtype[np.generic], in_rows: bool) -> tuple[Kernel, np.dtype[np.generic]]:
    """Where extremes are, along one way alone: what is found so far, and where it was. Floats are seen as integers in
    their order, of which vectors compare more in less time: both zeros alike, and all NaNs, which are the constant."""
    lifted, seen_as = "element", dtype
    if dtype.kind == "f":
        seen_as = np.dtype(f"i{dtype.itemsize}")
        infinity, word = int(np.array(np.inf, dtype).view(seen_as)[()]), name_of(seen_as)
        magnitude = f"{word}(element & {(1 << (8 * dtype.itemsize - 1)) - 1})"
        signed = f"select(element < 0, {word}(0 - {magnitude}), {magnitude})"
        lifted = f"select({magnitude} > {infinity}, {word}(constant), {signed})"
    better = f"(value {'<' if fold is Reducer.ARGMIN else '>'} found)"
    arrays = f"best: {name_of(seen_as)}[], where: i4[]"
    if in_rows:
        body = _places_in_rows(lifted, better, f"u{dtype.itemsize}", (1 << 8 * dtype.itemsize) - 1)
        return _kernel(f"{fold.value}_rows", seen_as, arrays, body), seen_as
    step = (
        f"value = {lifted}", "found = best[place + j]", f"better = {better}",
        "best[place + j] = select(better, value, found)",
        "where[place + j] = select(better, i4(r), where[place + j])",
    )  # fmt: skip
    body = _columns((f"best[place + j] = {lifted}", "where[place + j] = low"), step, loops=1)
    return _kernel(fold.value, seen_as, arrays, body), seen_as


def _places_in_rows(lifted: str, better: str, index: str, most: int) -> str:
    """For rows of neighbours, and of elements that lie apart. An index has as many bits as an element."""
    nowhere, value = f"{index}({most})", f"value = {lifted}"
    extreme, here = f"found = select({better}, value, found)", f"here = select(value == found, {index}(j), {nowhere})"
    nearer = "near = select(here < near, here, near)"

    def both(bounds: str, place: str, *steps: str) -> Iterator[str]:
        near, apart = (
            inside(f"for j in range({bounds}):", [f"element = flat[origin + {at}]", value, *steps])
            for at in (place, f"({place}) * t1")
        )
        return chain(inside("if t1 == 1:", near), inside("else:", apart))

    found = indent(text_of(both("begin, end", "j", extreme)), 8 * " ")
    first = indent(text_of(both(f"min({_LOOK}, high - begin)", "begin + j", here, nearer)), 12 * " ")
    return _PLACES_IN_ROWS.format(lifted=lifted, nowhere=nowhere, extreme=found, first=first)


def _rows(made: Elements, ends_early: bool) -> str:
    """For neighbours that go. What `ends_early` leaves the rest of a row once that is settled: after its first
    elements, a block or a line, and in another part by the first part's result, which says before that nothing is."""
    step, is_open = f"found = {made.step.format(made.lifted)}", f"if found == {made.nothing}:"
    skipped = f"select((j & 1) == 0, {made.lifted}, {made.nothing})"  # nothing where j is odd
    if made.nothing == "u1(1)":  # the same of `all`, of which LLVM makes loops of half the time
        skipped = f"u1({made.lifted} | u1(j & 1))"
    skipped = f"found = {made.step.format(skipped)}"

    def loop(bounds: object, step: str, at: str = "j") -> Iterator[str]:
        return inside(f"for j in range({bounds}):", [f"element = flat[base + {at}]", step])

    def by_stride(near: Iterable[str], beside: Iterable[str], apart: Iterable[str]) -> tuple[str, ...]:
        farther = (*inside("if t1 == 2:", beside), *inside("else:", apart))
        return (*inside("if t1 == 1:", near), *inside("else:", farther))

    near, beside, apart = loop("count", step), loop("2 * count - 1", skipped), _side_by_side(made)
    first, begun, ended = [""], [""], [""]
    if ends_early:
        head = _HEAD // made.seen_as.itemsize
        begin = by_stride(loop(head, step), loop(2 * head, skipped), loop(head, step, "j * t1"))
        first = [*inside(f"if count >= {_OF_LINE * head}:", [*begin, f"base += {head} * t1", f"count -= {head}"])]
        block = inside(is_open, loop(f"{_BLOCK} * b, min(count, {_BLOCK} * (b + 1))", step))
        near = inside(f"for b in range(i8(u8(count + {_BLOCK - 1}) // {_BLOCK})):", block)
        beside, apart = inside(is_open, beside), inside(is_open, apart)
        begun = [f"found = {made.step.format('out[i8(outer)]')}"]
        ended = [*inside(f"if found != {made.nothing}:", ["out[i8(outer)] = found"])]
    line = (*first, *by_stride(near, beside, apart))
    return _ROWS.format(
        nothing=made.nothing, line=indent(text_of(line), 8 * " "), begun=indent(text_of(begun), 4 * " "),
        ended=indent(text_of(ended), 4 * " "),
    )  # fmt: skip


def _side_by_side(made: Elements) -> Iterator[str]:
    """For elements that lie apart, which vectors do not take: each step waits for the one before, so several go on at
    a time."""
    step, found = made.step.format(made.lifted), [f"found{number}" for number in range(_CHAINS)]
    yield f"turns = i8(u8(count) // {_CHAINS})"
    for own in found:
        yield f"{own} = {made.nothing}"
    steps = (
        (f"element = flat[base + (j * {_CHAINS} + {number}) * t1]", f"{own} = {step.replace('found', own)}")
        for number, own in enumerate(found)
    )
    yield from inside("for j in range(turns):", chain.from_iterable(steps))
    rest = ("element = flat[base + j * t1]", f"found = {step}")
    yield from inside(f"for j in range(turns * {_CHAINS}, count):", rest)
    for own in found:
        yield f"found = {made.step.format(own)}"


def _columns(begin: Sequence[str], step: Sequence[str], *, loops: int) -> str:
    """The text of a loop for kept neighbours: a block of results stays in the cache while rows of elements are combined
    with it, along one or two reduced loops. `begin` is done with the first element of each result, `step` with
    others."""
    near, apart = (inside("for j in range(count):", [f"element = flat[base + {at}]", *step]) for at in ("j", "j * s1"))
    row = (*inside("if s1 == 1:", near), *inside("else:", apart))
    if loops == 1:
        rows = inside("for r in range(low + 1, high):", ["base = origin + r * t0", *row])
    else:
        inner = inside("for q in range(skip, i8(m1)):", ["base = origin + r * t0 + q * t1", *row])
        rows = chain(["skip = 1"], inside("for r in range(low, high):", [*inner, "skip = 0"]))
    first = inside("for j in range(count):", ["element = flat[begun + j * s1]", *begin])
    return f"{_TASK}\n{indent(text_of(['begun = origin + low * t0', *first, *rows]), 4 * ' ')}\n"


def _kernel(name: str, seen_as: np.dtype[np.generic], outs: str, body: str) -> Kernel:
    takes = f"first: i8, last: i8, flat: {name_of(seen_as)}[], {outs}, plan: i8[]"
    return compiled(name, takes, numbers_of_plan(_PLAN, _COUNTS) + body)
