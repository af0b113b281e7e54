"""Compiled loops that reduce elements which lie in any way. Importing this loads Numba.

A plan says where to go: start; two ways that stay (length, stride), two that go; in how many parts the first of these
is taken; how many neighbours are worked on at a time. A task is such a block in one part, its results lie in `out` at
(part, first way, second way).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ..jit import njit
from ..keeping import keep

Elements = npt.NDArray[Any]
Plan = npt.NDArray[np.int64]
Kernel = Callable[[Elements, Elements, Plan, int, int], None]
PlaceKernel = Callable[[Elements, Elements, Elements, Plan, int, int], None]
Step = Callable[[Any, Any, Any], Any]  # of what is found so far, an element, and the plan's constant
Lift = Callable[[Any, Any], Any]  # of an element, and the constant


def _columns(label: str, lift: Lift, step: Step) -> Kernel:
    """For neighbours that stay: a block of results is kept at hand while rows of elements go by."""

    @njit(nogil=True)
    def columns(flat: Elements, out: Elements, plan: Plan, first: int, last: int) -> None:
        start, n0, s0, n1, s1, m0, t0, m1, t1, parts, block, constant = plan
        blocks = (n1 + block - 1) // block
        for task in range(first, last):
            part, outer, begin = 0, task, 0
            if parts > 1 or blocks > 1:  # divisions take as long as a short row
                part, rest = task // (n0 * blocks), task % (n0 * blocks)
                outer, begin = rest // blocks, (rest % blocks) * block
            count = min(block, n1 - begin)
            place = (part * n0 + outer) * n1 + begin
            found = out[place : place + count]
            origin = start + outer * s0 + begin * s1
            low, high = 0, m0
            if parts > 1:
                low, high = m0 * part // parts, m0 * (part + 1) // parts
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


@attrs.frozen
class Pair:
    """The loops that make one thing of elements."""

    columns: Kernel
    rows: Kernel

    @classmethod
    def of(cls, label: str, lift: Lift, step: Step) -> Pair:
        return cls(_columns(label, lift, step), _rows(label, lift, step))


# -- sums and products, in the type of the result -----------------------------------------------------------


def _arithmetic(wide: Any, label: str) -> tuple[Pair, Pair]:
    @njit
    def lift(element: Any, constant: Any) -> Any:
        return wide(element)

    @njit(fastmath={"reassoc"})
    def add(found: Any, element: Any, constant: Any) -> Any:
        return wide(found + wide(element))

    @njit(fastmath={"reassoc"})
    def times(found: Any, element: Any, constant: Any) -> Any:
        return wide(found * wide(element))

    return Pair.of(f"sum {label}", lift, add), Pair.of(f"prod {label}", lift, times)


_ARITHMETIC = {
    "i8": _arithmetic(np.int64, "i8"), "u8": _arithmetic(np.uint64, "u8"), "f4": _arithmetic(np.float32, "f4"),
    "f8": _arithmetic(np.float64, "f8"),
}  # fmt: skip


def sums(result: np.dtype[np.generic]) -> Pair:
    """Into results of a dtype."""
    return _ARITHMETIC[result.str[1:]][0]


def products(result: np.dtype[np.generic]) -> Pair:
    return _ARITHMETIC[result.str[1:]][1]


# -- extrema ------------------------------------------------------------------------------------------------


@njit
def _itself(element: Any, constant: Any) -> Any:
    return element


@njit
def _lesser(found: Any, element: Any, constant: Any) -> Any:
    return element if element < found else found


@njit
def _greater(found: Any, element: Any, constant: Any) -> Any:
    return element if element > found else found


LEAST = Pair.of("least", _itself, _lesser)
GREATEST = Pair.of("greatest", _itself, _greater)


def _of_floats(word: Any, bits: int) -> tuple[Pair, Pair]:
    """By the bits as signed integers, in the order of the numbers from the constant on: it comes out first."""
    shift, low = word(bits - 1), word((1 << (bits - 1)) - 1)

    @njit
    def lift(element: Any, constant: Any) -> Any:
        return word(word(element ^ word(word(element >> shift) & low)) - word(constant))

    @njit
    def lesser(found: Any, element: Any, constant: Any) -> Any:
        lifted = lift(element, constant)
        return lifted if lifted < found else found

    @njit
    def greater(found: Any, element: Any, constant: Any) -> Any:
        lifted = lift(element, constant)
        return lifted if lifted > found else found

    return Pair.of(f"least f{bits}", lift, lesser), Pair.of(f"greatest f{bits}", lift, greater)


_FLOATS = {2: _of_floats(np.int16, 16), 4: _of_floats(np.int32, 32), 8: _of_floats(np.int64, 64)}


def least_of_floats(size: int) -> Pair:
    """Of floats of so many bytes, which are read as signed integers."""
    return _FLOATS[size][0]


def greatest_of_floats(size: int) -> Pair:
    return _FLOATS[size][1]


# -- any and all ----------------------------------------------------------------------------------------------


@njit
def _truth(element: Any, constant: Any) -> Any:
    return np.uint8(element != 0)


@njit
def _either(found: Any, element: Any, constant: Any) -> Any:
    return np.uint8(found | np.uint8(element != 0))


@njit
def _both(found: Any, element: Any, constant: Any) -> Any:
    return np.uint8(found & np.uint8(element != 0))


ANY = Pair.of("any", _truth, _either)
ALL = Pair.of("all", _truth, _both)


def _truths_of_floats(word: Any) -> tuple[Pair, Pair]:
    """By the bits, as unsigned integers, of which the highest makes none true."""
    one = word(1)

    @njit
    def truth(element: Any, constant: Any) -> Any:
        return np.uint8(word(element << one) != word(0))

    @njit
    def either(found: Any, element: Any, constant: Any) -> Any:
        return np.uint8(found | truth(element, constant))

    @njit
    def both(found: Any, element: Any, constant: Any) -> Any:
        return np.uint8(found & truth(element, constant))

    label = np.dtype(word).str
    return Pair.of(f"any of floats {label}", truth, either), Pair.of(f"all of floats {label}", truth, both)


_TRUTHS_OF_FLOATS = {2: _truths_of_floats(np.uint16), 4: _truths_of_floats(np.uint32), 8: _truths_of_floats(np.uint64)}


def any_of_floats(size: int) -> Pair:
    """Of floats of so many bytes, which are read as unsigned integers."""
    return _TRUTHS_OF_FLOATS[size][0]


def all_of_floats(size: int) -> Pair:
    return _TRUTHS_OF_FLOATS[size][1]


# -- where extremes are ---------------------------------------------------------------------------------------


def _places(label: str, lift: Lift, is_better: Callable[[Any, Any], Any]) -> PlaceKernel:
    """As `_columns`, along one way alone: what is found so far, and where it was."""

    @njit(nogil=True)
    def places(flat: Elements, best: Elements, where: Elements, plan: Plan, first: int, last: int) -> None:
        start, n0, s0, n1, s1, m0, t0, _, _, parts, block, constant = plan
        blocks = (n1 + block - 1) // block
        for task in range(first, last):
            part, outer, begin = 0, task, 0
            if parts > 1 or blocks > 1:  # divisions take as long as a short row
                part, rest = task // (n0 * blocks), task % (n0 * blocks)
                outer, begin = rest // blocks, (rest % blocks) * block
            count = min(block, n1 - begin)
            place = (part * n0 + outer) * n1 + begin
            found, found_at = best[place : place + count], where[place : place + count]
            origin = start + outer * s0 + begin * s1
            low, high = 0, m0
            if parts > 1:
                low, high = m0 * part // parts, m0 * (part + 1) // parts
            for j in range(count):
                found[j] = lift(flat[np.uint64(origin + low * t0 + j * s1)], constant)
                found_at[j] = low
            for r in range(low + 1, high):
                base = origin + r * t0
                if s1 == 1:
                    row = flat[base : base + count]
                    for j in range(count):
                        element = lift(row[j], constant)
                        better = is_better(element, found[j])
                        found[j] = element if better else found[j]
                        found_at[j] = r if better else found_at[j]
                else:
                    for j in range(count):
                        element = lift(flat[np.uint64(base + j * s1)], constant)
                        better = is_better(element, found[j])
                        found[j] = element if better else found[j]
                        found_at[j] = r if better else found_at[j]

    return keep(places, label)


@njit
def _less(element: Any, found: Any) -> Any:
    return (element < found) | ((element != element) & (found == found))


@njit
def _more(element: Any, found: Any) -> Any:
    return (element > found) | ((element != element) & (found == found))


@njit
def _half(bits: Any, constant: Any) -> Any:
    """float16 as an integer in its order: both zeros alike, and all NaNs, which are the constant."""
    magnitude = np.int16(bits & np.int16(0x7FFF))
    signed = np.int16(-magnitude) if bits < 0 else magnitude
    return np.int16(constant) if magnitude > np.int16(0x7C00) else signed


PLACE_OF_LEAST = _places("place of least", _itself, _less)
PLACE_OF_GREATEST = _places("place of greatest", _itself, _more)
PLACE_OF_LEAST_HALF = _places("place of least f2", _half, _less)
PLACE_OF_GREATEST_HALF = _places("place of greatest f2", _half, _more)
