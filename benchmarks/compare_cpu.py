"""The CPU target against NumPy, end to end: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

import gpusort
from benchmarks.timing import Comparison, Result, against

Array = npt.NDArray[Any]
_SMALL = 128  # arrays that take turns


def _while(x: Array) -> float:
    """How many seconds to go on: a shared machine's clock changes from one tenth of a second to the next."""
    return min(1.0, x.size / (1 << 20))


def uniform(dtype: str, count: int) -> Array:
    rng = np.random.default_rng(count)
    if np.dtype(dtype).kind == "f":
        return rng.random(count).astype(dtype)
    return rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)


def _sort(name: str, make: Callable[[], Array], kind: Any, bar: float | None, rounds: int) -> Result:
    x = make()
    np.testing.assert_array_equal(gpusort.sort(x, target="cpu"), np.sort(x))
    peer = "np.sort" if kind is None else f"np.sort({kind})"
    return against(
        name, peer, lambda: gpusort.sort(x, target="cpu"), lambda: np.sort(x, kind=kind), bar,
        rounds=rounds, seconds=_while(x),
    )  # fmt: skip


def _argsort(name: str, make: Callable[[], Array], kind: Any, bar: float | None) -> Result:
    x = make()
    np.testing.assert_array_equal(gpusort.argsort(x, target="cpu"), np.argsort(x, kind="stable"))
    peer = "np.argsort" if kind is None else f"np.argsort({kind})"
    return against(
        name, peer, lambda: gpusort.argsort(x, target="cpu"), lambda: np.argsort(x, kind=kind), bar,
        rounds=7, seconds=_while(x),
    )  # fmt: skip


def _matrix(dtype: str, side: int, axis: int) -> Result:
    x = uniform(dtype, side * side).reshape(side, side)
    np.testing.assert_array_equal(gpusort.sort(x, axis=axis), np.sort(x, axis=axis))
    return against(
        f"cpu sort {dtype} {side} x {side}, axis {axis}", "np.sort", lambda: gpusort.sort(x, axis=axis),
        lambda: np.sort(x, axis=axis), None, seconds=_while(x),
    )  # fmt: skip


def _cumsum(dtype: str, count: int) -> Result:
    x = uniform(dtype, count)
    np.testing.assert_allclose(gpusort.cumsum(x), np.cumsum(x, dtype="f8" if x.dtype.kind == "f" else None), rtol=1e-4)
    return against(
        f"cpu cumsum {dtype} {count}", "np.cumsum", lambda: gpusort.cumsum(x), lambda: np.cumsum(x), None,
        seconds=_while(x),
    )  # fmt: skip


def _reduce(function: str, dtype: str, count: int, bar: float) -> Result:
    x = uniform(dtype, count)
    ours, numpys = getattr(gpusort, function), getattr(np, function)
    np.testing.assert_allclose(ours(x), numpys(x), rtol=1e-5)
    return against(
        f"cpu {function} {dtype} {count}", f"np.{function}", lambda: ours(x), lambda: numpys(x), bar, seconds=_while(x)
    )


def _small(dtype: str, count: int) -> Result:
    """Of several arrays by turns: a NumPy without vectorised code branches, and has its branches foreseen in one."""
    of_all = uniform(dtype, _SMALL * count).reshape(_SMALL, count)
    np.testing.assert_array_equal(gpusort.sort(of_all[0]), np.sort(of_all[0]))
    ours, peers = cycle(of_all), cycle(of_all)
    return against(
        f"cpu sort {dtype} {count}, a call", "np.sort", lambda: gpusort.sort(next(ours)),
        lambda: np.sort(next(peers)), None, calls=4 * _SMALL,
    )  # fmt: skip


def _sorted(count: int) -> Array:
    return np.sort(uniform("u4", count))


def _few(values: int, count: int) -> Array:
    return np.random.default_rng(1).integers(0, values, count, np.uint32)


def _mostly(value: float, count: int) -> Array:
    """Sparse data, or data of which much is missing."""
    rng = np.random.default_rng(count)
    return np.where(rng.random(count) < 0.9, value, rng.standard_normal(count)).astype("f4")


def comparisons(largest: int) -> Iterator[Comparison]:
    """All of them, of at most so many elements, by name."""
    bars = {"u4": (1.2, 1.5), "f4": (1.2, 1.5), "i8": (1.4, 1.5), "f8": (1.4, 1.5)}
    for dtype, both in bars.items():
        for count, bar in zip((1 << 20, 1 << 24), both, strict=True):
            if count <= largest:
                name = f"cpu sort {dtype} {count}"
                yield name, partial(_sort, name, partial(uniform, dtype, count), None, bar, 9)
    for dtype, bar in (("u1", 4.0), ("u2", 3.0)):
        count = min(largest, 1 << 24)
        name = f"cpu sort {dtype} {count}"
        yield name, partial(_sort, name, partial(uniform, dtype, count), "stable", bar, 7)
    shapes: tuple[tuple[str, Callable[[int], Array]], ...] = (
        ("sorted", _sorted), ("reversed", lambda n: _sorted(n)[::-1].copy()), ("16 values", partial(_few, 16)),
        ("256 values", partial(_few, 256)),
    )  # fmt: skip
    for shape, make in shapes:
        for count in (1 << 20, 1 << 24):
            if count <= largest:
                name = f"cpu sort u4 {count}, {shape}"
                yield name, partial(_sort, name, partial(make, count), None, 1 / 1.1, 9)
    for shape, value in (("zeros", 0.0), ("NaN", np.nan)):
        for count in (1 << 20, 1 << 24):
            if count <= largest:
                name = f"cpu sort f4 {count}, 9 of 10 {shape}"
                yield name, partial(_sort, name, partial(_mostly, value, count), None, None, 9)
    for side in (1000, 4096):
        for axis in (0, 1):
            if side * side <= largest:
                yield f"cpu sort f4 {side} x {side}, axis {axis}", partial(_matrix, "f4", side, axis)
    for dtype in ("u4", "f8"):
        count = min(largest, 1 << 20)
        name = f"cpu argsort {dtype} {count}"
        for kind, least in (("stable", 12.0), (None, 3.0)):
            yield name, partial(_argsort, name, partial(uniform, dtype, count), kind, least)
    name, count = "cpu argsort u4, 16 values", min(largest, 1 << 22)
    yield name, partial(_argsort, name, partial(_few, 16, count), "stable", None)
    for function in ("sum", "min", "argmin"):
        for dtype in ("f4", "i8"):
            for count in (1 << 20, 1 << 24):
                if count <= largest:
                    yield f"cpu {function} {dtype} {count}", partial(_reduce, function, dtype, count, 1.8)
    for dtype in ("f4", "f8", "i4"):
        for count in (1 << 20, 1 << 24):
            if count <= largest:
                yield f"cpu cumsum {dtype} {count}", partial(_cumsum, dtype, count)
    for count in (10, 100, 1000):
        for dtype in ("u4", "f4"):
            yield f"cpu small {dtype} {count}", partial(_small, dtype, count)
