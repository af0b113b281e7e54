"""Stable sorting of floats on the processor: long rows, short ones, spread ones, and in place, against NumPy."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.arrays.host import NUMPY
from gpusort.targets.base import HostArray
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host.numpy_sort import keep_ties, restore_ties, sort_chunk
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.host.sort_path import SortPath
from gpusort.targets.cpu.target import CpuTarget
from gpusort.types.indices import SortOrder
from tests.reference import assert_same_bits, sample, sorted_by_numpy
from tests.test_ties import by_words, kinds_of_rows

POLICY = HostSortPolicy()
IN_PARTS = attrs.evolve(POLICY, serial_below=256, part_bytes_from=4096, chunk=500)
SHAPES = ((0, 3), (3, 0), (1, 1), (1, 50), (40, 30), (20, 400), (2, 5000), (3, 1200), (1, 40_000))


def sort_stably(x: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> None:
    SortPath(policy, NUMPY.spec("x", x), -1, order, stable=True).into((x,), (results,))


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_every_kind_of_long_row(dtype: str, order: SortOrder) -> None:
    for length in (1, 2, 3, 127, 1000):
        x = kinds_of_rows(dtype, length)
        expected = sorted_by_numpy(x, descending=order is SortOrder.DESCENDING)
        results = by_words(x, order)
        for row in range(len(x)):
            keep_ties(x[row : row + 1], results[row : row + 1])
        assert_same_bits(results, expected)
        together = by_words(x, order)
        keep_ties(x, together)
        assert_same_bits(together, expected)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_flattened_arrays_keep_ties(dtype: str, descending: bool) -> None:
    for rows, length in ((2, 3), (20, 100), (90, 1000)):
        x = np.resize(kinds_of_rows(dtype, length), (rows, length))
        found = gpusort.sort(x, axis=None, stable=True, descending=descending, target="cpu")
        assert_same_bits(found, sorted_by_numpy(x.reshape(-1), descending=descending))


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_need_not_be_stable_is_in_the_order_of_words(dtype: str, order: SortOrder) -> None:
    """Whichever zeros and NaNs NumPy's sort gave."""
    for length in (1, 2, 127, 1000):
        x = kinds_of_rows(dtype, length)
        expected = by_words(x, order)
        together, apart = np.empty_like(x), expected.copy()
        apart[apart == 0] = 0.0
        apart[np.isnan(apart)] = np.nan
        sort_chunk(x, together, order)
        assert_same_bits(together, expected)
        for row in range(len(x)):
            restore_ties(x[row], apart[row], order)
        assert_same_bits(apart, expected)


@pytest.mark.parametrize("order", SortOrder)
def test_a_row_of_many_pieces(order: SortOrder) -> None:
    """Zeros and NaNs in each piece, in some, and in none."""
    x = sample("f4", 300_000, seed=4)
    x[70_000:140_000] = np.abs(np.nan_to_num(x[70_000:140_000])) + 1
    results = by_words(x, order)
    keep_ties(x[np.newaxis], results[np.newaxis])
    assert_same_bits(results, sorted_by_numpy(x, descending=order is SortOrder.DESCENDING))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "M8[s]"])
