"""Reducing and scanning, warm: what is made, target, dtype and size as axes, and NumPy in the same process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import gpusort
from gpusort.types.errors import TargetUnavailableError

SIZES = [1 << 10, 1 << 16, 1 << 20]
REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (gpusort.sum, np.sum),
    "argmin": (gpusort.argmin, np.argmin),
    "cumsum": (gpusort.cumsum, np.cumsum),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["uint32", "float32", "int64"])
@pytest.mark.parametrize("target", ["numpy", "cpu", "wgsl", "cuda"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reduce(benchmark: BenchmarkFixture, reduction: str, target: str, dtype: str, size: int, largest: int) -> None:
    if size > largest:
        pytest.skip(f"--largest {largest}")
    ours, numpys = REDUCTIONS[reduction]
    # Small whole numbers: their float32 sums are exact in any order, so that all targets agree to the last bit.
    x = np.random.default_rng(size).integers(0, 16, size).astype(dtype)
    if target == "numpy":
        benchmark(numpys, x)
        return
    try:
        gpusort.target(target)
    except TargetUnavailableError as error:
        pytest.skip(str(error))

    def reduce() -> Any:
        return ours(x, target=target)

    np.testing.assert_array_equal(reduce(), numpys(x))
    benchmark(reduce)


SHORT_AXES = [((100_000, 3), 0), ((100_000, 3), 1), ((4096, 64), 1), ((300, 3), 1)]
ALONG: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (gpusort.sum, np.sum),
    "max": (gpusort.max, np.max),
    "any": (gpusort.any, np.any),
    "cumsum": (gpusort.cumsum, np.cumsum),
}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(("shape", "axis"), SHORT_AXES, ids=str)
@pytest.mark.parametrize("of", ["numpy", "gpusort"])
@pytest.mark.parametrize("function", ALONG)
def test_short_axis(
    benchmark: BenchmarkFixture, function: str, of: str, shape: tuple[int, int], axis: int, dtype: str
) -> None:
    """Points, pixels, and rows of a few features. `any` finds nothing."""
    ours, numpys = ALONG[function]
    x = np.random.default_rng(1).integers(0, 1 if function == "any" else 16, shape).astype(dtype)
    np.testing.assert_array_equal(ours(x, axis=axis), numpys(x, axis=axis))
    benchmark(numpys if of == "numpy" else ours, x, axis=axis)
