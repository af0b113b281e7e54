"""Long rows of few different elements, sorted and argsorted by counting, compared with NumPy exactly."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.arrays.host import NUMPY
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host import argsort, counting, packed_argsort
from gpusort.targets.cpu.host.at_sight import HANDFUL, HANDFUL_OF_NUMPY, sorted_at_sight
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.host.sort_path import SortPath
from gpusort.targets.cpu.pool import shared_pool
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.reference import assert_same_bits
from tests.test_float_ties import in_bit_order
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
    assert not counting.argsort_few(x, places, HostSortPolicy(), shared_pool())
    check(x)


# -- a handful of words, counted one by one ------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("count", [1, 2, 3, HANDFUL_OF_NUMPY, HANDFUL_OF_NUMPY + 1, HANDFUL, HANDFUL + 1])
@pytest.mark.parametrize("dtype", ["u2", "f2", "i4", "f4", "u8", "i8", "f8", "M8[s]"])
def test_a_handful_is_sorted_at_sight(dtype: str, count: int, order: SortOrder) -> None:
    """By loops, with or without threads, and by NumPy, where it sorts short rows fast; whatever other element is there,
    and wherever."""
    x = np.arange(-3, count - 3).astype(dtype)[np.random.default_rng(count).permutation(70_000) % count]
    x[-7:] = x[0]  # else five elements may all differ
    if dtype[0] in "fM":
        x[x == x.max()] = np.nan if dtype[0] == "f" else "NaT"
    short = HANDFUL if x.itemsize > 2 else HANDFUL_OF_NUMPY
    for few_bytes_from, most in ((1, HANDFUL), (1 << 40, short)):
        policy = HostSortPolicy(few_bytes_from=few_bytes_from, by_radix=True)  # else NumPy's sort is as fast
        for row in (x, np.repeat(x[::7], 2)[::2]):
            before = row.tobytes()
            with background.off():
                found = sorted_at_sight(row, order, policy)
            assert (found is not None) is (count <= most)
            if found is not None:
                assert_same_bits(found, in_order(row, order))
            assert row.tobytes() == before
        for place in (0, 2047, 2048, x.size - 1):
            other = x.copy()
            other[place] = np.array(100).astype(dtype)
            path = SortPath(policy, NUMPY.spec("x", other), 0, order, False)
            with background.off():
                assert_same_bits(path.function(other), in_order(other, order))


@pytest.mark.parametrize("few_bytes_from", [1, 1 << 40])
def test_a_handful_of_floats_that_tie(few_bytes_from: int) -> None:
    """In the order of their bits."""
    policy = HostSortPolicy(few_bytes_from=few_bytes_from, by_radix=True)
    for values in ([0.0, -0.0], [np.nan, -np.nan, 1.0], [0.0, 2.0, np.nan]):
        x = np.array(values, np.float32)[np.random.default_rng(1).integers(0, len(values), 40_000)]
        for order in SortOrder:
            with background.off():
                found = sorted_at_sight(x, order, policy)
                assert found is not None
                assert_same_bits(found, in_bit_order(x, order is SortOrder.DESCENDING, 0))


def test_what_comes_again_after_an_even_number_is_seen() -> None:
    x = np.resize(np.array([7, 5], np.float64), 1 << 16)
    assert sorted_at_sight(x, SortOrder.ASCENDING, HostSortPolicy(few_bytes_from=1)) is not None
