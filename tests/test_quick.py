"""The short ways for plain arrays give what the long ways give."""

from __future__ import annotations

import numpy as np
import pytest

import gpusort
from gpusort.targets.cuda.compile import occupancies
from gpusort.types.monoids import Sum
from tests.reference import DTYPES, assert_same_bits, sample, sorted_by_numpy


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
