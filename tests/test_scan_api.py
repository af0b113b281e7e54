"""`scan` and `cumsum`: NumPy's answers, dtypes and kinds of arrays, on every target; any monoid; mistakes by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.types.elements import dtype_of
from gpusort.types.monoids import Maximum, Product, Sum
from gpusort.types.scalars import F32, U32, Bool
from tests.covering import few_cases
from tests.reference import sample

Array = npt.NDArray[Any]
TILE = gpusort.ScanPolicy().tile
NUMBERS = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">i4", ">f4")


# Only what is loaded differs for the others. On `wgsl`, where the driver takes seconds for each kernel, two do: of half
# a word, and of two.
SEVERAL_TILES = ("?", "u1", "i2", "i4", "u8", "f2", "f4", "f8")
FEW = ("f2", "u8")


def whole(dtype: str, length: int) -> Array:
    """Numbers whose sums are exact in any order; in float16, NumPy's own as far as 2048."""
    return np.random.default_rng(length).integers(0, 2, length).astype(dtype)


def is_quick(case: Mapping[str, object]) -> bool:
    """Also: what is not refused, as is tested below."""
    target, dtype, length = str(case["target"]), str(case["dtype"]), cast(int, case["length"])
    most = {"python": 33, "simulator": TILE + 1}.get(target, 3 * TILE + 5)
    several = FEW if target == "wgsl" else SEVERAL_TILES
    return length <= (most if dtype in several else 33) and (target, dtype) != ("wgsl", "f8")


@few_cases(can=is_quick, pairs=False)
@pytest.mark.parametrize("length", [0, 1, 2, 33, 1500, TILE - 1, TILE, TILE + 1, 3 * TILE + 5])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_cumsum_is_numpys(target: str, dtype: str, length: int) -> None:
    if target == "wgsl" and dtype == "f8":
        pytest.skip("refused, as tested below")
    x = whole(dtype, length)
    found = gpusort.cumsum(x, target=target)
    assert found.dtype == np.cumsum(x).dtype
    exact = np.cumsum(x, dtype="f4").astype("f2") if dtype == "f2" and length > 2048 else np.cumsum(x)
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("dtype", ["m8[s]", ">m8[us]"])
def test_cumsum_of_times(target: str, dtype: str) -> None:
    x = np.arange(40).astype(dtype)
    np.testing.assert_array_equal(gpusort.cumsum(x, target=target), np.cumsum(x))
    x[[20, 30]] = "NaT"
    found = gpusort.cumsum(x, target=target)
    assert found.dtype == np.cumsum(x).dtype
    np.testing.assert_array_equal(found, np.cumsum(x))


def test_cumsum_of_integers_wraps(target: str) -> None:
    x = sample("i8", 40)
    np.testing.assert_array_equal(gpusort.cumsum(x, target=target), np.cumsum(x))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_long_sums_of_floats_are_close(dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal(1 << 18).astype(dtype)
    found = gpusort.cumsum(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.cumsum(x, dtype="f8"), atol=1e-2 if dtype == "f4" else 1e-9)


def test_cumsum_flattens_and_takes_lists_and_strides(target: str) -> None:
    grid = np.arange(12, dtype="i4").reshape(3, 4)
    for x in (grid, grid.T, grid[::-1, ::2], [[1, 2], [3, 4]], 5):
        np.testing.assert_array_equal(gpusort.cumsum(cast(Array, x), target=target), np.cumsum(x))


@few_cases(pairs=False)
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_maxima_and_products(target: str, exclusive: bool) -> None:
    x = sample("u4", 20)
    maxima = gpusort.scan(x, Maximum(gpusort.key_for("u4")), exclusive=exclusive, target=target)
    expected = np.maximum.accumulate(x)
    np.testing.assert_array_equal(maxima, np.concatenate([[0], expected[:-1]]) if exclusive else expected)
    products = gpusort.scan(x, Product(gpusort.number_for("u4")), exclusive=exclusive, target=target)
    wrapped = np.cumprod(x, dtype="u8")
    np.testing.assert_array_equal(products, np.concatenate([[1], wrapped[:-1]]) if exclusive else wrapped)


@few_cases(pairs=False)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["f4", "i2", "m8[s]", "f2"])
def test_along_an_axis(target: str, dtype: str, axis: int) -> None:
    x = np.random.default_rng(1).integers(0, 9, (3, 5, 7)).astype(dtype)
    if dtype.startswith("m"):
        x[1, 2, 3] = x[2, 0, 0] = "NaT"
    found = gpusort.cumsum(x, axis=axis, target=target)
    assert found.dtype == np.cumsum(x, axis=axis).dtype
    np.testing.assert_array_equal(found, np.cumsum(x, axis=axis))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_maxima_along_an_axis(target: str, axis: int) -> None:
    x = sample("u4", 105).reshape(3, 5, 7)
    maxima = gpusort.scan(x, Maximum(gpusort.key_for("u4")), axis=axis, target=target)
    np.testing.assert_array_equal(maxima, np.maximum.accumulate(x, axis))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3), (2, 3, 0)], ids=str)
def test_arrays_of_nothing(target: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, "i4")
    for axis in (None, *range(len(shape))):
        found = gpusort.cumsum(x, axis=axis, target=target)
        assert (found.shape, found.dtype) == (np.cumsum(x, axis=axis).shape, np.cumsum(x, axis=axis).dtype)
    empty = cast(Array, gpusort.scan(x, Sum(gpusort.number_for("i4")), axis=0, target=target))
    assert empty.shape == shape


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i4"])
@pytest.mark.parametrize("shape", [(1 << 22,), (3, 1 << 21), (1 << 12, 1 << 8), (1 << 10, 1 << 12)], ids=str)
def test_long_work_on_the_host(dtype: str, shape: tuple[int, ...]) -> None:
    """Long enough for threads."""
    x = np.random.default_rng(2).integers(0, 2, shape).astype(dtype)
    for axis in (-1, 0):
        np.testing.assert_array_equal(gpusort.cumsum(x, axis=axis), np.cumsum(x, axis=axis))


