"""What a reduction makes of elements, and of which dtypes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias, cast

import numpy as np

from ..base import HostArray

HostCall: TypeAlias = Callable[[HostArray], object]


class Fold(Enum):
    """By the names of the functions."""

    SUM = "sum"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    ARGMIN = "argmin"
    ARGMAX = "argmax"
    ANY = "any"
    ALL = "all"


UFUNCS: dict[Fold, np.ufunc] = {
    Fold.SUM: np.add, Fold.PROD: np.multiply, Fold.MIN: np.minimum, Fold.MAX: np.maximum, Fold.ANY: np.logical_or,
    Fold.ALL: np.logical_and,
}  # fmt: skip
ARITHMETIC = (Fold.SUM, Fold.PROD)
EXTREMES = (Fold.MIN, Fold.MAX)
TRUTHS = (Fold.ANY, Fold.ALL)
PLACES = (Fold.ARGMIN, Fold.ARGMAX)


def reducing(fold: Fold) -> Callable[..., object]:
    """NumPy's reduction, whose arguments are array, axes, dtype, out and keepdims."""
    return UFUNCS[fold].reduce


def takes(fold: Fold, dtype: np.dtype[np.generic]) -> bool:
    """Whether there is such a function of elements of a dtype."""
    kinds = {Fold.SUM: "biufm", Fold.PROD: "biuf"}.get(fold, "biufmM")
    return dtype.kind in kinds and not (dtype.kind == "f" and dtype.itemsize > 8)


def result_of(fold: Fold, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
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
