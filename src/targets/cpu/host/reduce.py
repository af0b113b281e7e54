"""Reductions of host arrays: a closure for each function, dtype and axis, made once and called for every array.

Short arrays go straight to NumPy's loops, past the Python in front of them; what is longer goes to folding.py. Which
way an array takes, and so the order in which its floats are added, depends on its shape, dtype and layout alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ....operations.reduce import Reducer
from ....types.errors import InvalidArgumentError
from ...base import HostArray
from .arg_reduce import PlaceFolding
from .reduce_axes import Folding
from .reducers import LONG, PLACES, TRUTHS, HostCall, reducing, takes
from .silence import silence

_SINGLE, _HALF = np.dtype(np.float32), np.dtype(np.float16)
Axes: TypeAlias = int | tuple[int, ...] | None


def host_reduction(
    function: str | Callable[..., object], dtype: np.dtype[np.generic], ndim: int, axis: Axes, keepdims: bool
) -> HostCall | None:
    """The reduction of host arrays of a dtype and number of dimensions that NumPy's function of that name does.

    It takes any shape and layout, returns scalars where NumPy does, and does not warn of overflow or NaN. An empty
    array without an answer raises InvalidArgumentError. None if there is no such reduction of these elements, or no
    such axis.
    """
    fold = Reducer(function if isinstance(function, str) else function.__name__)
    axes = _checked(axis, ndim)
    if not takes(fold, dtype) or axes is None or (fold in PLACES and isinstance(axis, tuple)):
        return None
    if fold in PLACES:
        along = None if axis is None or ndim == 0 else axes[0]
        return _guarded(_place(fold, keepdims), (along, None), PlaceFolding.of(fold, dtype, along, ndim, keepdims))
    long = Folding.of(fold, dtype, axes, ndim, keepdims)
    reduce = reducing(fold)
    if dtype.kind == "f" and dtype.itemsize == 2 and fold in (Reducer.SUM, Reducer.PROD):
        return _guarded(partial(_halves, reduce), (axes, keepdims))
    made = np.dtype(np.bool_) if fold in TRUTHS else None
    settings = (axes[0] if len(axes) == 1 else axes, made, None, keepdims)
    # NumPy's loops of floats warn of what is no mistake
    return _guarded(reduce, settings, long, is_silent=dtype.kind == "f")


def _checked(axis: Axes, ndim: int) -> tuple[int, ...] | None:
    """The axes that go, counted from the front, in order; None if there are no such."""
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and axis in (0, -1):  # which NumPy lets pass
        return ()
    try:
        return tuple(sorted(normalize_axis_tuple(axis, ndim)))
    except ValueError:
        return None


# -- short arrays -----------------------------------------------------------------------------------------


def _halves(
    reduce: Callable[..., object], x: HostArray, axes: tuple[int, ...], keepdims: bool
) -> object:  # fmt: skip
    """In 32 bits, rounded once."""
    context = silence()
    return context.run(cast(HostArray, context.run(reduce, x, axes, _SINGLE, None, keepdims)).astype, _HALF)


def _place(fold: Reducer, keepdims: bool) -> Callable[..., object]:
    method = cast(Callable[..., object], np.ndarray.argmin if fold is Reducer.ARGMIN else np.ndarray.argmax)
    return partial(method, keepdims=True) if keepdims else method


def _guarded(
    call: Callable[..., object], settings: tuple[object, ...], long: Folding | PlaceFolding | None = None,
    *, is_silent: bool = False,
) -> HostCall:  # fmt: skip
    """With another way for long arrays, and errors of our own kind for arrays of nothing."""

    least = LONG if long is None else long.least

    def guarded(x: HostArray) -> object:
        if x.size >= least and long is not None:
            found = long(x)
            if found is not None:
                return found
        try:
            return silence().run(call, x, *settings) if is_silent else call(x, *settings)
        except ValueError as error:
            raise InvalidArgumentError(f"x: {error}") from error

    return guarded
