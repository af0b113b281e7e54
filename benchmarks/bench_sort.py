"""Sorting, warm: target, dtype and size as axes, and NumPy in the same process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import gpusort
from gpusort.types.errors import TargetUnavailableError

SIZES = [1 << 10, 1 << 16, 1 << 18]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["uint32", "float32", "int64"])
@pytest.mark.parametrize("target", ["numpy", "cpu", "wgsl", "cuda"])
def test_sort(benchmark: BenchmarkFixture, target: str, dtype: str, size: int) -> None:
    x = np.random.default_rng(size).integers(0, 1 << 31, size).astype(dtype)
    if target == "numpy":
        benchmark(np.sort, x)
        return
    try:
        gpusort.target(target)
    except TargetUnavailableError as error:
        pytest.skip(str(error))

    def sort() -> Any:
        return gpusort.sort(x, target=target)

    benchmark(sort)
    np.testing.assert_array_equal(sort(), np.sort(x))
