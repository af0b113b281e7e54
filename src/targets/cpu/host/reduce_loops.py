"""Loops that reduce elements which lie in any way.

A plan says where to go: start; two ways that stay (length, stride), two that go; in how many parts the first of these
is taken; how many neighbours are worked on at a time; a number for the elements. A task is such a block in one part;
its results lie in `out` at (part, first way, second way).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from ....operations.reduce import Reducer
from ..background import background
from ..loops import compiled, name_of, numbers_of_plan
from .reducers import PLACES, result_of

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

_PLAN = ("start", "n0", "s0", "n1", "s1", "m0", "t0", "m1", "t1", "parts", "block", "constant")
_COUNTS = frozenset(["n0", "n1", "m0", "m1", "parts", "block"])

# Divisions take as long as a short row, and are left out where there is nothing to divide.
_TASK = """
    blocks = (n1 + block - 1) // block
    for at in range(first, last):
        task = u8(at)
        part = u8(0)
        outer = task
        begin = u8(0)
        low = 0
        high = i8(m0)
        if parts > 1:
            part = task // (n0 * blocks)
            outer = task % (n0 * blocks)
            low = i8(m0 * part // parts)
            high = i8(m0 * (part + 1) // parts)
        if blocks > 1:
            begin = outer % blocks * block
            outer = outer // blocks
        count = i8(min(block, n1 - begin))
        place = i8((part * n0 + outer) * n1 + begin)
        origin = start + i8(outer) * s0 + i8(begin) * s1"""

# For neighbours that stay: a block of results is kept at hand while rows of elements go by. What stands in braces is
# filled in by what the elements are.
_COLUMNS = """
{task}
        begun = origin + low * t0
        for j in range(count):
            element = flat[begun + j * s1]
            out[place + j] = {lifted}
        skip = 1
        for r in range(low, high):
            for q in range(skip, i8(m1)):
                base = origin + r * t0 + q * t1
                if s1 == 1:
                    for j in range(count):
                        found = out[place + j]
                        element = flat[base + j]
                        out[place + j] = {stepped}
                else:
                    for j in range(count):
                        found = out[place + j]
                        element = flat[base + j * s1]
                        out[place + j] = {stepped}
            skip = 0
"""
# Where extremes are, along one way alone: what is found so far, and where it was.
_PLACES = """
{task}
        for j in range(count):
            element = flat[origin + low * t0 + j * s1]
            best[place + j] = {lifted}
            where[place + j] = low
        for r in range(low + 1, high):
            base = origin + r * t0
            if s1 == 1:
                for j in range(count):
                    element = flat[base + j]
{look}
            else:
                for j in range(count):
                    element = flat[base + j * s1]
{look}
"""
_LOOK = """
                    value = {lifted}
                    found = best[place + j]
                    better = {better}
                    best[place + j] = select(better, value, found)
                    where[place + j] = select(better, i4(r), where[place + j])
"""
# For neighbours that go: one result after the other, in any order of operations. Neighbours of which every second one
# goes are all read, for gathering takes ten times as long on some machines.
_ROWS = """
    for at in range(first, last):
        task = u8(at)
        row = task
        low = 0
        high = i8(m1)
        if parts > 1:
            part = task // (n0 * n1)
            row = task % (n0 * n1)
            low = i8(m1 * part // parts)
            high = i8(m1 * (part + 1) // parts)
        origin = start + i8(row) * s1
        if n0 > 1:
            origin = start + i8(row // n1) * s0 + i8(row % n1) * s1
        element = flat[origin + low * t1]
        found = {lifted}
        begin = low + 1
        for r in range(i8(m0)):
            base = origin + r * t0 + begin * t1
            count = high - begin
            if t1 == 1:
                for j in range(count):
                    element = flat[base + j]
                    found = {stepped}
            else:
                if t1 == 2:
                    for j in range(2 * count - 1):
                        element = flat[base + j]
                        found = {skipped}
                else:
                    for j in range(count):
                        element = flat[base + j * t1]
                        found = {stepped}
            begin = low
        out[i8(task)] = found
"""


@attrs.frozen
class Elements:
    """What the loops take and make of elements of a dtype."""

    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]
    lifted: str  # of an element, what is found by it alone
    nothing: str  # the same of an element that changes nothing
    _step: str  # of what is found so far, and what an element lifted is

    @classmethod
    def of(cls, fold: Reducer, dtype: np.dtype[np.generic]) -> Elements:
        match fold:
            case Reducer.SUM | Reducer.PROD:
                return cls._arithmetic(fold, dtype, result_of(fold, dtype))
            case Reducer.MIN | Reducer.MAX:
                return cls._extreme(fold, dtype)
            case _:
                return cls._truth(fold, dtype)

    @classmethod
    def _arithmetic(cls, fold: Reducer, dtype: np.dtype[np.generic], state: np.dtype[np.generic]) -> Elements:
        """In the type of the result."""
        wide = name_of(state)
        if fold is Reducer.PROD:
            return cls(dtype, state, f"{wide}(element)", f"{wide}(1)", "multiply_in_any_order(found, {0})")
        zero = "-0.0" if dtype.kind == "f" else "0"
        return cls(dtype, state, f"{wide}(element)", f"{wide}({zero})", "add_in_any_order(found, {0})")

    @classmethod
    def _extreme(cls, fold: Reducer, dtype: np.dtype[np.generic]) -> Elements:
        """Floats by their bits as signed integers, in the order of the numbers from the constant on: it comes first."""
        seen, lifted = dtype, "element"
        if dtype.kind == "f":
            seen = np.dtype(f"i{dtype.itemsize}")
            word, shift = name_of(seen), 8 * dtype.itemsize - 1
            magnitude = f"{word}((element >> {shift}) & {(1 << shift) - 1})"
            lifted = f"{word}({word}(element ^ {magnitude}) - {word}(constant))"
        limits = np.iinfo(cast("np.dtype[np.integer[Any]]", seen))
        last, better = (limits.max, "<") if fold is Reducer.MIN else (limits.min, ">")
        return cls(seen, seen, lifted, f"{name_of(seen)}({last})", f"select({{0}} {better} found, {{0}}, found)")

    @classmethod
    def _truth(cls, fold: Reducer, dtype: np.dtype[np.generic]) -> Elements:
        """Floats by their bits, of which the highest makes none true: it is shifted out."""
        seen = np.dtype(f"u{dtype.itemsize}")
        bits = f"{name_of(seen)}(element << 1)" if dtype.kind == "f" else "element"
        operator, nothing = ("|", 0) if fold is Reducer.ANY else ("&", 1)
        return cls(seen, np.dtype(np.uint8), f"u1({bits} != 0)", f"u1({nothing})", f"u1(found {operator} {{0}})")

    @property
    def stepped(self) -> str:
        """Of what is found so far, and an element."""
        return self._step.format(self.lifted)

    @property
    def skipped(self) -> str:
        """The same where j is even, and nothing else where it is odd."""
        return self._step.format(f"select((j & 1) == 0, {self.lifted}, {self.nothing})")


def can_fold(fold: Reducer, dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Whether so many bytes should be reduced by compiled loops, now or at last: else they are requested."""
    return background.has(("fold", fold, dtype), partial(_loading, fold, dtype), nbytes)


def _loading(fold: Reducer, dtype: np.dtype[np.generic]) -> Iterator[object]:
    if fold in PLACES:
        yield places_for(fold, dtype)
    else:
        for in_rows in (False, True):
            yield loop_for(fold, dtype, in_rows)


@attrs.frozen(eq=False)
class ReduceLoop:
    """For elements of a dtype: what they are seen as, and what becomes of them."""

    kernel: Kernel
    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]


@cache
def loop_for(fold: Reducer, dtype: np.dtype[np.generic], in_rows: bool) -> ReduceLoop:
    elements = Elements.of(fold, dtype)
    body = (_ROWS if in_rows else _COLUMNS).format(
        task=_TASK, lifted=elements.lifted, stepped=elements.stepped, skipped=elements.skipped
    )
    arrays = f"flat: {name_of(elements.seen_as)}[], out: {name_of(elements.state)}[], plan: i8[]"
    kernel = _kernel(f"{fold.value}_{'rows' if in_rows else 'columns'}", arrays, body)
    return ReduceLoop(kernel, elements.seen_as, elements.state)


@cache
def places_for(fold: Reducer, dtype: np.dtype[np.generic]) -> ReduceLoop:
    """Where extremes are. float16 are seen as integers in their order: both zeros alike, and all NaNs, which are the
    constant."""
    lifted, seen_as = "element", dtype
    if dtype == np.float16:
        seen_as = np.dtype(np.int16)
        magnitude = "i2(element & 0x7FFF)"
        signed = f"select(element < 0, i2(0 - {magnitude}), {magnitude})"
        lifted = f"select({magnitude} > 0x7C00, i2(constant), {signed})"
    better = f"(value {'<' if fold is Reducer.ARGMIN else '>'} found)"
    if seen_as.kind == "f":
        better += " | ((value != value) & (found == found))"
    body = _PLACES.format(task=_TASK, lifted=lifted, look=_LOOK.format(lifted=lifted, better=better).strip("\n"))
    name = name_of(seen_as)
    arrays = f"flat: {name}[], best: {name}[], where: i4[], plan: i8[]"
    return ReduceLoop(_kernel(fold.value, arrays, body), seen_as, seen_as)


def _kernel(name: str, arrays: str, body: str) -> Kernel:
    return compiled(name, f"first: i8, last: i8, {arrays}", numbers_of_plan(_PLAN, _COUNTS) + body).kernel
