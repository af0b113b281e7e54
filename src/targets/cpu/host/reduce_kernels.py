"""Compiled loops that find where extremes are, of elements which lie in any way. Importing this loads Numba.

A plan says where to go: start; two ways that stay (length, stride), two that go; in how many parts the first of these
is taken; how many neighbours are worked on at a time; a number for the elements. A task is such a block in one part;
its results lie in `out` at (part, first way, second way).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ..jit import inner, njit
from ..keeping import keep

Elements = npt.NDArray[Any]
Plan = npt.NDArray[np.int64]
PlaceKernel = Callable[[Elements, Elements, Elements, Plan, int, int], None]
Lift = Callable[[Any, Any], Any]  # of an element, and the number


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


def _places(label: str, lift: Lift, is_better: Callable[[Any, Any], Any]) -> PlaceKernel:
    """Along one way alone: what is found so far, and where it was."""

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


@inner
def _itself(element: Any, constant: Any) -> Any:
    return element


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
