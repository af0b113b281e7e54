"""The short way for plain arrays: what does not depend on where an array lies is found once and kept.

A call for an array of a thousand elements costs little more than the sorting. Whatever is not plain (other axes,
strides, byte orders, devices, kinds of arrays) gets None here, and goes the long way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from .arrays import HostArray
from .quick_card import (
    ORDERS,
    argsort_on_card,
    is_plain_on_card,
    sort_in_place_on_card,
    sort_on_card,
    sort_pairs_on_card,
)
from .reuse import new_array
from .targets import registry
from .targets.base import SortsRows, sorts_rows
from .types.dtypes import key_for
from .types.errors import UnsupportedTypeError

if TYPE_CHECKING:
    import cupy

_PLACE = np.dtype(np.intp)


def quick_sort(x: object, out: object, descending: bool, stable: bool, target: object) -> object | None:
    """The sorted array, along the last axis; None where the long way is needed."""
    if type(x) is np.ndarray:
        return _on_host(x, out, descending, stable) if target in ("auto", "cpu") else None
    if target in ("auto", "cuda") and is_plain_on_card(x):
        return sort_on_card(cast("cupy.ndarray", x), out, descending, stable)
    return None


def quick_sort_inplace(x: object, axis: object, descending: bool, stable: bool, target: object) -> bool:
    """Sorts a plain array where it lies; False where the long way is needed."""
    if type(x) is np.ndarray:
        host, flags = cast(HostArray, x), x.flags
        sorts = _host_target(host.dtype) if target in ("auto", "cpu") and axis in (-1, 0) else None
        plain = host.ndim == 1 and flags.c_contiguous and flags.aligned and flags.writeable
        if sorts is None or not plain or (stable and host.dtype.kind == "f"):
            return False
        rows = host.reshape(1, -1)
        sorts.sort_rows(rows, rows, ORDERS[bool(descending)])
        return True
    if target not in ("auto", "cuda") or not is_plain_on_card(x):
        return False
    return sort_in_place_on_card(cast("cupy.ndarray", x), axis, descending, stable)


# -- in the host's memory ---------------------------------------------------------------------------------


def _on_host(x: HostArray, out: object, descending: bool, stable: bool) -> object | None:
    flags = x.flags
    if out is not None or not (flags.c_contiguous and flags.aligned) or not x.ndim:
        return None
    sorts = _host_target(x.dtype)
    if sorts is None or (stable and x.dtype.kind == "f"):
        return None
    if x.size < 2:
        return x.copy()
    results = new_array(x.shape, x.dtype)
    shape = x.size // x.shape[-1], x.shape[-1]
    sorts.sort_rows(x.reshape(shape), results.reshape(shape), ORDERS[bool(descending)])
    return results


def quick_argsort(x: object, axis: object, descending: bool, target: object) -> object | None:
    """Where the elements of a plain array of one dimension come from; None where the long way is needed."""
    if target in ("auto", "cuda") and is_plain_on_card(x):
        return argsort_on_card(cast("cupy.ndarray", x), axis, descending)
    if type(x) is not np.ndarray or axis not in (-1, 0) or target not in ("auto", "cpu"):
        return None
    array = cast(HostArray, x)
    flags, order = array.flags, ORDERS[bool(descending)]
    sorts = _host_target(array.dtype)
    if sorts is None or array.ndim != 1 or not (flags.c_contiguous and flags.aligned):
        return None
    merged = sorts.argsort_runs(array, order)
    if merged is not None:
        return merged
    places = new_array(array.shape, _PLACE)
    sorts.argsort_rows(array.reshape(1, -1), places.reshape(1, -1), order)
    return places


def quick_sort_by_key(keys: object, values: object, descending: bool, target: object) -> tuple[object, object] | None:
    """Sorted keys and their values; None where the long way is needed."""
    if target in ("auto", "cuda") and is_plain_on_card(keys) and is_plain_on_card(values):
        return sort_pairs_on_card(cast("cupy.ndarray", keys), cast("cupy.ndarray", values), descending)
    return None


@lru_cache
def _host_target(dtype: np.dtype[np.generic]) -> SortsRows | None:
    """The CPU target, if it has ways of its own to sort elements as they lie."""
    try:
        key_for(dtype)
    except UnsupportedTypeError:
        return None
    target = registry.target("cpu")
    return target if sorts_rows(target) and dtype.isnative else None
