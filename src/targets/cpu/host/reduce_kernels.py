"""Compiled loops that reduce elements which lie in any way. Importing this loads Numba.

A plan says where to go: start; two ways that stay (length, stride), two that go; in how many parts the first of these
is taken; how many neighbours are worked on at a time; a number for the elements. A task is such a block in one part;
its results lie in `out` at (part, first way, second way).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ..jit import inner, njit
from ..keeping import keep
from .reducers import result_of

Elements = npt.NDArray[Any]
Plan = npt.NDArray[np.int64]
Kernel = Callable[[Elements, Elements, Plan, int, int], None]
PlaceKernel = Callable[[Elements, Elements, Elements, Plan, int, int], None]
Step = Callable[[Any, Any, Any], Any]  # of what is found so far, an element, and the plan's number
Lift = Callable[[Any, Any], Any]  # of an element, and the number


@attrs.frozen
class Loops:
    """For elements of a dtype: what they are seen as, and what becomes of them."""

    columns: Kernel
    rows: Kernel
    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]


@cache
def loops_for(fold: Reducer, dtype: np.dtype[np.generic]) -> Loops:
    size, seen_as = dtype.itemsize, dtype
    match fold:
        case Reducer.SUM | Reducer.PROD:
            state = result_of(fold, dtype)
            lift, step = _arithmetic(fold, state.type)
        case Reducer.MIN | Reducer.MAX if dtype.kind == "f":
            seen_as = state = np.dtype(f"i{size}")
            lift, step = _extreme_of_floats(fold, state.type, 8 * size)
        case Reducer.MIN | Reducer.MAX:
            state, lift, step = dtype, _itself, _lesser if fold is Reducer.MIN else _greater
        case _:
            state = np.dtype(np.uint8)
            if dtype.kind == "f":
                seen_as = np.dtype(f"u{size}")
            lift, step = _truths(fold, seen_as.type, shift=int(dtype.kind == "f"))
    label = f"{fold.value} {dtype.str}"
    return Loops(_columns(label, lift, step), _rows(label, lift, step), seen_as, state)


@cache
def places_for(fold: Reducer, dtype: np.dtype[np.generic]) -> PlaceKernel:
    """Where extremes are; float16 are seen as signed integers."""
    lift = _half if dtype == np.float16 else _itself
    return _places(f"{fold.value} {dtype.str}", lift, _less if fold is Reducer.ARGMIN else _more)


# -- ways over memory -----------------------------------------------------------------------------------------


@inner
def _block(plan: Plan, blocks: int, task: int) -> tuple[int, int, int, int, int]:
    """Where a task's results are and how many, where its elements begin, and which of the first way that goes."""
    start, n0, s0, n1, s1, m0, _, _, _, parts, block, _ = plan
    part, outer, begin = 0, task, 0
    if parts > 1 or blocks > 1:  # divisions take as long as a short row
        part, rest = task // (n0 * blocks), task % (n0 * blocks)
        outer, begin = rest // blocks, (rest % blocks) * block
    low, high = 0, m0
    if parts > 1:
        low, high = m0 * part // parts, m0 * (part + 1) // parts
    return (part * n0 + outer) * n1 + begin, min(block, n1 - begin), start + outer * s0 + begin * s1, low, high


def _columns(label: str, lift: Lift, step: Step) -> Kernel:
    """For neighbours that stay: a block of results is kept at hand while rows of elements go by."""

    @njit(nogil=True)
    def columns(flat: Elements, out: Elements, plan: Plan, first: int, last: int) -> None:
        _, _, _, n1, s1, _, t0, m1, t1, _, block, constant = plan
        blocks = (n1 + block - 1) // block
        for task in range(first, last):
            place, count, origin, low, high = _block(plan, blocks, task)
            found = out[place : place + count]
            begun = origin + low * t0
            if s1 == 1:
                row = flat[begun : begun + count]
                for j in range(count):
                    found[j] = lift(row[j], constant)
            else:
                for j in range(count):
                    found[j] = lift(flat[np.uint64(begun + j * s1)], constant)
            for r in range(low, high):
                for q in range(1 if r == low else 0, m1):
                    base = origin + r * t0 + q * t1
                    if s1 == 1:
                        row = flat[base : base + count]
                        for j in range(count):
                            found[j] = step(found[j], row[j], constant)
                    else:
                        for j in range(count):
                            found[j] = step(found[j], flat[np.uint64(base + j * s1)], constant)

    return keep(columns, label)


