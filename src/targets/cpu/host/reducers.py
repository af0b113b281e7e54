"""Reductions as NumPy's ufuncs, and of which dtypes there are such; and NumPy's functions without its warnings."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import TypeAlias, TypeVar, cast

import numpy as np

from ....operations.reduce import Reducer
from ...base import HostArray

R = TypeVar("R")
HostCall: TypeAlias = Callable[[HostArray], object]

LONG = 1 << 15  # elements: below, NumPy is done before anything else has begun

UFUNCS: dict[Reducer, np.ufunc] = {
    Reducer.SUM: np.add, Reducer.PROD: np.multiply, Reducer.MIN: np.minimum, Reducer.MAX: np.maximum,
    Reducer.ANY: np.logical_or, Reducer.ALL: np.logical_and,
}  # fmt: skip
EXTREMES = (Reducer.MIN, Reducer.MAX)
TRUTHS = (Reducer.ANY, Reducer.ALL)

_INFINITE = 65520.0  # from here on float16 rounds to infinity
_FEW_TOLD = 1 << 7  # elements: of fewer, looking takes longer than telling

_silent = Context()
_silent.run(np.seterr, all="ignore")


# For a tenth of what `np.errstate` costs. A context can be entered once at a time, and a copy of it costs little.
# `silence().run(function, ...)` is for what is done in less time than a call of `silently` takes.
silence = _silent.copy


def silently(function: Callable[..., R], /, *arguments: object) -> R:
    """What the function gives."""
    return silence().run(function, *arguments)


def rounded(found: HostArray, dtype: np.dtype[np.generic]) -> HostArray:
    """Numbers of 32 bits in 16: silent. Too large ones are made infinite first, for NumPy's conversion tells of each of
    them, which takes as long as fifty others."""
    if found.size > _FEW_TOLD:
        if np.fmin.reduce(found, None) <= -_INFINITE or np.fmax.reduce(found, None) >= _INFINITE:
            np.copyto(found, np.inf, where=np.greater_equal(found, _INFINITE))
            np.copyto(found, -np.inf, where=np.less_equal(found, -_INFINITE))
    return found.astype(dtype)


def takes(fold: Reducer, dtype: np.dtype[np.generic]) -> bool:
    """Whether there is such a function of elements of a dtype."""
    kinds = {Reducer.SUM: "biufm", Reducer.PROD: "biuf"}.get(fold, "biufmM")
    return dtype.kind in kinds and not (dtype.kind == "f" and dtype.itemsize > 8)


def in_shape(results: HostArray, x: HostArray, axes: tuple[int, ...], keepdims: bool) -> object:
    """Results in the order of the axes that stay, as NumPy gives them: a scalar where there is but one."""
    if keepdims:
        return results.reshape([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    return cast(object, results[()])
