"""The CPU target's own ways to sort and argsort host arrays: exact to the bit, at every threshold, from any thread."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.arrays.host import NUMPY
from gpusort.operations.sort import Sort
from gpusort.targets.base import HostArray
from gpusort.targets.cpu.compiler import loading
from gpusort.targets.cpu.compiler.machine import Machine, machine
from gpusort.targets.cpu.host import argsort, at_sight, numpy_sort, radix_sort, sort_path
from gpusort.targets.cpu.host import sort as host_sort
from gpusort.targets.cpu.host.argsort import argsort_row, argsort_rows
from gpusort.targets.cpu.host.at_sight import sorted_at_sight
from gpusort.targets.cpu.host.fast_paths import fast_path
from gpusort.targets.cpu.host.key_words import Places, elements_in_order, ordered_words
from gpusort.targets.cpu.host.numpy_sort import ascending
from gpusort.targets.cpu.host.packed_argsort import places_packed
from gpusort.targets.cpu.host.partition import part_in_turn
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.host.sort_path import SortPath
from gpusort.targets.cpu.target import CpuTarget
from gpusort.types.dtypes import key_for
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import SortOrder
from tests.covering import examples, few_cases, is_whole
from tests.new_process import printed
from tests.reference import DTYPES, Array, assert_same_bits, run_in_threads, sample, sorted_by_numpy

# Every way of sorting is taken by arrays of a few thousand elements.
SMALL = HostSortPolicy(
    serial_below=1000,
    part_bytes_from=1500 * 4,
    few_bytes_from=2500 * 4,
    count_bytes_from=1500,
    count_pairs_from=1500,
    deal_from=1500,
    pack_from=20,
    sample=64,
    glance=64,
    some=20,
    block=100,
    chunk=300,
    by_radix=False,
)
TARGET = CpuTarget(SMALL)
LENGTHS = (0, 1, 2, 3, 19, 20, 31, 750, 999, 1000, 1499, 1500, 1501, 2499, 2500, 3001, 5003)
SHAPES = ((0, 5), (5, 0), (3, 1), (7, 13), (400, 3), (40, 101), (2, 1600), (3, 2600), (9, 1500))


@pytest.fixture(autouse=True, params=["2", "5", "8"], ids=lambda threads: f"{threads}-threads")
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", str(request.param))


# Of what no number of threads can change.
once = pytest.mark.parametrize("threads", ["2"], indirect=True)


# -- what is expected -------------------------------------------------------------------------------------


def in_order(x: Array, order: SortOrder) -> Array:
    """Each row by its key's words, bit for bit. The words themselves are tested below, element by element."""
    bits: Array = x.view(f"u{x.itemsize}")
    places = np.argsort(ordered_words(x.copy(), order), axis=-1, kind="stable")
    return np.take_along_axis(bits, places, axis=-1)


def stable_places(x: Array, order: SortOrder) -> npt.NDArray[np.intp]:
    """NumPy's; descending, its answer for the row backwards, read backwards, and what compares to nothing last."""
    if order is SortOrder.ASCENDING:
        return np.argsort(x, axis=-1, kind="stable")
    backwards = x.shape[-1] - 1 - np.argsort(x[:, ::-1], axis=-1, kind="stable")[:, ::-1]
    values = np.take_along_axis(x, backwards, axis=-1)
    last = np.argsort(values != values, axis=-1, kind="stable")
    return np.take_along_axis(backwards, last, axis=-1)


def check_sort(x: Array, order: SortOrder, target: CpuTarget = TARGET) -> None:
    expected = in_order(x, order)
    before = x.tobytes()
    results = np.full_like(x, 1)
    sort_rows(x, results, order, target.policy)
    assert x.tobytes() == before
    assert results.tobytes() == expected.tobytes()
    sort_rows(x, x, order, target.policy)
    assert x.tobytes() == expected.tobytes()


