"""The short ways for plain arrays give what the long ways give."""

from __future__ import annotations

import numpy as np
import pytest

import gpusort
from gpusort.targets.cuda.compile import occupancies
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
