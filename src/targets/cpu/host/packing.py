"""Rows of arrays in any layout, brought together one after the other, and back."""

from __future__ import annotations

import numpy as np

from ....arrays.host import copy_elements, is_packed
from ....types.dtypes import native
from ....types.specs import order_of_axes
from ...base import HostArray
from ..pool import shared_pool

_SHARED = 1 << 22  # bytes: below, one call of NumPy copies them sooner


def with_last(x: HostArray, axis: int) -> list[int]:
    """The axes, this one last and the others as they lie: rows that follow each other in memory are found so."""
    axes = list(order_of_axes(x.shape, x.strides))
    axes.remove(axis % x.ndim)
    return [*axes, axis % x.ndim]


def turned_back(made: HostArray, axes: list[int]) -> HostArray:
    """What was made of an array with such an order of axes, in the caller's."""
    return made.transpose([axes.index(axis) for axis in range(made.ndim)])


def packed(x: HostArray) -> HostArray:
    """The array, or a copy that is C-contiguous, aligned and in the machine's byte order."""
    if is_packed(x):
        return x
    copied: HostArray = np.empty(x.shape, native(x.dtype))
    copy_shared(x, copied)
    return copied


def copy_shared(source: HostArray, to: HostArray) -> None:
    """Copies to an array of the same shape, with all threads where it is worth it."""
    if to.nbytes < _SHARED or np.may_share_memory(source, to):
        to[...] = source
        return
    longest, pool = to.shape.index(max(to.shape)), shared_pool()
    source, to = source.swapaxes(0, longest), to.swapaxes(0, longest)
    pool.over(len(to), lambda own: copy_elements(source[own], to[own]), min(len(to), pool.threads))