def check_argsort(x: Array, order: SortOrder, target: CpuTarget = TARGET) -> None:
    before = x.tobytes()
    numbers = ascending(x, order)
    places = argsort_rows(numbers, target.policy)
    assert x.tobytes() == before
    expected = stable_places(x, order)
    np.testing.assert_array_equal(places, expected)
    for row, own in zip(numbers, expected, strict=True):
        np.testing.assert_array_equal(argsort_row(row, target.policy), own)
    assert x.tobytes() == before


@once
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_expected_order_is_the_key_s(dtype: str, order: SortOrder) -> None:
    x = sample(dtype, 60)
    key = key_for(x.dtype)
    bits = x.view(f"u{x.itemsize}")
    words = [key.to_word(key.element(int(element))) for element in bits]
    if order is SortOrder.DESCENDING:
        words = [key.mirrored(word) for word in words]
    expected = sorted(range(60), key=lambda index: int(words[index]))
    assert in_order(x[np.newaxis], order).tobytes() == bits[expected].tobytes()
    assert elements_in_order(ordered_words(x, order), x.dtype, order).tobytes() == x.tobytes()


# -- every dtype, length and shape ------------------------------------------------------------------------


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_length(dtype: str, order: SortOrder) -> None:
    for shape in (*((1, length) for length in LENGTHS), *SHAPES):
        check_sort(sample(dtype, shape, seed=shape[1]), order)
        check_argsort(sample(dtype, shape, seed=shape[1]), order)


