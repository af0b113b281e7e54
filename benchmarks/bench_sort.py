"""Sorting, warm: who sorts, dtype, size and distribution as axes. End to end, and resident on a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import gpusort
from benchmarks.arrays import DISTRIBUTIONS
from benchmarks.card import is_here
from benchmarks.peers import ON_CARD, ON_HOST, Sorter

SIZES = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28]
DTYPES = ["u1", "u4", "f4", "i8", "f8"]


def axes() -> Iterator[tuple[str, int, str]]:
    """Every dtype and size with uniform elements; the other distributions with one dtype of each size."""
    for dtype in DTYPES:
        for size in SIZES:
            for distribution in DISTRIBUTIONS:
                if distribution == "uniform" or (dtype in ("u4", "f8") and size >= 1 << 16):
                    yield dtype, size, distribution


def skip_what_cannot(sorter: Sorter, dtype: str, size: int, largest: int) -> None:
    if size > largest:
        pytest.skip(f"--largest {largest}")
    if np.dtype(dtype).kind not in sorter.dtypes and np.dtype(dtype) != np.uint8:
        pytest.skip(f"{sorter.name} does not sort {dtype}")
    if (reason := sorter.missing()) is not None:
        pytest.skip(reason)


def cases(sorters: Sequence[Sorter]) -> Iterator[Any]:
    """One sorter after the other."""
    for sorter in sorters:
        for dtype, size, distribution in axes():
            yield pytest.param(sorter, dtype, size, distribution, id=f"{sorter.name}-{dtype}-{size}-{distribution}")


@pytest.mark.parametrize(("sorter", "dtype", "size", "distribution"), cases(ON_HOST))
def test_sort(
    benchmark: BenchmarkFixture, sorter: Sorter, dtype: str, size: int, distribution: str, largest: int
) -> None:
    skip_what_cannot(sorter, dtype, size, largest)
    x = DISTRIBUTIONS[distribution](dtype, size)
    benchmark.group = f"sort {dtype} {size} {distribution}, end to end"
    work = sorter.ready(x)
    if sorter.name.startswith("gpusort"):
        np.testing.assert_array_equal(work(), np.sort(x))
    benchmark(work)


@pytest.mark.parametrize(("sorter", "dtype", "size", "distribution"), cases(ON_CARD))
def test_sort_resident(
    benchmark: BenchmarkFixture, sorter: Sorter, dtype: str, size: int, distribution: str, largest: int
) -> None:
    if not is_here():
        pytest.skip("there is no card for CUDA")
    skip_what_cannot(sorter, dtype, size, largest)
    from importlib import import_module

    device = import_module("cupy").cuda.Device()
    work = sorter.ready(DISTRIBUTIONS[distribution](dtype, size))
    benchmark.group = f"sort {dtype} {size} {distribution}, resident"

    def sort() -> None:
        work()
        device.synchronize()

    benchmark(sort)


@pytest.mark.parametrize("who", ["gpusort.argsort", "np.argsort", "np.argsort stable"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["u4", "f8"])
def test_argsort(benchmark: BenchmarkFixture, dtype: str, size: int, who: str, largest: int) -> None:
    if size > largest:
        pytest.skip(f"--largest {largest}")
    x = DISTRIBUTIONS["uniform"](dtype, size)
    benchmark.group = f"argsort {dtype} {size}"
    np.testing.assert_array_equal(gpusort.argsort(x), np.argsort(x, kind="stable"))
    match who:
        case "gpusort.argsort":
            benchmark(gpusort.argsort, x)
        case "np.argsort":
            benchmark(np.argsort, x)
        case _:
            benchmark(np.argsort, x, kind="stable")


@pytest.mark.parametrize("who", ["gpusort.sort", "np.sort"])
@pytest.mark.parametrize("length", [10, 100, 1000])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_rows(benchmark: BenchmarkFixture, dtype: str, length: int, who: str, largest: int) -> None:
    x = DISTRIBUTIONS["uniform"](dtype, largest // length * length).reshape(-1, length)
    benchmark.group = f"rows {dtype} {x.shape[0]}x{length}"
    np.testing.assert_array_equal(gpusort.sort(x), np.sort(x))
    benchmark(gpusort.sort if who == "gpusort.sort" else np.sort, x)
