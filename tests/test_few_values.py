"""Long rows of few different elements, sorted and argsorted by counting, compared with NumPy exactly."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu.host import argsort, counting, packed_argsort
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.pool import shared_pool
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.test_pairs import stable_order
from tests.test_radix import in_order, unordered

Array = npt.NDArray[Any]
LENGTH = HostSortPolicy().deal_from + 5  # where it pays for all dtypes


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were left to the way for any elements."""
    rows: list[int] = []
    usual = packed_argsort.argsort_packed

    def noted(source: Any, *rest: Any) -> None:
        rows.append(source.size)
        usual(source, *rest)

    monkeypatch.setattr(argsort, "argsort_packed", noted)
    gpusort.argsort(np.random.default_rng(1).random(1 << 18))  # not a process's first, which NumPy gets
    rows.clear()
    return rows


def chosen_from(values: Array) -> Array:
    found: Array = values[np.random.default_rng(values.size).integers(0, values.size, LENGTH)]
    return found


def check(x: Array) -> None:
    for order in SortOrder:
        found = gpusort.argsort(x, descending=order is SortOrder.DESCENDING, target="cpu")
        np.testing.assert_array_equal(found, stable_order(x, order))


@few_cases(pairs=False)
@pytest.mark.parametrize("count", [2, 3, 16, 100, 256])
@pytest.mark.parametrize("dtype", ["u4", "i4", "f4", "u8", "i8", "f8", "M8[s]"])
def test_a_few_values(refused: list[int], dtype: str, count: int) -> None:
    size = np.dtype(dtype).itemsize
    drawn = np.random.default_rng(count).integers(0, 256, 4 * count * size, np.uint8).view(dtype)
    values = np.unique(drawn[~np.isnan(drawn)] if np.dtype(dtype).kind in "fM" else drawn)[:count]
    check(chosen_from(values))
    assert not refused


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_zeros_and_nans_compare_equal(refused: list[int], dtype: str) -> None:
    words = np.array([np.nan, 1.0], dtype).view(f"u{np.dtype(dtype).itemsize}")
    other_nan = (words[:1] + 1).view(dtype)[0]
    check(chosen_from(np.array([0.0, -0.0, np.nan, -np.nan, other_nan, np.inf, -np.inf, 1.0], dtype)))
    assert not refused


COUNTING = attrs.evolve(HostSortPolicy(), few_bytes_from=0, part_bytes_from=0)


@few_cases(pairs=False)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("count", [1, 2, 16, 17, 100, 256, 300])
@pytest.mark.parametrize("dtype", ["u4", "f4", "i8", "f8", "M8[s]"])
def test_a_few_values_sort(dtype: str, count: int, in_place: bool) -> None:
    size = np.dtype(dtype).itemsize
    values = np.random.default_rng(count).integers(0, 256, count * size, np.uint8).view(dtype)
    if np.dtype(dtype).kind == "f":
        values[: min(count, 4)] = np.array([0.0, -0.0, np.nan, -np.nan], dtype)[: min(count, 4)]
    x = chosen_from(values)
    x[-1] = 0  # perhaps one that no sample sees
    for order in SortOrder:
        found = x.copy() if in_place else np.empty_like(x)
        results = found.reshape(1, -1)
        sort_rows(results if in_place else x.reshape(1, -1), results, order, COUNTING)
        expected, numbers, words = in_order(x, order), len(x) - unordered(x), f"u{size}"
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(found[:numbers].view(words), expected[:numbers].view(words))  # zeros' signs too
        np.testing.assert_array_equal(np.sort(found.view(words)), np.sort(x.view(words)))  # every bit came back


@pytest.mark.parametrize("place", [0, 1, LENGTH // 2, LENGTH - 1])
def test_a_stranger_that_no_sample_sees(refused: list[int], place: int) -> None:
    x = chosen_from(np.array([3, 9, 27], np.int64))
    x[place] = 4
    check(x)
    assert len(refused) <= 2  # both orders, unless the sample did see it


def test_many_values_are_left_to_the_usual_way(refused: list[int]) -> None:
    check(chosen_from(np.arange(5000)))
    assert refused == [LENGTH, LENGTH]


def test_values_that_no_multiplier_parts_are_left_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_TRIES", 0)
    x = chosen_from(np.arange(7))
    places = np.empty(LENGTH, np.intp)
    assert not counting.argsort_few(x, places, SortOrder.ASCENDING, HostSortPolicy(), shared_pool())
    check(x)
