"""Argument checks of gpusort.dask, made when the graph is built."""

from __future__ import annotations

from typing import SupportsIndex

import dask.array as da
import numpy as np

from ..api.arguments import axis_or_none
from ..arrays.registry import recognised
from ..operations.base import checked_axis
from ..targets.registry import require_name
from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from .exchange import Exchange, meta_of


def require(name: str, x: object, kind: type = da.Array) -> None:
    """Raises UnsupportedTypeError unless x is a dask collection of this kind."""
    if not isinstance(x, kind):
        what = "array" if kind is da.Array else "dataframe"
        raise UnsupportedTypeError(f"{name}: expected a dask {what}, found {type(x).__name__}")


def checked_target(target: object) -> str:
    """Raises UnsupportedTypeError unless the target is a name, for tasks open it where they run, and
    InvalidArgumentError if there is none of that name."""
    if not isinstance(target, str):
        raise UnsupportedTypeError(f"target: expected a name for dask arrays, e.g. 'cuda', found {target!r}")
    require_name(target)
    return target


def checked(
    x: da.Array, name: str, axis: SupportsIndex | None, exchange: str, *, takes_scalars: bool = False
) -> tuple[da.Array, int, Exchange]:
    """The array, the axis, and the exchange; the flattened array if axis is None. With `takes_scalars`, an array of no
    dimensions is a row of one."""
    require(name, x)
    recognised(name, meta_of(x))
    key_for(x.dtype, name)
    number = axis_or_none(axis)
    if number is None or (takes_scalars and not x.ndim):
        x, number = _flattened(x), number or 0
    number = checked_axis(number, x.ndim)
    return x, number, Exchange.of(exchange, x, x.numblocks[number])


def _flattened(x: da.Array) -> da.Array:
    """In one dimension. dask cannot flatten what has no elements, nor, of several dimensions, chunks that have none."""
    if x.size == 0:
        return da.zeros_like(meta_of(x), shape=(0,), chunks=(0,))
    if x.ndim > 1:
        require_sizes(x)
        x = x.rechunk(tuple(tuple(size for size in sizes if size) for sizes in x.chunks))
    return x.ravel()


def require_sizes(x: da.Array) -> None:
    """Raises InvalidArgumentError if chunks have unknown sizes."""
    if np.isnan(x.size):
        raise InvalidArgumentError("x: expected chunks of known sizes; x.compute_chunk_sizes() computes them")
