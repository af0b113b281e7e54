"""The short way for plain arrays: what does not depend on where an array lies is found once and kept.

A call for an array of a thousand elements costs little more than the sorting. Whatever is not plain (other axes,
strides, byte orders, devices, kinds of arrays) gets None here, and goes the long way.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from .algos.choice import fitting_sort
from .algos.sorts import Placement
from .arrays import HostArray
from .sorting import SortPlan, rows_together, schedule_of
from .targets import registry
from .targets.base import SortsRows
from .types.dtypes import key_for
from .types.elements import dtype_of
from .types.errors import UnsupportedTypeError
from .types.indices import SortOrder

if TYPE_CHECKING:
    import cupy

    from .targets.cuda.plan import Plan

_ORDERS = {False: SortOrder.ASCENDING, True: SortOrder.DESCENDING}


def quick_sort(x: object, out: object, descending: bool, stable: bool, target: object) -> object | None:
    """The sorted array, along the last axis; None where the long way is needed."""
    if type(x) is np.ndarray:
        return _on_host(x, out, descending, stable) if target in ("auto", "cpu") else None
    if target in ("auto", "cuda") and type(x).__module__ == "cupy" and type(x) is sys.modules["cupy"].ndarray:
        return _on_card(cast("cupy.ndarray", x), out, descending, stable)
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
        sorts.sort_rows(rows, rows, _ORDERS[bool(descending)])
        return True
    if target not in ("auto", "cuda") or not is_plain_on_card(x):
        return False
    return _in_place_on_card(cast("cupy.ndarray", x), axis, descending, stable)


# -- in the host's memory ---------------------------------------------------------------------------------


def _on_host(x: HostArray, out: object, descending: bool, stable: bool) -> object | None:
    flags = x.flags
    if out is not None or not (flags.c_contiguous and flags.aligned) or x.ndim != 1:
        return None
    sorts = _host_target(x.dtype)
    if sorts is None or (stable and x.dtype.kind == "f"):
        return None
    if x.size < 2:
        return x.copy()
    results = np.empty_like(x)
    shape = 1, x.size
    sorts.sort_rows(x.reshape(shape), results.reshape(shape), _ORDERS[bool(descending)])
    return results


def quick_argsort(x: object, axis: object, descending: bool, target: object) -> object | None:
    """Where the elements of a plain array of one dimension come from; None where the long way is needed."""
    if type(x) is not np.ndarray or axis not in (-1, 0) or target not in ("auto", "cpu"):
        return None
    array = cast(HostArray, x)
    flags, order = array.flags, _ORDERS[bool(descending)]
    sorts = _host_target(array.dtype)
    if sorts is None or array.ndim != 1 or not (flags.c_contiguous and flags.aligned):
        return None
    places = np.empty(array.shape, np.intp)
    sorts.argsort_rows(array.reshape(1, -1), places.reshape(1, -1), order)
    return places


@lru_cache
def _host_target(dtype: np.dtype[np.generic]) -> SortsRows | None:
    """The CPU target, if it has ways of its own to sort elements as they lie."""
    try:
        key_for(dtype)
    except UnsupportedTypeError:
        return None
    target = registry.target("cpu")
    return target if isinstance(target, SortsRows) and dtype.isnative else None


# -- on a card --------------------------------------------------------------------------------------------


def is_plain_on_card(x: object) -> bool:
    """Whether this is a packed array of cupy's own."""
    return (
        type(x).__module__ == "cupy"
        and type(x) is sys.modules["cupy"].ndarray
        and bool(cast("cupy.ndarray", x).flags.c_contiguous)
    )


def _on_card(x: cupy.ndarray, out: object, descending: bool, stable: bool) -> object | None:
    import cupy

    from .targets.cuda.target import device_errors

    dtype, shape = x.dtype, x.shape
    if not x.flags.c_contiguous or not shape or shape[-1] < 2 or x.size == 0 or (stable and dtype.kind == "f"):
        return None
    device = cupy.cuda.runtime.getDevice()
    if x.device.id != device:
        return None
    if out is None:
        results = cupy.empty(shape, dtype)
    elif type(out) is cupy.ndarray and out.flags.c_contiguous and out.shape == shape and out.dtype == dtype:
        results = out
    else:
        return None
    pointer, goal = x.data.ptr, results.data.ptr
    if abs(pointer - goal) < x.nbytes:
        return None  # they overlap
    plan = _card_plan(dtype, shape, bool(descending), device, Placement.ELSEWHERE)
    if plan is None:
        return None
    with device_errors():
        plan.run((pointer, goal))
    return results


def _in_place_on_card(x: cupy.ndarray, axis: object, descending: bool, stable: bool) -> bool:
    import cupy

    from .targets.cuda.target import device_errors

    shape, device = x.shape, cupy.cuda.runtime.getDevice()
    if not shape or shape[-1] < 2 or x.size == 0 or axis not in (-1, len(shape) - 1):
        return False
    if x.device.id != device or (stable and x.dtype.kind == "f"):
        return False
    plan = _card_plan(x.dtype, shape, bool(descending), device, Placement.IN_PLACE)
    if plan is None:
        return False
    with device_errors():
        plan.run((x.data.ptr,))
    return True


def forget_plans() -> None:
    """What was chosen may be chosen anew."""
    _card_plan.cache_clear()


@lru_cache(maxsize=256)
def _card_plan(
    dtype: np.dtype[np.generic], shape: tuple[int, ...], descending: bool, device: int, placement: Placement
) -> Plan | None:
    """The plan that sorts all rows at once, from one array into another or in place, if there is one."""
    from .targets.cuda.target import CudaTarget

    try:
        key = key_for(dtype)
    except UnsupportedTypeError:
        return None
    target = registry.target("cuda")
    assert isinstance(target, CudaTarget)
    length = shape[-1]
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    chosen = fitting_sort(target.info, key, rows, length)
    fits = rows_together(chosen, length, dtype_of(key.element).itemsize, target) >= rows
    if not fits or placement not in chosen.placements(key):
        return None
    schedule = schedule_of(SortPlan(chosen, key, rows, length, _ORDERS[descending], placement))
    return target.prepared(schedule, device)
