"""Copies of arrays to packed rows and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ....arrays.host import copy_elements, is_packed
from ....types.dtypes import native
from ....types.specs import order_of_axes
from ...base import HostArray
from ..pool import ALONE, Pool, shared_pool
from .strides import Axes
from .transpose import LEAST_SHARED, LEAST_TURNED, are_turned


def with_last(x: HostArray, axis: int) -> Axes:
    """The axes in the order of their strides, but this one last: so neighbouring rows follow each other."""
    return _with_last(x.shape, x.strides, axis % x.ndim)


@lru_cache(maxsize=256)
def _with_last(shape: Axes, strides: Axes, axis: int) -> Axes:
    return (*(other for other in order_of_axes(shape, strides) if other != axis), axis)


def along_rows(
    x: HostArray, /, axis: int | None, work: Callable[[HostArray], Sequence[HostArray]]
) -> tuple[HostArray, ...]:
    """The results of `work` on an array's rows along an axis, packed; with the axes in the array's order."""
    if axis is None or x.ndim < 2:
        x, axis = x.reshape(-1), -1
    if axis in (-1, x.ndim - 1) and is_packed(x):
        results = work(x.reshape(-1, x.shape[-1]))
        return tuple(packed(made).reshape(*x.shape[:-1], made.shape[-1]) for made in results)
    axes = with_last(x, axis)
    rows, back = packed(x.transpose(axes)), [axes.index(axis) for axis in range(x.ndim)]
    found = [made.reshape(*rows.shape[:-1], made.shape[-1]) for made in work(rows.reshape(-1, rows.shape[-1]))]
    return tuple(packed(made.transpose(back)) for made in found)


def packed(x: HostArray) -> HostArray:
    """The array, or a copy that is C-contiguous, aligned and in the machine's byte order."""
    if is_packed(x):
        return x
    if x.nbytes < LEAST_TURNED:
        return x.astype(native(x.dtype), "C")
    copied: HostArray = np.empty_like(x, native(x.dtype), "C")
    copy_shared(x, copied)
    return copied


def copy_alone(source: HostArray, to: HostArray) -> None:
    """Copies to an array of the same shape that lies apart, on this thread."""
    if not are_turned(source, to, ALONE):
        copy_elements(source, to)


def copy_shared(source: HostArray, to: HostArray) -> None:
    """Copies to an array of the same shape that lies apart, with all threads where it is worth it."""
    if are_turned(source, to):
        return
    if to.nbytes < LEAST_SHARED:
        to[...] = source
        return
    longest, pool = to.shape.index(max(to.shape)), shared_pool()
    source, to = source.swapaxes(0, longest), to.swapaxes(0, longest)
    pool.over(len(to), lambda own: copy_elements(source[own], to[own]), min(len(to), pool.threads))


def shared_across(x: HostArray, axis: int, pool: Pool, work: Callable[[tuple[slice, ...]], None]) -> None:
    """Calls `work` with indices of parts that together are the array: slices of the longest axis but one, shared among
    the threads of a pool."""
    across = max(set(range(x.ndim)) - {axis % x.ndim}, key=x.shape.__getitem__)
    pool.over(x.shape[across], lambda own: work((*(slice(None),) * across, own)))
