"""Starting: a process's first sort, with all kernels to compile and with all in the cache, imports counted in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import gpusort
from gpusort.types.errors import TargetUnavailableError

FIRST_SORT = """
import numpy as np, gpusort
gpusort.sort(np.arange(1 << 20, dtype=np.float32)[::-1] % 9973, target={target!r})
"""


@pytest.mark.parametrize("target", ["cpu", "wgsl", "cuda"])
@pytest.mark.parametrize("cache", ["empty", "kept"])
def test_a_first_sort(benchmark: BenchmarkFixture, target: str, cache: str, tmp_path: Path) -> None:
    try:
        gpusort.target(target)
    except TargetUnavailableError as error:
        pytest.skip(str(error))
    benchmark.group = f"first sort of a process, cache {cache}"
    numbers = iter(range(1 << 30))
    timed: Any = getattr(benchmark, "pedantic")  # noqa: B009  (it has no types)

    def run(name: str) -> None:
        folder = str(tmp_path / name)
        environment = {**os.environ, "GPUSORT_CACHE_DIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", FIRST_SORT.format(target=target)]
        subprocess.run(command, env=environment, check=True, capture_output=True)

    if cache == "kept":
        run("kept")
        timed(run, args=("kept",), rounds=5)
    else:
        timed(lambda: run(f"empty{next(numbers)}"), rounds=2)
