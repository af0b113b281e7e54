"""Sums of times: NaT once an element is NaT, or once the sum so far comes by the bits of one, as NumPy has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from tests.reference import assert_same_bits

LEAST = int(np.iinfo("i8").min)
PASSING = (
    [-(2**62), -(2**62), 5],
    [2**62, 2**62, 3],
    [LEAST + 1, -1, 7],
    [2**62, 2**62, -(2**62), -(2**62), 1],
    [5, -(2**62), -(2**62)],  # passes nothing
    [LEAST + 1, 1, -1],
    [-(2**62), -(2**62) - 5, 10],  # wraps around beside it
    [LEAST, 1, 2],
    [-(LEAST + 1), 1, 4],
)


def times(numbers: list[int], dtype: str = "m8[s]") -> npt.NDArray[Any]:
    return np.array(numbers, "i8").view("m8[s]").astype(dtype)


def require_alike(ours: Callable[[], object], numpys: Callable[[], object]) -> None:
    """The same bits; or the same error, from the version of NumPy on that refuses what leaves 64 bits."""
    try:
        expected = np.asarray(numpys())
    except OverflowError:
        with pytest.raises(OverflowError):
            ours()
        return
    assert_same_bits(np.asarray(ours()), expected)


@pytest.mark.parametrize("dtype", ["m8[s]", ">m8[s]"])
@pytest.mark.parametrize("numbers", PASSING, ids=str)
def test_a_sum_that_passes_nat_stays_there(target: str, numbers: list[int], dtype: str) -> None:
    x = times(numbers, dtype)
    require_alike(lambda: gpusort.sum(x, target=target), lambda: np.sum(x))
    require_alike(lambda: gpusort.cumsum(x, target=target), lambda: np.cumsum(x))
    grid = np.stack([x, x[::-1], np.ones_like(x)])
    for axes in (0, 1, None, (0, 1)):
        require_alike(
            partial(gpusort.sum, grid, axis=axes, keepdims=True, target=target),
            partial(np.sum, grid, axis=axes, keepdims=True),
        )
    for axis in (0, 1, None):
        require_alike(partial(gpusort.cumsum, grid, axis=axis, target=target), partial(np.cumsum, grid, axis=axis))


def test_only_rows_with_one_are_nat(target: str) -> None:
    x = times([1, 2, LEAST, 4, 5, 6]).reshape(3, 2)
    for axis in (0, 1, None):
        assert_same_bits(np.asarray(gpusort.sum(x, axis=axis, target=target)), np.asarray(np.sum(x, axis=axis)))


def test_long_sums_that_leave_64_bits_and_such_that_do_not() -> None:
    small = times(list(range(-500, 70_000)))
    assert_same_bits(np.asarray(gpusort.sum(small)), np.asarray(np.sum(small)))
    large = np.random.default_rng(1).integers(LEAST + 1, -LEAST - 1, 70_000).view("m8[s]")
    require_alike(lambda: gpusort.sum(large), lambda: np.sum(large))
    require_alike(lambda: gpusort.cumsum(large), lambda: np.cumsum(large))
