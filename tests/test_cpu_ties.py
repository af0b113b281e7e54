"""Stable sorting of floats on the processor: long rows, short ones, spread ones, and in place, against NumPy."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu.host import sort as sorting
from gpusort.targets.cpu.host.sort import sort_rows, sort_spread_rows
from gpusort.targets.cpu.host.ties import may_have_ties, restore_row
from gpusort.targets.cpu.pool import Pool, shared_pool
from gpusort.types.indices import SortOrder
from tests.reference import assert_same_bits, sample, sorted_by_numpy
from tests.test_ties import by_words, kinds_of_rows

POLICY = HostSortPolicy()
IN_PARTS = attrs.evolve(POLICY, serial_below=256, part_bytes_from=4096, chunk=500)
SHAPES = ((0, 3), (3, 0), (1, 1), (1, 50), (40, 30), (20, 400), (2, 5000), (3, 1200), (1, 40_000))


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_every_kind_of_long_row(dtype: str, order: SortOrder) -> None:
    for length in (1, 2, 3, 127, 1000):
        x = kinds_of_rows(dtype, length)
        expected = sorted_by_numpy(x, descending=order is SortOrder.DESCENDING)
        results = by_words(x, order)
        for row in range(len(x)):
            restore_row(x[row], results[row], order, Pool(1))
        assert_same_bits(results, expected)


@pytest.mark.parametrize("order", SortOrder)
def test_a_row_of_many_pieces(order: SortOrder) -> None:
    """Zeros and NaNs in each piece, in some, and in none."""
    x = sample("f4", 300_000, seed=4)
    x[70_000:140_000] = np.abs(np.nan_to_num(x[70_000:140_000])) + 1
    results = by_words(x, order)
    restore_row(x, results, order, shared_pool())
    assert_same_bits(results, sorted_by_numpy(x, descending=order is SortOrder.DESCENDING))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "M8[s]"])
def test_sorting(dtype: str, descending: bool) -> None:
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    for policy in (POLICY, IN_PARTS):
        for shape in SHAPES:
            x = sample(dtype, shape, seed=shape[1])
            expected, results = sorted_by_numpy(x, descending=descending), np.empty_like(x)
            sort_rows(x, results, order, policy, stable=True)
            assert_same_bits(results, expected)
            sort_rows(x, x, order, policy, stable=True)
            assert_same_bits(x, expected)


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_each_kind_of_row_beside_others_of_it(dtype: str, order: SortOrder) -> None:
    """No -0.0, no 0.0, no NaN: what a look at all of them leaves out."""
    for row in kinds_of_rows(dtype, 60):
        x = np.tile(row, (5, 1))
        results = np.empty_like(x)
        sort_rows(x, results, order, POLICY, stable=True)
        assert_same_bits(results, sorted_by_numpy(x, descending=order is SortOrder.DESCENDING))


def test_columns() -> None:
    x = sample("f4", (40, 3000), seed=2)
    results = np.empty_like(x)
    assert sort_spread_rows(x.T, results.T, SortOrder.DESCENDING, IN_PARTS, stable=True)
    assert_same_bits(results, sorted_by_numpy(x, axis=0, descending=True))


def test_a_source_that_lies_where_the_results_do() -> None:
    whole = sample("f4", (1, 3000), seed=1)
    source, results = whole[:, :2500], whole[:, 500:]
    expected = sorted_by_numpy(source)
    sort_rows(source, results, SortOrder.ASCENDING, POLICY, stable=True)
    assert_same_bits(results.copy(), expected)


@pytest.mark.parametrize("step", ["sort_one", "restore_row", "put_in_place"])
def test_in_place_nothing_is_lost(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever strikes before the result is put in place finds the elements as they came."""

    def strike(*_: object) -> None:
        raise KeyboardInterrupt

    x = sample("f4", (1, 5000), seed=3)
    before = x.copy()
    monkeypatch.setattr(sorting, step, strike)
    with pytest.raises(KeyboardInterrupt):
        sort_rows(x, x, SortOrder.ASCENDING, IN_PARTS, stable=True)
    assert_same_bits(x, before)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_may_tie(dtype: str) -> None:
    x = np.zeros((2, 100_000), dtype)
    info = np.finfo(x.dtype)
    x[0, :7] = [np.inf, -np.inf, info.max, info.min, info.smallest_subnormal, -info.smallest_subnormal, 1]
    assert not may_have_ties(x, Pool(1))
    words = np.dtype(f"u{x.itemsize}")
    infinities = np.array([np.inf, -np.inf], dtype).view(words)
    ends = np.array([(1 << (8 * x.itemsize - 1)) - 1, (1 << (8 * x.itemsize)) - 1], words)
    for tying in (np.array([-0.0], dtype).view(words), (infinities + 1).astype(words), ends):
        for one in tying:
            x.view(words)[1, -1] = one
            assert may_have_ties(x, Pool(1))
    assert not may_have_ties(x[:0], Pool(1))
