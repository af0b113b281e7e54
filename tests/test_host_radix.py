"""The host's sort by radix, where NumPy's own is slow: exact to the bit, at every threshold, by any threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort import Bitonic, HostSort, HostSortPolicy, InvalidArgumentError, SerialRadixPolicy
from gpusort.arrays.host import NUMPY
from gpusort.operations.sort import Sort
from gpusort.targets.base import HostArray, Prepared
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host import argsort, numpy_sort, numpy_speed, partition_sort, radix_sort, sort
from gpusort.targets.cpu.host.counting import sort_by_counting
from gpusort.targets.cpu.host.fast_paths import fast_path
from gpusort.targets.cpu.host.key_words import Places
from gpusort.targets.cpu.host.numpy_speed import (
    numpy_argsorts_fast,
    numpy_sorts_slowly,
    numpy_sorts_words_soon,
    radix_sorts_sooner,
)
from gpusort.targets.cpu.host.radix_sort import argsort_by_radix
from gpusort.targets.cpu.pool import Pool
from gpusort.targets.cpu.target import CpuTarget
from gpusort.types.indices import SortOrder
from tests.covering import examples, few_cases
from tests.reference import Array, assert_same_bits, sample
from tests.test_cpu_sorting import LENGTHS, SMALL, check_argsort, check_sort, runs

POLICY = attrs.evolve(SMALL, by_radix=True, radix_from=700, radix_rows_from=500, radix_in_all_from=2000)
TARGET = CpuTarget(POLICY)
DTYPES = ["u4", "i4", "f4", "u8", "i8", "f8", "M8[s]"]
SHAPES = ((1, 701), (2, 1600), (3, 2600), (9, 1500), (40, 701), (4, 699), (2, 600), (9, 499))


@pytest.fixture(autouse=True, params=["2", "5"], ids=lambda threads: f"{threads}-threads")
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GPUSORT_THREADS", str(request.param))
    monkeypatch.setattr(radix_sort, "_LEAST_SHARE", 100)
    monkeypatch.setattr(radix_sort, "_BATCH", 5000)
    with background.off():
        yield


@pytest.fixture
def sorted_so(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The rows and lengths that went by radix."""
    found: list[tuple[int, int]] = []
    prepared = radix_sort.prepared_sort

    def noted(
        dtype: np.dtype[np.generic], order: SortOrder, rows: int, length: int, bits: range, policy: SerialRadixPolicy,
        *, finds_places: bool = False,
    ) -> Prepared:  # fmt: skip
        if not finds_places:
            found.append((rows, length))
        return prepared(dtype, order, rows, length, bits, policy, finds_places=finds_places)

    monkeypatch.setattr(radix_sort, "prepared_sort", noted)
    return found


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_length(dtype: str, order: SortOrder, sorted_so: list[tuple[int, int]]) -> None:
    for shape in (*((1, length) for length in LENGTHS), *SHAPES):
        sorted_so.clear()
        check_sort(sample(dtype, shape, seed=shape[1]), order, TARGET)
        size = shape[0] * shape[1]
        are_many = shape[1] >= POLICY.radix_rows_from and size >= POLICY.radix_in_all_from
        assert bool(sorted_so) is (shape[1] >= POLICY.radix_from or are_many)
        sorted_so.clear()
        too_few = attrs.evolve(POLICY, radix_from=shape[1] + 1, radix_in_all_from=size + 1)
        check_sort(sample(dtype, shape, seed=shape[1]), order, CpuTarget(too_few))
        assert not sorted_so
        check_argsort(sample(dtype, shape, seed=shape[1]), order, TARGET)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_in_order_or_nearly(dtype: str) -> None:
    for length in (1000, 5003):
        for name, row in runs(dtype, length).items():
            for order in SortOrder:
                check_sort(row[np.newaxis].copy(), order, TARGET)
                check_argsort(row[np.newaxis].copy(), order, TARGET)
            assert row.size == length, name


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_that_tie_keep_their_order_where_it_is_asked_for(dtype: str) -> None:
    rng = np.random.default_rng(4)
    bits = np.array([0.0, -0.0, np.nan, -np.nan, 1.0], dtype)
    x = bits[rng.integers(0, 5, 3000)]
    word = f"u{x.itemsize}"
    x.view(word)[np.isnan(x)] |= rng.integers(0, 7, int(np.isnan(x).sum())).astype(word)
    algorithm = HostSort(POLICY)
    for descending in (False, True):
        found = gpusort.sort(x, algorithm=algorithm, stable=True, descending=descending, target="cpu")
        places = gpusort.argsort(x, descending=descending, target="cpu")
        assert_same_bits(found.view(word), x.view(word)[places])


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_integers_from_any_range(data: st.DataObject) -> None:
    """Digits that all have in common are left out, also where signs differ."""
    dtype = np.dtype(data.draw(st.sampled_from(["u4", "i4", "u8", "i8"])))
    ends = np.iinfo(dtype.str)
    edges = [ends.min, ends.max, 0, 1, 255, 256, 1 << 16, ends.max // 2, -1 if ends.min else 2]
    low, high = sorted(data.draw(st.tuples(*[st.one_of(st.sampled_from(edges), st.integers(ends.min, ends.max))] * 2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(low, high, data.draw(st.sampled_from([700, 1999])), dtype, endpoint=True)
    for order in SortOrder:
        check_sort(x[np.newaxis].copy(), order, TARGET)


def test_leaves_out_the_digits_that_all_have_in_common() -> None:
    bits = radix_sort.bits_that_differ
    assert bits(np.array([3, 3, 3], np.uint32)) == range(1)
    assert bits(np.array([0, 255], np.uint32)) == range(8)
    assert bits(np.array([-5, -1], np.int64)) == range(3)
    assert bits(np.array([-1, 0], np.int64)) == range(64)
    assert bits(np.array([1.0, 1.0])) == range(64)


@pytest.mark.parametrize("dtype", ["i4", "u8"])
def test_each_of_a_few_rows_has_digits_of_its_own(dtype: str) -> None:
    """Of the first row the lowest differ alone."""
    rows = np.random.default_rng(5).integers(0, [[200], [1 << 30]], (2, 9000)).astype(dtype)
    for source in (rows, rows[::-1].copy()):
        results = np.empty_like(source)
        radix_sort.sort_by_radix(source, results, SortOrder.ASCENDING, Pool(3))
        assert_same_bits(results, np.sort(source))


def test_whether_numpy_is_slow_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, is_slow in ((1e-5, False), (1e-2, True)):
        clock = iter(range(1000))
        monkeypatch.setattr(numpy_speed, "perf_counter", lambda: next(clock) * seconds)  # noqa: B023
        numpy_sorts_slowly.cache_clear()
        assert numpy_sorts_slowly(4) is is_slow
    numpy_sorts_slowly.cache_clear()


def test_whether_numpys_radix_sort_is_faster_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for stable, other in ((1, 2), (2, 1)):
        clock = chain.from_iterable([0, other, 0, stable] for _ in range(1000))
        monkeypatch.setattr(numpy_speed, "perf_counter", lambda: next(clock) * 1e-6)  # noqa: B023
        radix_sorts_sooner.cache_clear()
        assert radix_sorts_sooner() is (stable < other)
    radix_sorts_sooner.cache_clear()


@pytest.mark.parametrize(
    ("mine", "stable", "is_fast", "is_soon"), [(2, 5, True, True), (3, 5, False, True), (4, 5, False, False)]
)
def test_whether_numpy_has_vector_code_for_short_rows_is_measured(
    monkeypatch: pytest.MonkeyPatch, mine: int, stable: int, is_fast: bool, is_soon: bool
) -> None:
    """Twice as fast an argsort as the stable one, or a sort of words that takes two thirds of its time."""
    clock = chain.from_iterable([0, stable, 0, mine] for _ in range(1000))
    monkeypatch.setattr(numpy_speed, "perf_counter", lambda: next(clock) * 1e-6)
    numpy_argsorts_fast.cache_clear()
    numpy_sorts_words_soon.cache_clear()
    assert (numpy_argsorts_fast(8), numpy_sorts_words_soon()) == (is_fast, is_soon)
    numpy_argsorts_fast.cache_clear()
    numpy_sorts_words_soon.cache_clear()


def test_what_is_measured_is_in_no_order() -> None:
    """A sort in place of the numbers leaves others for its peer."""

    def is_mixed(row: Array) -> None:
        assert 0.3 < np.mean(row[1:] < row[:-1]) < 0.7
        row.sort()

    numpy_speed._is_sooner(8, 1000, is_mixed, is_mixed)


@pytest.mark.parametrize("sooner", [False, True])
@pytest.mark.parametrize("dtype", ["u2", "i2", "f2", ">u2", ">f2"])
def test_16_bits_are_sorted_by_radix_where_numpy_has_nothing_faster(
    dtype: str, sooner: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless rows are short; short arrays of float16 are sorted as such."""
    monkeypatch.setattr(numpy_sort, "radix_sorts_sooner", lambda *length: sooner)
    assert (100 in numpy_sort.lengths_sorted_stably(np.dtype("u2"))) is sooner
    for shape in ((95,), (96,), (255,), (1500,), (40, 47), (20, 120), (120, 20)):
        for order in SortOrder:
            x = sample(dtype, shape)
            for axis in (None, *range(x.ndim)):
                path = fast_path(Sort(axis, order), [NUMPY.spec("x", x)], HostSortPolicy())
                assert path is not None
                expected = gpusort.sort(x, axis=axis, descending=order is SortOrder.DESCENDING, algorithm=Bitonic())
                assert_same_bits(path.function(x), expected)
                if axis is not None and path.into is not None:
                    given = x.copy()
                    path.into((given,), (given,))
                    assert_same_bits(given, expected)


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["u2", "i2", "f2"])
def test_16_bits_are_counted_in_shorter_rows_where_numpy_is_slow(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def noted(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
        counted.append(source.size)
        sort_by_counting(source, results, order, pool)

    monkeypatch.setattr(sort, "sort_by_counting", noted)
    policy = attrs.evolve(SMALL, count_pairs_from=3000, count_slow_pairs_from=2000)
    for is_slow, expected in ((False, [3000]), (True, [2000, 2999, 3000])):
        monkeypatch.setattr(partition_sort, "radix_sorts_sooner", partial(bool, is_slow))
        counted.clear()
        for length in (1999, 2000, 2999, 3000):
            x = sample(dtype, length)
            found = gpusort.sort(x, algorithm=HostSort(policy), target="cpu")
            assert_same_bits(found, gpusort.sort(x, target="simulator"))
        assert counted == expected


@pytest.mark.parametrize("dtype", ["u4", "i4", "f4"])
@pytest.mark.parametrize("order", SortOrder)
def test_argsort_of_32_bits_is_a_radix_sort_of_the_elements(
    order: SortOrder, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def noted(row: HostArray, places: Places, threads: int) -> None:
        taken.append(row.size)
        argsort_by_radix(row, places, threads)

    monkeypatch.setattr(argsort, "argsort_by_radix", noted)
    rng = np.random.default_rng(4)
    x = rng.integers(-(1 << 20), 1 << 20, 70_000).astype(dtype)
    x[rng.random(x.size) < 0.2] = x[0]
    if dtype == "f4":
        x[rng.random(x.size) < 0.1] = np.nan
        x[rng.random(x.size) < 0.1] *= 0  # of both signs, which tie
    (places,) = argsort.argsort_rows(numpy_sort.ascending(x, order)[np.newaxis], HostSortPolicy(by_radix=True))
    assert taken == [x.size]
    wide = x.astype(np.float64)  # in which zeros and NaNs tie
    expected = np.argsort(-wide if order is SortOrder.DESCENDING else wide, kind="stable")
    np.testing.assert_array_equal(places, expected)


@pytest.mark.parametrize("dtype", ["u4", "i8", "f4"])
@pytest.mark.parametrize("different", [9, 200, 900])
def test_few_different_elements_are_counted_not_radix_sorted(
    different: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_radix: list[int] = []

    def noted(source: HostArray, results: HostArray, order: SortOrder, pool: Pool) -> None:
        by_radix.append(source.size)
        radix_sort.sort_by_radix(source, results, order, pool)

    monkeypatch.setattr(sort, "sort_by_radix", noted)
    rng = np.random.default_rng(different)
    x = rng.integers(-100, 800, different).astype(dtype)[rng.integers(0, different, 200_000)]
    if dtype == "f4":
        x[rng.random(x.size) < 0.1] = -0.0
    policy = HostSortPolicy(by_radix=True, few_bytes_from=1 << 18)
    for stable in (False, True):
        plain = gpusort.sort(x, stable=stable, algorithm=HostSort(attrs.evolve(policy, few_bytes_from=1 << 40)))
        by_radix.clear()
        found = gpusort.sort(x, stable=stable, algorithm=HostSort(policy))
        assert_same_bits(found, plain)
        assert by_radix == ([] if different < 256 else [x.size])
        in_place = x.copy()
        gpusort.sort_inplace(in_place, stable=stable, algorithm=HostSort(policy))
        assert_same_bits(in_place, plain)


def test_it_goes_by_what_was_measured_if_it_is_not_told(
    monkeypatch: pytest.MonkeyPatch, sorted_so: list[tuple[int, int]]
) -> None:
    x: Array = np.random.default_rng(1).permutation(2000)
    for is_slow in (False, True):
        for told in (None, False, True):
            sorted_so.clear()
            monkeypatch.setattr(radix_sort, "numpy_sorts_slowly", {8: is_slow}.__getitem__)
            algorithm = HostSort(attrs.evolve(POLICY, by_radix=told))
            assert_same_bits(gpusort.sort(x, algorithm=algorithm, target="cpu"), np.sort(x))
            assert bool(sorted_so) is (is_slow if told is None else told)


def test_what_is_no_answer_is_refused() -> None:
    wrong: object = 1
    with pytest.raises(InvalidArgumentError, match="by_radix: expected a bool or None, found 1"):
        HostSortPolicy(by_radix=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # wrong it is


@pytest.mark.parametrize("dtype", ["u4", "f8"])
def test_long_rows_of_a_small_array_go_by_radix_wherever_they_are_sorted_into(
    dtype: str, sorted_so: list[tuple[int, int]]
) -> None:
    algorithm = HostSort(attrs.evolve(POLICY, serial_below=1 << 16))
    for shape, axis in (((3, 800), 1), ((800, 3), 0)):
        x = sample(dtype, shape, seed=8)
        wanted = gpusort.sort(x, axis=axis, algorithm=HostSort(attrs.evolve(POLICY, by_radix=False)), target="cpu")
        assert not sorted_so
        assert_same_bits(gpusort.sort(x, axis=axis, algorithm=algorithm, target="cpu"), wanted)
        assert sorted_so
        sorted_so.clear()
        out = np.empty_like(x)
        gpusort.sort(x, axis=axis, algorithm=algorithm, out=out, target="cpu")
        assert_same_bits(out, wanted)
        assert sorted_so
        sorted_so.clear()
        gpusort.sort_inplace(x, axis=axis, algorithm=algorithm, target="cpu")
        assert_same_bits(x, wanted)
        assert sorted_so
        sorted_so.clear()


@pytest.mark.parametrize("most", [1, 2])
def test_a_row_has_no_more_threads_than_its_policy_allows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[int] = []
    prepared = radix_sort.prepared_sort

    def noted(
        dtype: np.dtype[np.generic], order: SortOrder, rows: int, length: int, bits: range, policy: SerialRadixPolicy,
        *, finds_places: bool = False,
    ) -> Prepared:  # fmt: skip
        shares.append(policy.shares)
        return prepared(dtype, order, rows, length, bits, policy, finds_places=finds_places)

    monkeypatch.setattr(radix_sort, "prepared_sort", noted)
    x = np.random.default_rng(0).integers(0, 1 << 32, (1, 1 << 18), np.uint32)
    check_sort(x, SortOrder.ASCENDING, CpuTarget(attrs.evolve(POLICY, most_threads=most)))
    assert set(shares) == {most}


def test_what_is_foreseen_is_there_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_done", {})
    monkeypatch.setattr(background, "in_caller", False)
    dtype, order = np.dtype(np.int32), SortOrder.DESCENDING
    TARGET.foresee_sorts(dtype, order, POLICY.radix_from - 1)  # NumPy's to sort
    assert background.wait(60)
    assert not background._done  # pyright: ignore[reportPrivateUsage]  # to ask whether it is there asks for it
    TARGET.foresee_sorts(dtype, order, 1 << 20)
    assert background.wait(60)
    assert radix_sort.can_sort_by_radix(dtype, order, 0)