def test_sorting(dtype: str, descending: bool) -> None:
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    for policy in (POLICY, IN_PARTS):
        for shape in SHAPES:
            x = sample(dtype, shape, seed=shape[1])
            expected, results = sorted_by_numpy(x, descending=descending), np.empty_like(x)
            sort_stably(x, results, order, policy)
            assert_same_bits(results, expected)
            sort_stably(x, x, order, policy)
            assert_same_bits(x, expected)


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_each_kind_of_row_beside_others_of_it(dtype: str, order: SortOrder) -> None:
    """No -0.0, no 0.0, no NaN: what a look at all of them leaves out."""
    for row in kinds_of_rows(dtype, 60):
        x = np.tile(row, (5, 1))
        results = np.empty_like(x)
        sort_stably(x, results, order, POLICY)
        assert_same_bits(results, sorted_by_numpy(x, descending=order is SortOrder.DESCENDING))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_short_rows_before_any_loop_is_loaded(dtype: str, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process's first calls. NumPy's own stable sort, which the shortest ones are given to, keeps ties as they
    came."""

    def never(*_: object, **named: object) -> bool:
        return False

    monkeypatch.setattr(background, "has", never)
    for shape in ((12_000, 2), (12_000, 6), (12_000, 7), (3, 4000)):
        x = np.random.default_rng(1).choice(np.array([0.0, -0.0, np.nan, -np.nan, 1, -2], dtype), shape)
        by_bits = by_words(x, SortOrder.DESCENDING if descending else SortOrder.ASCENDING)
        for stable, expected in ((False, by_bits), (True, sorted_by_numpy(x, descending=descending))):
            assert_same_bits(gpusort.sort(x, descending=descending, stable=stable, target="cpu"), expected)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_that_compiled_loops_make_words_of(dtype: str, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any kind, all of one or one after the other; also so long that they are sorted some at a time."""
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    monkeypatch.setattr("gpusort.targets.cpu.host.rows_as_words._AT_ONCE", 50_000)
    with background.off():
        for length, times in ((31, 60), (32, 1), (33, 60), (700, 2), (3500, 1), (9000, 2)):
            kinds = kinds_of_rows(dtype, length)
            for x in (np.tile(kinds, (times, 1)), *(np.tile(row, (-(-20_000 // length), 1)) for row in kinds)):
                expected = by_words(x, order)
                assert_same_bits(gpusort.sort(x, descending=descending, target="cpu"), expected)
                found = np.empty_like(x)
                gpusort.sort(x, descending=descending, target="cpu", out=found)
                assert_same_bits(found, expected)
                gpusort.sort_inplace(found, descending=not descending, target="cpu")
                gpusort.sort_inplace(found, descending=descending, target="cpu")
                assert_same_bits(found, expected)
                kept = gpusort.sort(x, descending=descending, stable=True, target="cpu")
                assert_same_bits(kept, sorted_by_numpy(x, descending=descending))


def test_columns() -> None:
    x = sample("f4", (40, 3000), seed=2)
    results = gpusort.sort(x, axis=0, descending=True, stable=True, target=CpuTarget(IN_PARTS))
    assert_same_bits(results, sorted_by_numpy(x, axis=0, descending=True))


def test_rows_that_lie_apart_are_brought_together_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusort.targets.cpu.host.sort._AT_ONCE", 1000)
    x = sample("f4", (300, 7, 5), seed=4).transpose(2, 1, 0)
    results, mine = np.empty_like(x), x.copy("K")
    sort_rows(x, results, SortOrder.ASCENDING, POLICY)
    sort_rows(mine, mine, SortOrder.ASCENDING, POLICY)
    expected = by_words(x.reshape(-1, 300), SortOrder.ASCENDING).reshape(x.shape)
    assert_same_bits(results.copy(), expected)
    assert_same_bits(mine.copy(), expected)


def test_a_source_that_lies_where_the_results_do() -> None:
    whole = sample("f4", (1, 3000), seed=1)
    source, results = whole[:, :2500], whole[:, 500:]
    expected = sorted_by_numpy(source)
    sort_stably(source, results, SortOrder.ASCENDING, POLICY)
    assert_same_bits(results.copy(), expected)


@pytest.mark.parametrize("step", ["sort.sort_one", "partition_sort.restore_ties"])
def test_in_place_nothing_is_lost(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever strikes before the result is put in place finds the elements as they came."""

    def strike(*_: object) -> None:
        raise KeyboardInterrupt

    x = np.random.default_rng(3).standard_normal((1, 5000)).astype(np.float32)
    x[0, :6] = [0.0, -0.0, np.nan, 0.0, -np.nan, -0.0]
    before = x.copy()
    monkeypatch.setattr(f"gpusort.targets.cpu.host.{step}", strike)
    with pytest.raises(KeyboardInterrupt):
        sort_rows(x, x, SortOrder.ASCENDING, IN_PARTS)
    assert_same_bits(x, before)