def _rows(label: str, lift: Lift, step: Step) -> Kernel:
    """For neighbours that go: one result after the other. The order of operations is the compiler's."""

    @njit(nogil=True, fastmath={"reassoc"})
    def rows(flat: Elements, out: Elements, plan: Plan, first: int, last: int) -> None:
        start, n0, s0, n1, s1, m0, t0, m1, t1, parts, _, constant = plan
        for task in range(first, last):
            part, row_of, low, high = 0, task, 0, m1
            if parts > 1:  # divisions take as long as a short row
                part, row_of = task // (n0 * n1), task % (n0 * n1)
                low, high = m1 * part // parts, m1 * (part + 1) // parts
            origin = start + row_of * s1
            if n0 > 1:
                origin = start + row_of // n1 * s0 + row_of % n1 * s1
            found = lift(flat[np.uint64(origin + low * t1)], constant)
            for r in range(m0):
                begin = low + 1 if r == 0 else low
                base = origin + r * t0 + begin * t1
                count = high - begin
                if t1 == 1:
                    row = flat[base : base + count]
                    for j in range(count):
                        found = step(found, row[j], constant)
                elif t1 == 2:  # what lies between is read too, and left out: gathering takes ten times as long on some
                    row = flat[base : base + max(0, 2 * count - 1)]
                    for j in range(row.size):
                        found = step(found, row[j], constant) if j & 1 == 0 else found
                else:
                    for j in range(count):
                        found = step(found, flat[np.uint64(base + j * t1)], constant)
            out[task] = found

    return keep(rows, label)


def _places(label: str, lift: Lift, is_better: Callable[[Any, Any], Any]) -> PlaceKernel:
    """As `_columns`, along one way alone: what is found so far, and where it was."""

    @inner
    def look(best: Elements, where: Elements, j: int, element: Any, r: int) -> None:
        better = is_better(element, best[j])
        best[j] = element if better else best[j]
        where[j] = r if better else where[j]

    @njit(nogil=True)
    def places(flat: Elements, best: Elements, where: Elements, plan: Plan, first: int, last: int) -> None:
        _, _, _, n1, s1, _, t0, _, _, _, block, constant = plan
        blocks = (n1 + block - 1) // block
        for task in range(first, last):
            place, count, origin, low, high = _block(plan, blocks, task)
            found, found_at = best[place : place + count], where[place : place + count]
            for j in range(count):
                found[j] = lift(flat[np.uint64(origin + low * t0 + j * s1)], constant)
                found_at[j] = low
            for r in range(low + 1, high):
                base = origin + r * t0
                if s1 == 1:
                    row = flat[base : base + count]
                    for j in range(count):
                        look(found, found_at, j, lift(row[j], constant), r)
                else:
                    for j in range(count):
                        look(found, found_at, j, lift(flat[np.uint64(base + j * s1)], constant), r)

    return keep(places, label)


# -- what becomes of elements -----------------------------------------------------------------------------------


def _arithmetic(fold: Reducer, wide: Any) -> tuple[Lift, Step]:
    """In the type of the result."""

    @inner
    def lift(element: Any, constant: Any) -> Any:
        return wide(element)

    @inner(fastmath={"reassoc"})
    def add(found: Any, element: Any, constant: Any) -> Any:
        return wide(found + wide(element))

    @inner(fastmath={"reassoc"})
    def times(found: Any, element: Any, constant: Any) -> Any:
        return wide(found * wide(element))

    return lift, add if fold is Reducer.SUM else times


@inner
def _itself(element: Any, constant: Any) -> Any:
    return element


@inner
def _lesser(found: Any, element: Any, constant: Any) -> Any:
    return element if element < found else found


@inner
def _greater(found: Any, element: Any, constant: Any) -> Any:
    return element if element > found else found


def _extreme_of_floats(fold: Reducer, word: Any, bits: int) -> tuple[Lift, Step]:
    """By the bits as signed integers, in the order of the numbers from the constant on: it comes out first."""
    shift, low = word(bits - 1), word((1 << (bits - 1)) - 1)

    @inner
    def lift(element: Any, constant: Any) -> Any:
        return word(word(element ^ word(word(element >> shift) & low)) - word(constant))

    @inner
    def lesser(found: Any, element: Any, constant: Any) -> Any:
        return _lesser(found, lift(element, constant), constant)

    @inner
    def greater(found: Any, element: Any, constant: Any) -> Any:
        return _greater(found, lift(element, constant), constant)

    return lift, lesser if fold is Reducer.MIN else greater


def _truths(fold: Reducer, word: Any, shift: int) -> tuple[Lift, Step]:
    """Floats by their bits, as unsigned integers, of which the highest makes none true: it is shifted out."""
    by = word(shift)

    @inner
    def truth(element: Any, constant: Any) -> Any:
        return np.uint8(word(element << by) != word(0))

    @inner
    def either(found: Any, element: Any, constant: Any) -> Any:
        return np.uint8(found | truth(element, constant))

    @inner
    def both(found: Any, element: Any, constant: Any) -> Any:
        return np.uint8(found & truth(element, constant))

    return truth, either if fold is Reducer.ANY else both


@inner
def _less(element: Any, found: Any) -> Any:
    return (element < found) | ((element != element) & (found == found))


@inner
def _more(element: Any, found: Any) -> Any:
    return (element > found) | ((element != element) & (found == found))


@inner
def _half(bits: Any, constant: Any) -> Any:
    """float16 as an integer in its order: both zeros alike, and all NaNs, which are the constant."""
    magnitude = np.int16(bits & np.int16(0x7FFF))
    signed = np.int16(-magnitude) if bits < 0 else magnitude
    return np.int16(constant) if magnitude > np.int16(0x7C00) else signed
