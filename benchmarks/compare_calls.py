"""Calls as users make them on a card, with all that they cost the host, against the better of cupy and torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import gpusort
from benchmarks.card import call_clock, cub_sort, uniform
from benchmarks.timing import Comparison, Result, Work, against

Array = Any  # of a library that need not be here

_SECONDS = 5e-3  # that a round takes at least, in which as many calls are made as fit
_MOST_CALLS = 200


def _against_the_best(
    name: str, ours: Callable[[], Any], peers: dict[str, Callable[[], Any]], bar: float | None
) -> Result:
    """Against each, by turns. What counts is the worst ratio."""
    ours()
    calls = max(1, min(_MOST_CALLS, int(_SECONDS / call_clock(ours, 2))))
    found = [against(name, peer, ours, work, bar, clock=call_clock, calls=calls) for peer, work in peers.items()]
    return min(found, key=lambda result: result.ratio)


def _libraries() -> tuple[Any, Any]:
    return import_module("cupy"), import_module("torch")


def _floats(*shape: int) -> tuple[Array, Array]:
    """The same memory as cupy's array and as a tensor."""
    cupy, torch = _libraries()
    x = cupy.random.random(shape, dtype=cupy.float32)
    return x, torch.as_tensor(x, device="cuda")


def _require_same(found: Array, expected: Array) -> None:
    cupy, _ = _libraries()
    assert bool((cupy.asarray(found) == cupy.asarray(expected)).all())


def _small_sort(count: int, bar: float | None) -> Result:
    cupy, _ = _libraries()
    x = uniform("u4", count)
    ours: Callable[..., Any] = gpusort.sort
    _require_same(ours(x), cupy.sort(x))
    peers: dict[str, Work] = {"CUB, prepared": cub_sort(x, cupy.empty_like(x)), "cupy": lambda: cupy.sort(x)}
    return _against_the_best(f"cuda call: sort u4 {count}", lambda: ours(x), peers, bar)


def _of_tensors(function: str, count: int, bar: float) -> Result:
    _, torch = _libraries()
    _, x = _floats(count)
    ours: Callable[..., Any] = getattr(gpusort, function)
    theirs: Callable[..., Any] = getattr(torch, function)
    return _against_the_best(
        f"cuda call: {function} of a tensor of {count}", lambda: ours(x), {"torch": lambda: theirs(x)}, bar
    )


def _reduction(function: str, shape: tuple[int, ...], axis: int) -> Result:
    cupy, torch = _libraries()
    x, tensor = _floats(*shape)
    ours: Callable[..., Any] = getattr(gpusort, function)
    theirs: Callable[..., Any] = getattr(cupy, function)
    torchs: Callable[..., Any] = getattr(torch, {"max": "amax"}.get(function, function))
    assert bool(cupy.allclose(ours(x, axis=axis), cupy.asarray(torchs(tensor, dim=axis)), rtol=1e-4))
    peers: dict[str, Work] = {"cupy": lambda: theirs(x, axis=axis), "torch": lambda: torchs(tensor, dim=axis)}
    name = f"cuda call: {function} f4 {'x'.join(map(str, shape))} axis {axis}"
    return _against_the_best(name, lambda: ours(x, axis=axis), peers, 0.9)


def _rows(function: str, rows: int, length: int, bar: float) -> Result:
    _, torch = _libraries()
    x, tensor = _floats(rows, length)
    ours: Callable[..., Any] = getattr(gpusort, function)
    _require_same(ours(x), torch.sort(tensor, stable=True)[("sort", "argsort").index(function)])
    peers: dict[str, Work] = {"torch.sort": lambda: torch.sort(tensor)}
    return _against_the_best(f"cuda call: {function} f4 {rows}x{length}", lambda: ours(x), peers, bar)


def _stable(count: int) -> Result:
    _, torch = _libraries()
    x, tensor = _floats(count)
    ours: Callable[..., Any] = gpusort.sort
    _require_same(ours(x, stable=True), torch.sort(tensor)[0])
    peers: dict[str, Work] = {"torch.sort": lambda: torch.sort(tensor, stable=True)}
    return _against_the_best(f"cuda call: stable sort f4 {count}", lambda: ours(x, stable=True), peers, 2.5)


def _huge(log: int) -> Result:
    cupy, _ = _libraries()
    x = uniform("u4", 1 << log)
    out = cupy.empty_like(x)
    ours: Callable[..., Any] = gpusort.sort
    _require_same(ours(x, out=out)[::4097], cupy.sort(x)[::4097])
    peers: dict[str, Work] = {"cupy": lambda: cupy.sort(x)}
    return _against_the_best(f"cuda call: sort u4 2^{log}", lambda: ours(x, out=out), peers, 1.6)


def _top_k(shape: tuple[int, ...], k: int, bar: float) -> Result:
    cupy, torch = _libraries()
    x, tensor = _floats(*shape)
    ours: Callable[..., Any] = gpusort.top_k
    values, places = ours(x, k)
    _require_same(values, torch.topk(tensor, k)[0])
    _require_same(cupy.take_along_axis(x, places, -1), values)
    peers: dict[str, Work] = {"torch.topk": lambda: torch.topk(tensor, k)}
    return _against_the_best(f"cuda call: top_k f4 {'x'.join(map(str, shape))} k {k}", lambda: ours(x, k), peers, bar)


_SMALL: tuple[tuple[int, float | None], ...] = ((10, None), (1000, 0.9), (10_000, None))
_REDUCED: tuple[tuple[tuple[int, ...], int], ...] = (((8192, 8192), 0), ((8192, 8192), 1), ((256, 256, 1024), 1))
_SORTED: tuple[tuple[str, int, int, float], ...] = (
    ("sort", 64, 1 << 20, 4.0), ("sort", 1000, 100_000, 3.0), ("sort", 1024, 20_000, 3.0),
    ("argsort", 4096, 4096, 2.0),
)  # fmt: skip
_SELECTED: tuple[tuple[tuple[int, ...], int, float], ...] = (
    ((1 << 24,), 256, 1.2), ((1 << 28,), 256, 2.0), ((65536, 1024), 8, 2.0), ((64, 1 << 20), 8, 3.0),
    ((4096, 4096), 100, 1.2),
)  # fmt: skip


def comparisons(largest: int) -> Iterator[Comparison]:
    """All of them, of at most so many elements, by name."""
    for count, least in _SMALL:
        yield f"cuda call: sort u4 {count}", partial(_small_sort, count, least)
    for function, bar in (("sort", 2.0), ("sum", 0.8)):
        yield f"cuda call: {function} of a tensor", partial(_of_tensors, function, 100_000, bar)
    for shape, axis in _REDUCED:
        for function in ("sum", "max", "argmax"):
            if math.prod(shape) <= largest:
                yield f"cuda call: {function} along axis {axis}", partial(_reduction, function, shape, axis)
    for function, rows, length, bar in _SORTED:
        if rows * length <= largest:
            yield f"cuda call: {function} of rows {rows}x{length}", partial(_rows, function, rows, length, bar)
    for shape, k, bar in _SELECTED:
        if math.prod(shape) <= largest:
            yield f"cuda call: top_k {shape}", partial(_top_k, shape, k, bar)
    if largest >= 1 << 26:
        yield "cuda call: stable sort", partial(_stable, 1 << 26)
    for log in (30, 31):
        if 1 << log <= largest:
            yield f"cuda call: sort u4 2^{log}", partial(_huge, log)
