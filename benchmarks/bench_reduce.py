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
def test_reduce(benchmark: BenchmarkFixture, reduction: str, target: str, dtype: str, size: int) -> None:
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
