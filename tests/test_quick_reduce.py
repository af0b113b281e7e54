"""Reductions of large plain arrays on the CPU, which take ways of their own, against NumPy's."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpusort

Array = npt.NDArray[Any]
BLOCK, COMPILED_BYTES = 4096, 1 << 21
INTEGERS = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def lengths(dtype: str) -> list[int]:
    """Around the edges of blocks and of the size from which sums are compiled, and long enough for threads."""
    least = COMPILED_BYTES // np.dtype(dtype).itemsize
    shared = (33 << 20) // np.dtype(dtype).itemsize
    return [least - 1, least, least + 1, least + BLOCK - 1, least + BLOCK + 1, shared + 17]


def random(dtype: str, length: int) -> Array:
    rng = np.random.default_rng(length)
    if np.dtype(dtype).kind == "f":
        return (rng.random(length) - 0.3).astype(dtype)
    if dtype == "?":
        return rng.integers(0, 2, length).astype(dtype)
    return rng.integers(0, 256, length * np.dtype(dtype).itemsize, np.uint8).view(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_of_integers_are_numpys(dtype: str) -> None:
    for length in lengths(dtype):
        x = random(dtype, length)
        found, expected = gpusort.sum(x), np.sum(x)
        assert found == expected
        assert np.asarray(found).dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_floats_are_close(dtype: str) -> None:
    for length in lengths(dtype):
        x = random(dtype, length)
        exact = float(sum(map(Fraction, x[: 1 << 14].tolist()))) + float(x[1 << 14 :].astype("f8").sum())
        scale = float(np.abs(x).astype("f8").sum())
        found = gpusort.sum(x)
        assert np.asarray(found).dtype == dtype
        assert abs(float(found) - exact) <= 40 * float(np.finfo(dtype).eps) * scale / 8


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_ill_conditioned_sum_is_no_worse_than_numpys_pairwise_bound(dtype: str) -> None:
    half = random(dtype, 1 << 18)
    x = np.concatenate([half, -half])
    np.random.default_rng(3).shuffle(x)
    bound = np.log2(x.size) * float(np.finfo(dtype).eps) * float(np.abs(x).astype("f8").sum())
    assert abs(float(gpusort.sum(x))) <= bound


def test_special_values_add_up_as_in_numpy() -> None:
    x = np.full(COMPILED_BYTES // 4 + 5, -0.0, np.float32)
    assert not np.signbit(gpusort.sum(x))
    for values in ([np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [np.finfo("f4").max] * 2):
        y = np.zeros_like(x)
        y[-len(values) :] = values
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(gpusort.sum(y), np.sum(y))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_a_sum_does_not_depend_on_the_threads(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(dtype, (34 << 20) // np.dtype(dtype).itemsize + 3)
    found: set[bytes] = set()
    for threads in ("1", "2", "3", "8"):
        monkeypatch.setenv("GPUSORT_THREADS", threads)
        found.add(np.asarray(gpusort.sum(x)).tobytes())
    assert len(found) == 1


def test_views_of_several_dimensions_and_read_only_arrays() -> None:
    x = random("i4", 1 << 18)
    grid = x.reshape(512, 512)
    x.flags.writeable = False
    assert gpusort.sum(x) == gpusort.sum(grid) == np.sum(x)
    assert gpusort.sum(x[1:]) == np.sum(x[1:])
    assert gpusort.sum(x[::2]) == np.sum(x[::2])
    assert gpusort.sum(x.astype(">i4")) == np.sum(x)


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8"])
def test_extrema_of_shared_arrays(dtype: str, name: str) -> None:
    """Two equal extremes, and a NaN, in places that belong to different threads."""
    length = (1 << 24) // np.dtype(dtype).itemsize + 77
    x = random(dtype, length)
    ours, numpys = getattr(gpusort, name), getattr(np, name)
    extreme = getattr(np, name.removeprefix("arg"))(x)
    for places in ((length - 1,), (length - 1, length // 3), (0, length // 2)):
        y = x.copy()
        y[list(places)] = extreme
        np.testing.assert_array_equal(ours(y), numpys(y))
        if np.dtype(dtype).kind == "f":
            y[list(places)] = np.nan
            np.testing.assert_array_equal(ours(y), numpys(y))
