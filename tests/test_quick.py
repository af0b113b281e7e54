"""The short ways for plain arrays give what the long ways give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.targets.cuda.compile import occupancies
from gpusort.types.monoids import Sum
from tests.covering import few_cases
from tests.reference import DTYPES, assert_same_bits, sample, sorted_by_numpy


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_short_and_long_ways_to_sort(dtype: str, descending: bool) -> None:
    for length in (0, 1, 2, 1000):
        x = sample(dtype, length, seed=length)
        short = gpusort.sort(x, descending=descending)
        long = gpusort.sort(x, descending=descending, algorithm=gpusort.Bitonic())
        assert_same_bits(short, long)
        assert short is not x
        np.testing.assert_array_equal(short, sorted_by_numpy(x, descending=descending))


def test_occupancies_of_a_multiprocessor() -> None:
    """384 invocations: 59 registers let two workgroups in, 56 three, if memory allows."""
    assert list(occupancies(59, 384, 50 << 10)) == [4, 3]
    assert list(occupancies(56, 384, 70 << 10)) == []
    assert list(occupancies(80, 384, 60 << 10)) == [3]
    assert list(occupancies(255, 1024, 1 << 10)) == []


@pytest.mark.parametrize("dtype", ["u1", "f2", "u4", "f4", "i8", "f8", "M8[s]"])
def test_in_place_it_is_the_same_array(dtype: str) -> None:
    for length in (0, 1, 2, 1000, 70_001):
        for descending in (False, True):
            x = sample(dtype, length, seed=length)
            expected = gpusort.sort(x, descending=descending)
            gpusort.sort_inplace(x, descending=descending)
            assert x.tobytes() == expected.tobytes()
    read_only = sample("u4", 10)
    read_only.flags.writeable = False
    with pytest.raises(gpusort.InvalidArgumentError, match="read-only"):
        gpusort.sort_inplace(read_only)


LENGTHS = (0, 1, 2, 10, 1000, 1023, 1024, 1025, 40_000)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "u4", "f4", ">f4", "i8", ">i8", "f8", "M8[s]", ">M8[s]"])
@pytest.mark.parametrize("descending", [False, True])
def test_a_call_that_comes_again_takes_the_arrays_it_is_given(dtype: str, descending: bool) -> None:
    """Sorted anew, into another array, into one that overlaps, and in place; what does not fit is refused each time."""
    for length in LENGTHS:
        expected = sorted_by_numpy(sample(dtype, length, seed=length), descending=descending)
        for _ in range(2):
            x = sample(dtype, length, seed=length)
            whole, moved = np.empty((2, length + 1), dtype)
            out = np.empty_like(x)
            assert gpusort.sort(x, descending=descending, out=out) is out
            np.testing.assert_array_equal(out, expected)
            assert out.dtype == gpusort.sort(x, descending=descending).dtype == x.dtype
            gpusort.sort(x, descending=descending, out=whole[1:])
            np.testing.assert_array_equal(whole[1:], expected)
            moved[:-1] = x
            gpusort.sort(moved[:-1], descending=descending, out=moved[1:])
            np.testing.assert_array_equal(moved[1:], expected)
            gpusort.sort_inplace(x, descending=descending)
            np.testing.assert_array_equal(x, expected)
    read_only = sample(dtype, 10)
    read_only.flags.writeable = False
    with pytest.raises(gpusort.InvalidArgumentError, match="read-only"):
        gpusort.sort(sample(dtype, 10), descending=descending, out=read_only)
    with pytest.raises(gpusort.InvalidArgumentError, match="shape"):
        gpusort.sort(sample(dtype, 10), descending=descending, out=sample(dtype, 11))
    with pytest.raises(gpusort.InvalidArgumentError, match="dtype"):
        gpusort.sort(sample(dtype, 10), descending=descending, out=np.empty(10, "c8"))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "u4", "i8", "f8", "M8[s]"])
@pytest.mark.parametrize("length", [5, 17, 700, 1025])
def test_a_row_and_its_result_overlap_in_steps_of_two_lengths(dtype: str, length: int) -> None:
    """Where NumPy's own copy of one to the other repeats elements."""
    for step, other in ((1, 2), (2, 1), (3, 2)):
        for ahead in (-length, -1, 0, 1, length // 2, length):
            memory = sample(dtype, 8 * length)
            x = memory[2 * length :][: step * length : step]
            out = memory[2 * length + ahead :][: other * length : other]
            expected = sorted_by_numpy(x.copy())
            gpusort.sort(x, out=out)
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "f8"])
@pytest.mark.parametrize("shape", [(10, 10), (1, 1024), (1025, 1), (3, 400)])
def test_rows_whose_floats_numpy_orders_otherwise(dtype: str, shape: tuple[int, int]) -> None:
    for value in (-0.0, np.nan, -np.nan, np.inf):
        x = np.ones(shape, dtype)
        x[-1, -1] = value
        x[0, 0] = 0.0
        for axis in (0, 1):
            for order in (x, x.T):
                short = gpusort.sort(order, axis=axis)
                assert_same_bits(short, gpusort.sort(order, axis=axis, algorithm=gpusort.Bitonic()))


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("shape", [0, 1, 2, 1000, 1 << 15, (1 << 15) + 1, (3, 0), (10, 20), (4, 5, 6)])
def test_sums_of_all_before(dtype: str, shape: int | tuple[int, ...]) -> None:
    """Short ones by NumPy's sums, long ones by kernels: both give what one after the other adds up to."""
    x = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    monoid = Sum(gpusort.number_for(x.dtype))
    for axis in range(-1, x.ndim):
        for array in (x, np.asfortranarray(x), x[::-1]):
            found = gpusort.scan(array, monoid, axis=axis, exclusive=True)
            after = np.cumsum(array, axis=axis, dtype=found.dtype)
            np.testing.assert_array_equal(found, after - array)
            assert found.dtype == gpusort.scan(array, monoid, axis=axis).dtype
    zeros = np.full(8, -0.0, "f8")
    first = gpusort.scan(zeros, Sum(gpusort.number_for("f8")), exclusive=True)
    assert not np.signbit(first).any()


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">M8[s]"])
@pytest.mark.parametrize("length", [10, 5000])
def test_merges_keep_the_byte_order(dtype: str, length: int) -> None:
    x, y = gpusort.sort(sample(dtype, length, seed=1)), gpusort.sort(sample(dtype, length, seed=2))
    expected = gpusort.sort(np.concatenate((x, y)).astype(dtype))
    for _ in range(2):
        merged = gpusort.merge(x, y)
        assert_same_bits(merged, expected)
        keys, values = gpusort.merge_by_key(x, np.arange(length, dtype=">i4"), y, np.arange(length, dtype=">i4"))
        assert_same_bits(keys, expected)
        assert (merged.dtype, values.dtype) == (np.dtype(dtype), np.dtype(">i4"))


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("length", [10, 639, 640, 641, 900, 1024, 1025])
@pytest.mark.parametrize("descending", [False, True])
def test_merges_of_zeros_and_nans(dtype: str, length: int, descending: bool) -> None:
    """Wherever they are looked for: among few by a count, among many in what is sorted."""
    specials = np.array([0.0, -0.0, np.nan, -np.nan], dtype)
    for special in (*specials[:, np.newaxis], specials[:2], specials[2:], specials):
        x = sample(dtype, length, seed=length)
        x = np.where(np.isnan(x) | (x == 0), np.array(1, dtype), x)
        x[: special.size] = special
        expected = gpusort.sort(x, descending=descending, algorithm=gpusort.Bitonic())
        for _ in range(2):
            assert_same_bits(gpusort.sort(x, descending=descending), expected)
            halves = [gpusort.sort(half, descending=descending) for half in np.array_split(x, 2)]
            assert_same_bits(gpusort.merge(*halves, descending=descending), expected)
            own = x.copy()
            gpusort.sort_inplace(own, descending=descending)
            assert_same_bits(own, expected)


