"""Bools of any bytes: what is not zero is true, sorting goes by bytes and gives every one back, as NumPy has it."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.types.monoids import AnyTrue, Maximum, Minimum, Product, Sum
from gpusort.types.scalars import U8, U32
from gpusort.types.searches import ArgMax
from tests.covering import InTurn
from tests.reference import assert_same_bits, sample

Array = npt.NDArray[Any]
REDUCTIONS = ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all")


def bools(target: str, rows: int = 3) -> Array:
    return sample("?", (rows, {"python": 7, "simulator": 300}.get(target, 5000)))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_see_what_is_true(target: str, name: str, in_turn: InTurn) -> None:
    ours, numpys = getattr(gpusort, name), getattr(np, name)
    arrays = bools(target), np.full((2, 9), 0xFF, "u1").view("?"), np.array([[2, 0], [0, 3]], "u1").view("?")
    for x, axis in in_turn(arrays, (None, 0, 1)):
        found, expected = ours(x, axis=axis, target=target), numpys(x, axis=axis)
        assert found.dtype == expected.dtype
        assert_same_bits(np.asarray(found), np.asarray(expected))


def test_cumulative_sums_count_what_is_true(target: str) -> None:
    x = bools(target)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(gpusort.cumsum(x, axis=axis, target=target), np.cumsum(x, axis=axis))


@pytest.mark.parametrize("length", [1 << 21, 1 << 22])
def test_long_arrays_on_the_host(length: int) -> None:
    """The compiled ways."""
    x = sample("?", length)
    assert gpusort.sum(x) == np.sum(x)
    np.testing.assert_array_equal(gpusort.cumsum(x), np.cumsum(x))
    assert_same_bits(gpusort.sort(x), np.sort(x))
    np.testing.assert_array_equal(gpusort.argsort(x), np.argsort(x, kind="stable"))


def test_what_the_first_of_each_row_settle() -> None:
    """Rows of many that lie apart: those at the beginning, if they say all."""
    x = np.zeros((1000, 50), np.bool_)
    for _ in range(2):
        for row in (None, 999, 31, 7):
            if row is not None:
                x[row] ^= True
            for name in ("argmax", "argmin"):
                found, expected = getattr(gpusort, name)(x, axis=0), getattr(np, name)(x, axis=0)
                np.testing.assert_array_equal(found, expected, f"{name} {row}")
        x[5, 3] ^= True


def test_keys_and_values_come_back_byte_by_byte(target: str) -> None:
    x = bools(target, 1)[0]
    places = np.argsort(x, kind="stable")
    assert_same_bits(gpusort.sort(x, target=target), np.sort(x))
    np.testing.assert_array_equal(gpusort.argsort(x, target=target), places)
    keys, values = gpusort.sort_by_key(x, x[::-1], target=target)
    assert_same_bits(keys, x[places])
    assert_same_bits(values, x[::-1][places])


@attrs.frozen
class Flag:
    """A newtype of a byte."""

    value: U8


@attrs.frozen
class Raised:
    """One in a newtype."""

    flag: Flag


@attrs.frozen
class HowMany:
    """A user's monoid, which takes true for 1."""

    element: type[Raised] = Raised
    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: Raised, index: U32) -> U32:
        return U32(element.flag.value)

    def combine(self, a: U32, b: U32) -> U32:
        return a + b


def test_monoids_see_one_for_true(target: str) -> None:
    x = bools(target)[:, :300]
    key, number = gpusort.key_for("?"), gpusort.number_for("?")
    assert gpusort.reduce(x, HowMany(), target=target) == np.count_nonzero(x)
    np.testing.assert_array_equal(
        cast(Array, gpusort.scan(x, HowMany(), target=target)), np.cumsum(x, axis=-1, dtype="u4")
    )
    trues = x[:, x.all(axis=0)]
    assert gpusort.reduce(trues, Minimum(key), target=target) == (1 - 256) % (1 << 32)  # it counts from the first NaN
    assert gpusort.reduce(trues, Maximum(key), target=target) == 1
    assert gpusort.reduce(trues, Product(number), target=target) == 1
    assert gpusort.reduce(trues, Sum(number), target=target) == trues.size
    assert gpusort.reduce(trues, AnyTrue(key), target=target) == 1
    place = cast("np.void", gpusort.reduce(x.reshape(-1), ArgMax(key), target=target))
    assert place["index"] == np.argmax(x)
    maxima = gpusort.scan(x, Maximum(key), target=target)
    np.testing.assert_array_equal(cast(Array, maxima), np.logical_or.accumulate(x, axis=-1))


def test_sums_of_ones_as_numpys_own_test_has_them(target: str) -> None:
    for x in (np.ones(101, bool), np.frombuffer(b"\xff\xff" * 100, bool)):
        for part in (x, x[::2], x[::-2]):
            assert gpusort.sum(part, target=target) == part.size
