"""What public functions give back, as the checkers see it, and calls that do not fit."""

from __future__ import annotations

from typing import assert_type

import attrs
import numpy as np
import numpy.typing as npt

import gpusort
from gpusort.types.monoids import Sum
from gpusort.types.scalars import F32, U32

F4s = np.ndarray[tuple[int], np.dtype[np.float32]]
I4s = np.ndarray[tuple[int], np.dtype[np.int32]]
Grid = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Places = np.dtype[np.int64]


def right(x: F4s, numbers: I4s, grid: Grid) -> None:
    assert_type(gpusort.sort(x), F4s)
    assert_type(gpusort.sort(grid, axis=0, descending=True), Grid)
    assert_type(gpusort.sort(grid, axis=None), F4s)
    assert_type(gpusort.sort(x, out=x), F4s)
    assert_type(gpusort.argsort(grid), np.ndarray[tuple[int, int], Places])
    assert_type(gpusort.argsort(grid, axis=None), np.ndarray[tuple[int], Places])
    assert_type(gpusort.cumsum(grid, axis=1), npt.NDArray[np.float32])
    assert_type(gpusort.cumsum(numbers), npt.NDArray[np.int64 | np.uint64])
    keys, values = gpusort.sort_by_key(x, numbers)
    assert_type(keys, F4s)
    assert_type(values, I4s)


def wrong_results(x: F4s) -> None:
    assert_type(gpusort.sort(x), I4s)  # E: assert-type, reportAssertTypeFailure
    gpusort.sort_by_key(x)  # E: call-overload, reportCallIssue


def wrong_options(x: F4s) -> None:
    gpusort.sort(x, axis="last")  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort(x, decending=True)  # E: call-overload, reportCallIssue
    gpusort.sort(x, -1)  # E: call-overload, reportCallIssue
    gpusort.sort(x, algorithm="bitonic")  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort(x, target=1)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.cumsum(x, axis=(0, 1))  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort_inplace(x, axis=None)  # E: arg-type, reportArgumentType
    gpusort.argmin(x, axis=(0, 1))  # E: call-overload, reportArgumentType+reportCallIssue


def no_array() -> None:
    gpusort.sort({1, 2})  # E: call-overload, reportArgumentType+reportCallIssue


@attrs.frozen
class NoIdentity:
    """A monoid that forgets `identity`."""

    element: type[F32] = F32
    state: type[F32] = F32

    def lift(self, element: F32, index: U32) -> F32:
        return element

    def combine(self, a: F32, b: F32) -> F32:
        return a + b


def wrong_monoids(x: F4s) -> None:
    gpusort.reduce(x, NoIdentity())  # E: arg-type, reportArgumentType
    gpusort.scan(x, NoIdentity())  # E: arg-type, reportArgumentType
    gpusort.scan(x, Sum)  # E: arg-type, reportArgumentType
    gpusort.scan(x, gpusort.key_for("f4"))  # E: arg-type, reportArgumentType
