"""Reductions of packed arrays in which few neighbours lie together: regrouped, with the results of NumPy's loops."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.operations.reduce import Reducer
from gpusort.targets.cpu.host.regrouped import Regrouped
from tests.reference import sample

Array = npt.NDArray[Any]
NAMES = ("sum", "prod", "min", "max", "any", "all")
# What is reduced, and along which axes: lines of up to eight elements; such lines that stay, with lines left over and
# without, in front of others, and between them; images, whose pixels are reduced.
CASES = (
    ((300, 3), (1,)), ((321, 8), (1,)), ((10, 50, 5), (2,)), ((2000, 1, 2), (1, 2)),
    ((1000, 3), (0,)), ((1021, 7), (0,)), ((4096, 4), (0,)), ((5, 700, 9), (1,)), ((33, 64, 6), (0, 1)),
    ((16, 512, 32), (1,)), ((515, 64), (0,)), ((2, 900, 1, 11), (0, 1, 2)),
)  # fmt: skip


def values(name: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """Of which sums and products are exact."""
    random = np.random.default_rng(sum(shape))
    if name == "prod":
        return random.choice([-1, 1], shape).astype(dtype)
    if name in ("any", "all"):
        return (random.random(shape) < (0.002 if name == "any" else 0.998)).astype(dtype)
    return random.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("name", NAMES)
def test_they_are_as_numpys(name: str, dtype: str) -> None:
    for shape, axes in CASES:
        x = values(name, dtype, shape)
        for keepdims in (False, True):
            along = axes[0] if len(axes) == 1 else axes
            for y in (x, np.asfortranarray(x), x.transpose(range(x.ndim)[::-1]), *with_gaps(x)):
                gone = along if y.shape == shape else tuple(x.ndim - 1 - axis for axis in axes)
                found = getattr(gpusort, name)(y, axis=gone, keepdims=keepdims)
                expected = getattr(np, name)(y, axis=gone, keepdims=keepdims)
                np.testing.assert_array_equal(found, expected, err_msg=f"{shape} {axes}", strict=True)


def with_gaps(x: Array) -> list[Array]:
    """The same elements between others: in the latter half of longer lines, every second one, and these backwards."""
    twice = [2 * size for size in x.shape]
    latter = np.ones(twice, x.dtype)[tuple(slice(size, None) for size in x.shape)]
    found = [
        latter,
        np.ones(twice, x.dtype, "F")[(np.s_[::2],) * x.ndim],
        np.ones(twice, x.dtype)[(np.s_[::-2],) * x.ndim],
    ]
    for some in found:
        some[...] = x
    return found


# Where lines are reduced, or what is reduced stands beside them; not where they are long, few, or stay side by side.
@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((300, 3), (1,), [True, False, True]), ((1021, 7), (0,), [True, False, True]),
        ((40, 50, 5), (0, 1), [True, False, True]), ((3, 700, 6), (1,), [True, True, True]),
        ((400, 6, 3), (0,), [False] * 3), ((300, 9), (0,), [False] * 3), ((100, 3), (1,), [False] * 3),
        ((300, 3), (0, 1), [False] * 3),
    ],
)  # fmt: skip
def test_these_are_regrouped_with_gaps(shape: tuple[int, ...], axes: tuple[int, ...], expected: list[bool]) -> None:
    found = []
    for y in with_gaps(np.ones(shape, np.float32)):
        made = Regrouped.of(Reducer.SUM, y.dtype, axes, y.ndim)
        assert made is not None
        found.append(made(y) is not None)
    assert found == expected


def test_these_are_regrouped() -> None:
    for shape, axes in CASES:
        for order in ("C", "F"):
            x: Array = np.ones(shape, np.float32, order="C" if order == "C" else "F")
            lies = x if order == "C" else x.transpose(range(x.ndim)[::-1]).copy(order="F")
            gone = axes if order == "C" else tuple(sorted(x.ndim - 1 - axis for axis in axes))
            made = Regrouped.of(Reducer.SUM, lies.dtype, gone, lies.ndim)
            assert made is not None
            assert made(lies) is not None, (shape, axes, order)


def test_long_products_of_floats() -> None:
    for count in (8191, 8192, 8193, 100_003):
        for dtype in ("f4", "f8"):
            x = values("prod", dtype, (count,))
            x[count // 2] = 3
            assert gpusort.prod(x) == np.prod(x)
            assert gpusort.prod(np.stack([x, x]), axis=1).tolist() == [np.prod(x)] * 2
            x[-1] = np.nan
            assert np.isnan(gpusort.prod(x))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_rows_of_floats(dtype: str) -> None:
    for shape in ((1000, 16), (300, 300), (40, 1000), (1 << 16,), (3, 50_001), (1, 100_003), (7, 20, 100)):
        axis = len(shape) - 1
        made = Regrouped.of(Reducer.SUM, np.dtype(dtype), (axis,), len(shape))
        x = np.random.default_rng(1).integers(-100, 100, shape).astype(dtype)
        assert made is not None
        assert (made(x) is None) == (dtype == "f8" and shape[-1] > 1024)
        np.testing.assert_array_equal(gpusort.sum(x, axis=axis), np.sum(x, axis=axis), strict=True)
        np.testing.assert_array_equal(gpusort.sum(x.T, axis=0), np.sum(x.T, axis=0), strict=True)
        y = np.random.default_rng(1).standard_normal(shape).astype(dtype)
        off = np.abs(gpusort.sum(y, axis=axis) - y.astype("f8").sum(axis))
        assert (off <= 4 * float(np.finfo(dtype).eps) * np.abs(y).astype("f8").sum(axis)).all()
        y[...] = -0.0
        assert not np.signbit(gpusort.sum(y, axis=axis)).any()
        for special in (np.inf, np.nan, -np.inf):
            y.reshape(-1)[-1] = special
            np.testing.assert_array_equal(gpusort.sum(y, axis=axis), np.sum(y, axis=axis))


def test_zeros_nans_and_infinities() -> None:
    for shape, axis in (((300, 3), 1), ((1000, 3), 0)):
        x: Array = np.full(shape, -0.0, np.float32)
        assert not np.signbit(gpusort.sum(x, axis=axis)).any()
        assert np.signbit(gpusort.prod(x, axis=axis)).all() == (shape[axis] % 2 == 1)
        y = sample("f4", shape)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for name in NAMES:
                found = getattr(gpusort, name)(y, axis=axis)
                with np.errstate(all="ignore"):
                    expected = getattr(np, name)(y, axis=axis)
                # Of finite numbers, sums may differ in their last bits.
                is_special = ~np.isfinite(expected) if name in ("sum", "prod") else np.ones(expected.shape, bool)
                np.testing.assert_array_equal(found[is_special], expected[is_special], err_msg=name)


def test_a_long_column_of_floats_is_added_more_exactly_than_by_numpy() -> None:
    """NumPy adds one row after the other."""
    x = np.random.default_rng(1).random((100_000, 3)).astype(np.float32)
    exact = x.astype(np.float64).sum(0)
    ours, numpys = (np.abs(found - exact).max() for found in (gpusort.sum(x, axis=0), x.sum(0)))
    assert ours < numpys / 4


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f4", "f8", "f2", ">i4"])
def test_cumulative_sums_along_a_short_axis(dtype: str) -> None:
    """In the order of NumPy's additions: bit for bit, also of floats; of any layout, and of more than one turn."""
    for shape, axis in (((300, 3), 1), ((8, 400), 0), ((50, 7, 40), 1), ((100_000, 2), 1), ((3, 100, 900), 0)):
        x = sample(dtype, shape) if dtype != "?" else np.arange(np.prod(shape)).reshape(shape) % 3 > 0
        for y in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, -1)[..., ::2]):
            found = gpusort.cumsum(y, axis=axis)
            with np.errstate(all="ignore"):
                expected = np.cumsum(y, axis=axis, dtype="f4" if dtype == "f2" else None)
                expected = expected.astype("f2") if dtype == "f2" else expected
            np.testing.assert_array_equal(found, expected, err_msg=f"{shape} {axis}")
            assert (found.dtype, found.shape) == (expected.dtype.newbyteorder("="), expected.shape)