@pytest.mark.parametrize("descending", [False, True])
def test_long_arrays_that_meet_in_zeros_of_both_signs(descending: bool) -> None:
    """One does not lie behind the other then: the last zero of the first comes behind the first one of the second."""
    x = np.arange(-20_000, 20_000, dtype=np.float32)
    x[19_999], x[20_000] = 0.0, -0.0
    halves = (x[:19_999:-1], x[19_999::-1]) if descending else (x[:20_000], x[20_000:])
    assert_same_bits(gpusort.merge(*halves, descending=descending), gpusort.sort(x, descending=descending))


def test_bools_of_any_bytes_descend() -> None:
    x = np.arange(256, dtype=np.uint8).view(np.bool_)
    expected = np.arange(256, dtype=np.uint8)[::-1]
    assert gpusort.sort(x, descending=True).tobytes() == expected.tobytes()
    assert gpusort.merge(x[:100][::-1], x[100:][::-1], descending=True).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(gpusort.argsort(x, descending=True), expected)


def test_a_writer_that_is_known_asks_what_it_writes_to() -> None:
    """A warm call into an array that is read-only, of another shape or dtype, or whose elements share memory."""
    x = np.array([3, 1, 2], np.int32)
    for out in (np.empty(3, np.int32), np.empty(6, np.int32)[::2], x):
        for _ in range(3):
            assert gpusort.sort(x, out=out) is out
            np.testing.assert_array_equal(out, [1, 2, 3])
    fixed = np.empty(3, np.int32)
    fixed.flags.writeable = False
    shared = np.lib.stride_tricks.as_strided(np.empty(1, np.int32), (3,), (0,))
    wrong: list[Any] = [fixed, shared, np.empty(4, np.int32), np.empty(3, np.int64), np.empty((1, 3), np.int32)]
    for out in wrong:
        with pytest.raises(gpusort.InvalidArgumentError, match="out: expected"):
            gpusort.sort(x, out=out)
    for array in (fixed, shared):
        with pytest.raises(gpusort.InvalidArgumentError, match="expected an array"):
            gpusort.sort_inplace(array)


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "f8", ">f8"])
def test_cumulative_sums_are_silent(dtype: str) -> None:
    x = np.array([np.finfo(dtype).max] * 3 + [-np.inf], dtype)
    with np.errstate(all="raise"):
        for axis in (0, None):
            found = gpusort.cumsum(x, axis=axis)
            assert found.dtype == np.dtype(dtype).newbyteorder("=")
            last = -np.inf if dtype == "f2" else np.nan  # whose sums are made in 32 bits
            np.testing.assert_array_equal(found[1:], [np.inf, np.inf, last])