def test_an_axis_of_a_single_number() -> None:
    assert gpusort.cumsum(np.array(5), axis=0).tolist() == [5]


@attrs.frozen
class Balance:
    """What is on an account, and the least that ever was."""

    now: F32
    least: F32


@attrs.frozen
class Account:
    """Payments in their order, which matters."""

    element: type[F32] = F32
    state: type[Balance] = Balance

    def identity(self) -> Balance:
        return Balance(F32(0.0), F32(0.0))

    def lift(self, element: F32, index: U32) -> Balance:
        return Balance(element, element if element < F32(0.0) else F32(0.0))

    def combine(self, a: Balance, b: Balance) -> Balance:
        after = a.now + b.least
        return Balance(a.now + b.now, after if after < a.least else a.least)


@pytest.mark.parametrize("length", [0, 1, 10, TILE + 7])
def test_a_monoid_of_several_fields(target: str, length: int) -> None:
    if target == "python":
        length = min(length, 10)
    x = np.random.default_rng(length).integers(-9, 10, length).astype("f4")
    found = cast(Array, gpusort.scan(x, Account(), target=target))
    assert found.dtype == dtype_of(Balance)
    sums = np.cumsum(x)
    np.testing.assert_array_equal(found["now"], sums)
    np.testing.assert_array_equal(found["least"], np.minimum(np.minimum.accumulate(sums), 0) if length else sums)


@attrs.frozen
class Greatest:
    """Of what was seen, if anything was. Its least field has one byte: so has each unit of its memory."""

    value: F32
    index: U32
    seen: Bool


@attrs.frozen
class FirstGreatest:
    element: type[F32] = F32
    state: type[Greatest] = Greatest

    def identity(self) -> Greatest:
        return Greatest(F32(0.0), U32(0), Bool(False))

    def lift(self, element: F32, index: U32) -> Greatest:
        return Greatest(element, index, Bool(True))

    def combine(self, a: Greatest, b: Greatest) -> Greatest:
        return b if b.seen and (not a.seen or b.value > a.value) else a


@pytest.mark.parametrize("length", [10, 1000, 5000])
def test_fields_of_a_byte(target: str, length: int) -> None:
    """WGSL has a word of workgroup memory for each unit: tiles must fit all the same."""
    if target == "python":
        length = min(length, 10)
    x = np.random.default_rng(length).permutation(length).astype("f4")
    found = cast(Array, gpusort.scan(x, FirstGreatest(), target=target))
    maxima = np.maximum.accumulate(x)
    np.testing.assert_array_equal(found["value"], maxima)
    np.testing.assert_array_equal(found["index"], np.argsort(x)[maxima.astype(int)])
    assert found["seen"].all()


@pytest.mark.parametrize("axis", [0, 1])
def test_several_fields_along_an_axis(target: str, axis: int) -> None:
    x = np.random.default_rng(3).integers(-9, 10, (4, 6)).astype("f4")
    found = cast(Array, gpusort.scan(x, Account(), axis=axis, target=target))
    assert found.shape == x.shape
    np.testing.assert_array_equal(found["now"], np.cumsum(x, axis=axis))


def test_the_source_stays_as_it_was(target: str) -> None:
    x = sample("i4", 30)
    before = x.copy()
    gpusort.cumsum(x[::-1], target=target)
    gpusort.scan(x, Sum(gpusort.number_for("i4")), target=target)
    np.testing.assert_array_equal(x, before)


def test_mistakes_are_named() -> None:
    adding = Sum(gpusort.number_for("f4"))
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        gpusort.scan(np.zeros((2, 3), "f4"), adding, axis=2)
    with pytest.raises(np.exceptions.AxisError):
        gpusort.cumsum(np.zeros((2, 3), "f4"), axis=-3)
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^axis: expected an int"):
        gpusort.cumsum(np.zeros(3, "f4"), axis=cast(int, "x"))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: expected dtype float32, as Sum takes, found int32"):
        gpusort.scan(np.zeros(3, "i4"), adding)
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: cannot add or multiply elements of dtype datetime64"):
        gpusort.cumsum(np.zeros(3, "M8[s]"))


def test_a_target_without_float64_says_so(target: str) -> None:
    if target != "wgsl":
        pytest.skip("has float64")
    with pytest.raises(gpusort.CapabilityError, match=r"^x: RunningSum of float64 needs"):
        gpusort.cumsum(np.zeros(3), target=target)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(1,), (7,), (5, 4), (3, 4, 5), (2000,), (300, 200), (40_000,), (3, 200_000)])
def test_a_scan_of_floats_by_sum_starts_with_zero(shape: tuple[int, ...], dtype: str) -> None:
    """On the CPU it is NumPy's cumulative sum, which begins with -0.0 where the elements do."""
    few = np.random.default_rng(3).integers(1, 9, shape).astype(dtype)
    for zeros in (slice(0), slice(few.size // 2), slice(few.size // 2, None), slice(None)):
        x = few.copy()
        x.reshape(-1)[zeros] = -0.0
        for axis in range(x.ndim):
            found = gpusort.scan(x, Sum(gpusort.number_for(x.dtype)), axis=axis, target="cpu")
            expected = np.cumsum(x, axis=axis) + x.dtype.type(0)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes()
