"""What a reduction makes of elements, and of which dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

from ....operations.reduce import Reducer
from ...base import HostArray

HostCall: TypeAlias = Callable[[HostArray], object]

LONG = 1 << 15  # elements: below, NumPy is done before anything else has begun

UFUNCS: dict[Reducer, np.ufunc] = {
    Reducer.SUM: np.add, Reducer.PROD: np.multiply, Reducer.MIN: np.minimum, Reducer.MAX: np.maximum,
    Reducer.ANY: np.logical_or, Reducer.ALL: np.logical_and,
}  # fmt: skip
ARITHMETIC = (Reducer.SUM, Reducer.PROD)
EXTREMES = (Reducer.MIN, Reducer.MAX)
TRUTHS = (Reducer.ANY, Reducer.ALL)
PLACES = (Reducer.ARGMIN, Reducer.ARGMAX)


def reducing(fold: Reducer) -> Callable[..., object]:
    """NumPy's reduction, whose arguments are array, axes, dtype, out and keepdims."""
    return UFUNCS[fold].reduce


def takes(fold: Reducer, dtype: np.dtype[np.generic]) -> bool:
    """Whether there is such a function of elements of a dtype."""
    kinds = {Reducer.SUM: "biufm", Reducer.PROD: "biuf"}.get(fold, "biufmM")
    return dtype.kind in kinds and not (dtype.kind == "f" and dtype.itemsize > 8)


def result_of(fold: Reducer, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype that it gives."""
    if fold in TRUTHS:
        return np.dtype(np.bool_)
    if fold in PLACES:
        return np.dtype(np.intp)
    if fold in ARITHMETIC and dtype.kind in "biu":
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype.newbyteorder("=")


def in_shape(results: HostArray, x: HostArray, axes: tuple[int, ...], keepdims: bool) -> object:
    """Results in the order of the axes that stay, as NumPy gives them: a scalar where there is but one."""
    if keepdims:
        return results.reshape([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    return cast(object, results[()])
