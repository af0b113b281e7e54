"""Arguments that are refused before a task is made of them."""

from __future__ import annotations

from typing import SupportsIndex

import dask.array as da

from ..api.arguments import axis_or_none
from ..arrays.registry import recognised
from ..operations.base import checked_axis
from ..types.dtypes import key_for
from ..types.errors import UnsupportedTypeError
from .exchange import Exchange, meta_of


def require(name: str, x: object, kind: type = da.Array) -> None:
    """Refuses what is no collection of dask's of this kind."""
    if not isinstance(x, kind):
        what = "array" if kind is da.Array else "dataframe"
        raise UnsupportedTypeError(f"{name}: expected a dask {what}, found {type(x).__name__}")


def checked_target(target: object) -> str:
    """Chunks are sorted where tasks run, so a target goes by its name."""
    if not isinstance(target, str):
        raise UnsupportedTypeError(f"target: expected a name for dask arrays, e.g. 'cuda', found {target!r}")
    return target


def checked(x: da.Array, name: str, axis: SupportsIndex | None, exchange: str) -> tuple[da.Array, int, Exchange]:
    """An array, an axis of it, and how its chunks are exchanged. Without an axis it is flattened."""
    require(name, x)
    recognised(name, meta_of(x))
    key_for(x.dtype, name)
    number = axis_or_none(axis)
    if number is None:
        x, number = _flattened(x), 0
    number = checked_axis(number, x.ndim)
    return x, number, Exchange.of(exchange, x, x.numblocks[number])


def _flattened(x: da.Array) -> da.Array:
    """In one dimension. Of what has no elements dask finds no shape to flatten by."""
    return da.zeros_like(meta_of(x), shape=(0,), chunks=(0,)) if x.size == 0 else x.ravel()