def runs(dtype: str, length: int) -> dict[str, Array]:
    """Rows that are in order, or nearly so, with and without ties."""
    plain = np.sort(sample(dtype, length))
    plain = plain[plain == plain]  # without NaN and NaT
    numbers = np.resize(plain, length) if plain.size else np.zeros(length, dtype)
    numbers.sort()
    late, early = numbers.copy(), numbers[::-1].copy()
    if numbers.dtype.kind in "fMm":
        late[-1] = early[0] = "NaT" if numbers.dtype.kind in "Mm" else "nan"
    swapped = numbers.copy()
    swapped[[length // 3, length // 2]] = swapped[[length // 2, length // 3]]
    return {
        "sorted": numbers, "reversed": numbers[::-1].copy(), "no number last": late, "no number first": early,
        "no number last, reversed": np.concatenate([early[1:], early[:1]]), "swapped": swapped,
        "in pairs, reversed": np.repeat(numbers[: -(-length // 2)], 2)[:length][::-1].copy(),
        "two runs": np.concatenate([numbers[::2], numbers[1::2]]), "constant": np.full(length, numbers[0]),
        "one step down": np.repeat(numbers[[-1, 0]], (length // 3, length - length // 3)),
    }  # fmt: skip


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_runs(dtype: str, order: SortOrder) -> None:
    for length in (256, 1501, 5003, 20011):
        for x in runs(dtype, length).values():
            check_argsort(x[np.newaxis], order)


def wide(rng: np.random.Generator, shape: tuple[int, int]) -> list[Array]:
    """Rows whose ranks do not fit beside a place, with lowest bits that are alike, that matter to few, or to many."""
    signed, far = rng.integers(-99, 99, shape), rng.integers(0, 1 << 62, shape)
    missing = signed.astype("f8")
    missing[:, ::7] = "nan"
    close = 1 + rng.integers(0, 99, shape) * 2.0**-52
    few = np.where(rng.random(shape) < 0.03, close, rng.random(shape))
    extremes = np.where(rng.random(shape) < 0.5, -np.inf, signed.astype("f8"))
    crowd = 1 + rng.integers(0, 5000, shape) * 2.0**-52
    crowd[:, 0], crowd[:, -1] = 1e300, -1e300
    return [
        signed.astype("f8"), np.abs(signed) * 0.5, -np.abs(signed) * 0.5, missing, close, -close, few, crowd, extremes,
        signed * 0.37, rng.random(shape), rng.standard_normal(shape), np.where(signed % 3 == 0, -0.0, 0.0 * far),
        far, far - (1 << 61), far >> 50 << 50, far.astype("u8"), np.where(signed < 0, far // 2, far // 2 + signed),
        far.astype("M8[ns]"), (far >> 50 << 50).astype("m8[s]"),
    ]  # fmt: skip


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("shape", [(1, 31), (1, 999), (3, 300), (1, 1501), (1, 5003), (2, 2048)], ids=str)
def test_ranks_that_find_no_room(shape: tuple[int, int], order: SortOrder) -> None:
    for x in wide(np.random.default_rng(shape), shape):
        check_argsort(x, order)


@few_cases(pairs=False)
@pytest.mark.parametrize("order", SortOrder)
def test_ranks_that_find_no_room_in_long_rows(order: SortOrder) -> None:
    """By the policy as it is: many more places than lie in the lowest bits of a rank. A third of the longest."""
    for length, step in ((60000, 1), (70000, 1), (300000, 1 if is_whole() else 3)):
        for x in wide(np.random.default_rng((1, length)), (1, length))[1 % step :: step]:
            check_argsort(x, order, CpuTarget())


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_many_rows_in_order_are_not_packed(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's stable sort sees that each is one run."""
    packed: list[int] = []

    def noted(source: HostArray, policy: HostSortPolicy) -> Places:
        packed.append(len(source))
        return places_packed(source, policy)

    monkeypatch.setattr(argsort, "places_packed", noted)
    for shape in ((40, 700), (4, 3000), (60, 200)):
        rows = np.random.default_rng(1).permutation(np.arange(math.prod(shape))).reshape(shape).astype(dtype)
        for x, expected in ((np.sort(rows, axis=1), 0), (np.sort(rows, axis=1)[:, ::-1].copy(), 0), (rows, 1)):
            packed.clear()
            places = argsort_rows(x, HostSortPolicy())
            np.testing.assert_array_equal(places, np.argsort(x, axis=1, kind="stable"))
            assert len(packed) == expected


def is_merged(row: HostArray, policy: HostSortPolicy) -> bool:
    return argsort._is_merged(row[np.newaxis], policy)


def test_long_runs_are_merged() -> None:
    x = np.arange(20000, dtype="f8")
    for row in (x, x[::-1].copy(), np.concatenate([x, x])):
        assert is_merged(row, SMALL)
    assert not is_merged(sample("f8", 20000), SMALL)


def test_rows_with_some_elements_out_of_place_are_merged() -> None:
    """Where few threads would share the row; else as many runs as they make are sorted sooner."""
    x = np.arange(20000, dtype="f8")
    moved = np.random.default_rng(1).choice(x.size, 260, replace=False)
    x[moved] = x[moved[::-1]]
    assert is_merged(x, HostSortPolicy())
    assert not is_merged(x, SMALL)


def test_many_runs_are_sorted_as_what_is_in_no_order() -> None:
    """As the buckets of a file sort are: a merge for each doubling of their number would take longer."""
    several, many = np.resize(np.arange(3000.0), 8 * 3000), np.resize(np.arange(1000.0), 24 * 1000)
    assert is_merged(several, SMALL)
    assert not is_merged(many, SMALL)
    nearly = np.arange(24000.0)
    nearly[100::200] = 0.5  # 120 runs, but each goes on where the one before has ended
    assert is_merged(nearly, SMALL)
    for x in (several, many, nearly):
        check_argsort(x[np.newaxis], SortOrder.ASCENDING)


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_short_arrays_are_sorted_in_place_at_once_wherever_they_lie(dtype: str) -> None:
    """Unless some of their elements are one."""
    whole = sample(dtype, (40, 60))
    for x in (whole[0, ::2], whole[1, ::-1], whole[2:, 7], whole[3:10, 1:9], whole.T[5:, 2:20:3]):
        path, expected, before = SortPath(SMALL, NUMPY.spec("x", x), -1, SortOrder.ASCENDING, False), x.copy(), x.copy()
        assert path.into_short is not None
        path.into((expected,), (expected,))
        rest = np.setdiff1d(whole.ravel(), x).tobytes()
        assert path.into_short(x, x)
        assert_same_bits(x, expected)
        x[...] = before
        assert np.setdiff1d(whole.ravel(), x).tobytes() == rest
        assert not path.into_short(x, np.broadcast_to(x[..., :1], x.shape))
    windows = np.lib.stride_tricks.sliding_window_view(whole[0], 10, writeable=True)
    path = SortPath(SMALL, NUMPY.spec("x", windows), -1, SortOrder.ASCENDING, False)
    assert path.into_short is not None
    assert not path.into_short(windows, windows)


def test_flattened_arrays_are_sorted_at_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sort_path, "sort_rows")
    monkeypatch.setattr(radix_sort, "numpy_sorts_slowly", lambda itemsize: False)  # as a busy one may seem to
    for x in (np.arange(5000.0), np.arange(5000.0)[::-1], np.full(5000, np.nan), np.arange(5000) % 2 - 0.5):
        for flattened in (x.reshape(50, 100), x.reshape(10, 50, 10)[::-1]):
            path = SortPath(HostSortPolicy(radix_from=1), NUMPY.spec("x", flattened), None, SortOrder.ASCENDING, False)
            np.testing.assert_array_equal(path.function(flattened), np.sort(flattened, axis=None))


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_do_not_lie_side_by_side(dtype: str, order: SortOrder) -> None:
    for rows, length in ((40 * 64, 2), (1200, 7), (1100, 33), (1090, 300)):
        plain = sample(dtype, (length, rows))
        expected = in_order(np.ascontiguousarray(plain.T), order)
        for matrix in (plain, plain.astype(plain.dtype.newbyteorder("S"))):
            path = fast_path(Sort(0, order), [NUMPY.spec("x", matrix)], SMALL)
            assert path is not None
            before = matrix.tobytes()
            results = path.function(matrix)
            assert matrix.tobytes() == before
            if path.into is not None:
                path.into((matrix,), (matrix,))
            else:  # of the other byte order: the front writes what the function gives
                gpusort.sort_inplace(matrix, axis=0, descending=order is SortOrder.DESCENDING, target="cpu")
            assert (path.into is not None) == matrix.dtype.isnative or matrix.itemsize == 1
            for found in (results, matrix):
                assert found.T.astype(plain.dtype, order="C").tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(40, 50, 30), (40, 3, 500), (40, 500, 3), (2, 2, 15_000)], ids=str)
def test_threads_share_rows_that_are_spread_by_the_outermost_axis(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it has as many as there are to be parts: of an inner one each part would read some of each cache line."""
    chunks: list[tuple[int, ...]] = []

    def watched(source: HostArray, results: HostArray, order: SortOrder) -> None:
        chunks.append(source.shape)
        numpy_sort.sort_chunk(source, results, order)

    monkeypatch.setattr(host_sort, "sort_chunk", watched)
    monkeypatch.setenv("GPUSORT_THREADS", "4")  # fewer leave so little to one
    x = np.random.default_rng(5).permutation(np.prod(shape, dtype=int)).reshape(shape).swapaxes(0, -1)
    policy = HostSortPolicy(serial_below=1 << 10, chunk=1 << 12)
    results = np.empty_like(x)
    host_sort._sort_chunks(x, results, SortOrder.ASCENDING, policy)
    np.testing.assert_array_equal(results, np.sort(x, -1))
    assert len(chunks) > 1
    outer, inner = x.shape[:2]
    wanted = -(-x.size // policy.chunk)
    assert {chunk[1] for chunk in chunks} == {inner if outer >= wanted else outer}


def patterns(dtype: str, length: int) -> dict[str, Array]:
    """Rows that a plan is made for, or may trip over."""
    numbers = np.random.default_rng(length)
    mixed = sample(dtype, length, seed=1)
    ascending = np.sort(mixed)
    values = sample(dtype, 40, seed=2)
    rows = {
        "ascending": ascending,
        "descending": ascending[::-1],
        "nearly": np.concatenate([ascending[:-2], mixed[:2]]),
        "constant": np.repeat(mixed[:1], length),
        "three": mixed[:3][numbers.integers(0, 3, length)],
        "few": values[:12][numbers.integers(0, 12, length)],
        "some": values[numbers.integers(0, 40, length)],
        # A value that the sample does not see.
        "all but one": np.concatenate([np.repeat(mixed[:1], length - 1), mixed[3:4]]),
        "nearly alike": np.where(numbers.random(length) < 0.98, mixed[7], mixed),
        "skewed": np.where(numbers.random(length) < 0.9, mixed[7], mixed),
    }
    if np.dtype(dtype).kind == "f":
        nans = mixed[np.isnan(mixed)]
        rows["nans"] = numbers.choice(nans, length)
        rows["mostly nans"] = np.where(numbers.random(length) < 0.9, numbers.choice(nans, length), mixed)
        rows["zeros"] = np.where(numbers.random(length) < 0.5, -0.0, 0.0).astype(dtype)
        rows["ascending zeros"] = np.concatenate([rows["zeros"], np.ones_like(rows["zeros"])])
        rows["sparse"] = np.where(numbers.random(length) < 0.9, np.zeros_like(mixed), mixed)
        rows["missing"] = np.where(numbers.random(length) < 0.6, nans[:1], np.nan_to_num(mixed))
        rows["zeros and numbers"] = np.where(numbers.random(length) < 0.3, rows["zeros"], np.abs(mixed))
    if np.dtype(dtype).kind in "Mm":
        rows["NaT first"] = np.sort(mixed.view("i8")).view(dtype)
    return rows


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_patterns(dtype: str, order: SortOrder) -> None:
    for length in (200, 1700, 5001):
        for row in patterns(dtype, length).values():
            check_sort(np.ascontiguousarray(row)[np.newaxis].copy(), order)
            check_argsort(np.ascontiguousarray(row)[np.newaxis].copy(), order)


@few_cases(pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if np.dtype(dtype).itemsize > 1])
def test_rows_that_are_sorted_at_sight(dtype: str, order: SortOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place and not, packed or spread, stably or by bits: those that are, and those that only seem to be so."""

    def always(*given: object) -> bool:
        return True

    monkeypatch.setattr(at_sight, "_are_counted_sooner", always)
    policy = attrs.evolve(SMALL, part_bytes_from=1 << 20, few_bytes_from=1 << 20, count_pairs_from=1 << 20)
    found, is_float = set[str](), np.dtype(dtype).kind == "f"
    rows = patterns(dtype, 5000)  # of fewer none is looked at
    rows["two"] = np.resize([5, 9, 5], 5000).astype(dtype)
    if is_float:
        rows["ascending by zeros"] = np.linspace(-1, 1, 5000).astype(dtype)
        rows["ascending by zeros"][2400:2500] = rows["zeros"][:100]
        for zeros in ("zeros", "by zeros"):
            rows[f"descending {zeros}"] = rows[f"ascending {zeros}"][::-1]
        rows["nans of both signs"] = np.copysign(np.nan, rows["zeros"])
    for name, row in rows.items():
        for stable in (False, True):
            expected = sorted_by_numpy(row, descending=order is SortOrder.DESCENDING)
            if not (stable and is_float):
                expected = in_order(row[np.newaxis], order)[0].view(dtype)
            for x in (np.array(row), np.repeat(row, 2)[::2]):
                before, path = x.tobytes(), SortPath(policy, NUMPY.spec("x", x), 0, order, stable)
                if sorted_at_sight(x, order, policy) is not None:
                    found.add(name)
                assert_same_bits(path.function(x), expected)
                assert x.tobytes() == before
                path.into((x,), (x,))
                assert_same_bits(np.array(x), expected)
    assert {"constant", "two", "three"} <= found
    assert found.isdisjoint({"few", "some", "skewed", "nearly"})
    if is_float:
        assert {"zeros", "nans of both signs"} <= found
    elif np.dtype(dtype).kind in "iu":
        assert {"ascending", "descending", "two"} <= found
    if dtype in ("f4", "f8"):
        ways = [f"{way} {zeros}" for way in ("ascending", "descending") for zeros in ("zeros", "by zeros")]
        assert {*ways} <= found


@once
def test_few_different_elements_are_numpys_where_it_sorts_them_fast() -> None:
    """Of 16 bits, where it has vector code."""
    for by_radix, dtype, length, is_at_sight in (
        (False, "i4", 40_000, False), (True, "i4", 40_000, True), (False, "f4", 9000, False),
        (True, "f8", 40_000, True), (False, "u2", 9000, False), (True, "u2", 9000, True),
    ):  # fmt: skip
        policy = attrs.evolve(HostSortPolicy(), by_radix=by_radix)
        for x in (np.ones(length, dtype), np.resize([1, 2], length).astype(dtype)):
            assert (sorted_at_sight(x, SortOrder.ASCENDING, policy) is not None) is is_at_sight
            path = SortPath(policy, NUMPY.spec("x", x), 0, SortOrder.ASCENDING, False)
            np.testing.assert_array_equal(path.function(x), np.sort(x))


@once
@pytest.mark.parametrize("by_radix", [False, True])
@pytest.mark.parametrize("dtype", ["i4", "f4", "u8", "f8"])
def test_a_handful_of_elements_is_counted_where_numpy_sorts_slowly(dtype: str, by_radix: bool) -> None:
    """More of them than are worth NumPy's loops."""
    policy = attrs.evolve(HostSortPolicy(), by_radix=by_radix)
    x = np.resize([3, 1, 7, 1, 5, 9, 1, 4, 1, 1], 40_000).astype(dtype)
    found = sorted_at_sight(x, SortOrder.ASCENDING, policy)
    assert (found is not None) is by_radix
    if found is not None:
        np.testing.assert_array_equal(found, np.sort(x))


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("shape", [(560,), (1, 900), (30_000,), (2, 50_000), (3, 5000), (700, 30)], ids=str)
def test_many_equal_elements_of_float16(shape: tuple[int, ...], stable: bool) -> None:
    """NumPy's own sort for AVX-512 leaves more than 512 of them out of order: mostly where the rarer lie together."""
    for different in (1, 2, 300):
        values = (np.random.default_rng(different).standard_normal(different) * 10).astype(np.float16)
        x = np.random.default_rng(1).choice(values, shape)
        x.reshape(-1)[200 : 200 + 21 // different] = [-np.inf, 1][different % 2]
        for axis in range(x.ndim):
            for descending in (False, True):
                expected = sorted_by_numpy(x, axis, descending)
                for policy in (HostSortPolicy(), HostSortPolicy(by_radix=False, serial_below=1 << 20), SMALL):
                    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
                    path = SortPath(policy, NUMPY.spec("x", x), axis, order, stable)
                    np.testing.assert_array_equal(path.function(x), expected)


@pytest.mark.parametrize("length", [1, 2, 300, 1501, 9000])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "u8", "M8[s]"])
def test_a_column_is_sorted_as_a_row_is(dtype: str, length: int) -> None:
    row = sample(dtype, length)
    column = np.repeat(row, 3).reshape(length, 1, 3)
    for order in SortOrder:
        descending = order is SortOrder.DESCENDING
        path = SortPath(SMALL, NUMPY.spec("x", row), 0, order, False)
        expected, places = path.function(row), gpusort.argsort(row, descending=descending)
        for x, axis in ((row.reshape(length, 1), 0), (row.reshape(1, length), 1), (column[..., 1:2], 0)):
            path = SortPath(SMALL, NUMPY.spec("x", x), axis, order, False)
            assert_same_bits(path.function(x), expected.reshape(x.shape))
            np.testing.assert_array_equal(gpusort.argsort(x, axis=axis, descending=descending), places.reshape(x.shape))
            for out in (np.empty_like(x), np.zeros((*x.shape, 2), x.dtype)[..., 1], given := x.copy()):
                path.into((given if out is given else x,), (out,))
                assert_same_bits(np.ascontiguousarray(out), expected.reshape(x.shape))


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ns]", ">M8[s]"])
def test_times_with_nat_are_sorted_as_integers(dtype: str) -> None:
    for shape in ((1,), (255,), (257,), (3000,), (10_000,), (100, 30), (100, 40), (40, 300)):
        x = np.random.default_rng(1).integers(-(10**6), 10**6, shape).astype(dtype)
        for nats in (0, 7):
            x.reshape(-1)[::7][:nats] = "NaT"
            for axis in (None, *range(x.ndim)):
                path, given = fast_path(Sort(axis), [NUMPY.spec("x", x)], HostSortPolicy()), x.copy()
                assert path is not None
                np.testing.assert_array_equal(path.function(x), np.sort(x, axis=axis))
                if axis is not None and path.into is not None:
                    path.into((given,), (given,))
                    np.testing.assert_array_equal(given, np.sort(x, axis=axis))


@few_cases(pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_zeros_and_nans_of_many_rows(dtype: str, order: SortOrder) -> None:
    for shape in ((40, 50), (3, 1000), (300, 3)):
        for row in patterns(dtype, shape[0] * shape[1]).values():
            check_sort(row[: shape[0] * shape[1]].reshape(shape).copy(), order)


@pytest.mark.parametrize("order", SortOrder)
def test_argsort_of_words_that_do_not_fit_beside_their_places(order: SortOrder) -> None:
    numbers = np.random.default_rng(3)
    count = 4000
    far = np.array([1 << 62, -(1 << 62)])
    for row in (
        np.concatenate([numbers.integers(0, 3000, count), far]),  # ranks that differ only in bits left out
        np.concatenate([np.arange(count)[::-1] // 3, far]),
        np.concatenate([1 + numbers.integers(0, count, count) * 2.0**-52, [1e300, -1e300, 0.0, -0.0, np.nan]]),
        np.concatenate([numbers.integers(0, 1 << 62, count) >> 40 << 40, far]),
    ):
        check_argsort(row[np.newaxis], order)
        check_argsort(row[np.newaxis, :900].copy(), order)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(DTYPES), st.sampled_from(list(SortOrder)), st.integers(1, 4), st.integers(0, 2000), st.data())
def test_any_bits(dtype: str, order: SortOrder, rows: int, length: int, data: st.DataObject) -> None:
    values = np.frombuffer(data.draw(st.binary(min_size=8, max_size=128)), np.uint8)
    bits = np.resize(values, rows * length * np.dtype(dtype).itemsize)
    elements: Array = (bits & 1).view(bool) if dtype == "?" else bits.view(dtype)
    x = np.random.default_rng(length).permutation(elements).reshape(rows, length)
    check_sort(x.copy(), order)
    check_argsort(x, order)


# -- promises ---------------------------------------------------------------------------------------------


@few_cases(pairs=False)  # and numbers of threads
@pytest.mark.parametrize("dtype", ["u4", "f8", "u2", "i1"])
def test_the_measured_policy_sorts_long_rows_too(dtype: str) -> None:
    check_sort(sample(dtype, (1, 1 << 21)), SortOrder.DESCENDING, CpuTarget())


def test_several_python_threads_may_sort_at_once() -> None:
    def work(seed: int) -> None:
        for dtype in ("u4", "f4", "i8", "u1"):
            check_sort(sample(dtype, (1, 6000), seed), SortOrder.ASCENDING)
            check_argsort(sample(dtype, (1, 6000), seed), SortOrder.ASCENDING)

    run_in_threads(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_sorts_too() -> None:
    x = sample("f4", (1, 6000))
    expected = in_order(x, SortOrder.ASCENDING).tobytes()
    check_sort(x.copy(), SortOrder.ASCENDING)  # the pool is at work here
    child = os.fork()
    if child == 0:
        sort_rows(x, x, SortOrder.ASCENDING, SMALL)
        os._exit(0 if x.tobytes() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("dtype", ["u4", "f8", "u1", "u2"])
def test_an_interrupted_sort_in_place_loses_no_element(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, at whichever piece of work it strikes."""
    from gpusort.targets.cpu.pool import Pool

    whole = Pool.run
    x = sample(dtype, (1, 6000))
    for strike in range(40):
        calls = 0

        def run(pool: Pool, work: object, count: int, strike: int = strike) -> None:
            def struck(piece: int) -> None:
                nonlocal calls
                calls += 1
                if calls == strike:
                    raise KeyboardInterrupt
                assert callable(work)
                work(piece)

            whole(pool, struck, count)

        monkeypatch.setattr(Pool, "run", run)
        found = x.copy()
        try:
            sort_rows(found, found, SortOrder.ASCENDING, SMALL)
        except KeyboardInterrupt:
            assert sorted(found.view(f"u{x.itemsize}")[0].tolist()) == sorted(x.view(f"u{x.itemsize}")[0].tolist())
        else:
            assert found.tobytes() == in_order(x, SortOrder.ASCENDING).tobytes()


@once
def test_a_policy_is_plain_data() -> None:
    assert attrs.evolve(HostSortPolicy(), serial_below=7).serial_below == 7
    assert CpuTarget().policy == HostSortPolicy()


@once
@pytest.mark.parametrize(("name", "least", "most"), [("block", 1, 1 << 30), ("some", 0, 1 << 62)])
def test_numbers_of_a_policy_fit_64_bits(name: str, least: int, most: int) -> None:
    """Counts even where two are multiplied."""
    policy = cast("Callable[..., HostSortPolicy]", HostSortPolicy)
    for number in (least, most):
        assert getattr(policy(**{name: number}), name) == number
    for number in (least - 1, most + 1):
        with pytest.raises(InvalidArgumentError, match=f"{name}: expected"):
            policy(**{name: number})


# -- new processes ----------------------------------------------------------------------------------------

_NEW = """
import sys
import numpy as np
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu.host.partition import part_in_turn
from gpusort.targets.cpu.host.at_sight import sorted_at_sight
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.types.indices import SortOrder
def sort(length, policy):
    x = np.random.default_rng(1).integers(0, 1 << 32, (1, length), dtype=np.uint32)
    found = np.empty_like(x)
    sort_rows(x, found, SortOrder.ASCENDING, policy)
    assert (found == np.sort(x)).all()
"""


@once
def test_no_compiler_is_loaded_for_short_arrays() -> None:
    code = "sort(HostSortPolicy().radix_from - 1, HostSortPolicy()); print('llvmlite' in sys.modules)"
    assert printed(_NEW + code).split() == ["False"]


_FORCED = """
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host.partition import part_in_turn
background.in_caller = True
sort(4000, HostSortPolicy(serial_below=1000, part_bytes_from=4000, by_radix=False))
print(part_in_turn(np.dtype(np.uint32)).was_kept, part_in_turn.cache_info().misses, "numba" in sys.modules)
"""


@once
def test_a_second_process_finds_the_loops_compiled(tmp_path: Path) -> None:
    for was_kept in ("False", "True"):
        found = printed(_NEW + _FORCED, GPUSORT_CACHE_DIR=str(tmp_path)).split()
        assert found == [was_kept, "1", "False"]


@few_cases(can=lambda case: machine().compresses or not case["compresses"], pairs=False)
@pytest.mark.parametrize("dtype", ["u4", "i4", "f4", "u8", "i8", "f8"])
@pytest.mark.parametrize("compresses", [True, False])
def test_rows_are_parted_with_compress_instructions_and_without(
    dtype: str, compresses: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = machine()
    if compresses and not here.compresses:
        pytest.skip("this processor has none")
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Machine, "compresses", compresses)
    monkeypatch.setattr(loading, "loaded", {})
    part_in_turn.cache_clear()
    try:
        for length in (3, 4000, 5003):
            x = sample(dtype, (1, length), seed=length)
            policy = attrs.evolve(SMALL, by_radix=False, part_bytes_from=1, block=100)
            check_sort(x, SortOrder.ASCENDING, CpuTarget(policy))
        assert part_in_turn.cache_info().misses == 1
    finally:
        part_in_turn.cache_clear()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_long_columns_of_every_other_float_descend(dtype: str) -> None:
    """NumPy's negative of such is wrong, where both arrays have strides."""
    x = np.repeat(np.random.default_rng(3).standard_normal((40_000, 2)).astype(dtype), 2, axis=-1)[..., ::2]
    path = SortPath(HostSortPolicy(), NUMPY.spec("x", x), 0, SortOrder.DESCENDING, False)
    out = np.empty(x.shape, dtype)
    path.into((x,), (out,))
    np.testing.assert_array_equal(out, np.sort(x, axis=0)[::-1])
