"""The short way for cupy's own packed arrays: a plan is found once for a dtype and shape, and then only launched.

Whatever needs more (another device, an overlap, several runs) gets None or False here, and goes the long way.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from .algos.choice import fitting_pairs, fitting_sort
from .algos.sorts import Placement
from .forks import require_own_process
from .placing import VALUES, PairsPlan, PlacesPlan, pairs_schedule, placed_together, places_schedule, sorted_together
from .sorting import SortPlan, rows_together, schedule_of
from .targets import registry
from .types.dtypes import ArrayKey, key_for
from .types.elements import dtype_of
from .types.errors import UnsupportedTypeError
from .types.indices import SortOrder

if TYPE_CHECKING:
    import cupy

    from .targets.cuda.plan import Plan
    from .targets.cuda.target import CudaTarget

ORDERS = {False: SortOrder.ASCENDING, True: SortOrder.DESCENDING}
_LONG_INT = np.dtype(np.int64)


def is_plain_on_card(x: object) -> bool:
    """Whether this is a packed array of cupy's own. An error in a forked child of who opened the card."""
    if type(x).__module__ != "cupy" or type(x) is not sys.modules["cupy"].ndarray:
        return False
    require_own_process("cuda")
    return bool(cast("cupy.ndarray", x).flags.c_contiguous)


def sort_on_card(x: cupy.ndarray, out: object, descending: bool, stable: bool) -> object | None:
    import cupy

    device = _device_to_sort_on(x, stable)
    if device is None:
        return None
    if out is None:
        results = cupy.empty(x.shape, x.dtype)
    elif type(out) is cupy.ndarray and out.flags.c_contiguous and out.shape == x.shape and out.dtype == x.dtype:
        results = out
    else:
        return None
    pointer, goal = x.data.ptr, results.data.ptr
    if abs(pointer - goal) < x.nbytes:
        return None  # they overlap
    plan = _sort_plan(x.dtype, x.shape, bool(descending), device, Placement.ELSEWHERE)
    return results if ran(plan, (pointer, goal)) else None


def sort_in_place_on_card(x: cupy.ndarray, axis: object, descending: bool, stable: bool) -> bool:
    device = _device_to_sort_on(x, stable)
    if device is None or axis not in (-1, x.ndim - 1):
        return False
    return ran(_sort_plan(x.dtype, x.shape, bool(descending), device, Placement.IN_PLACE), (x.data.ptr,))


def argsort_on_card(x: cupy.ndarray, axis: object, descending: bool) -> object | None:
    import cupy

    device = _device_to_sort_on(x, stable=False)
    if device is None or axis not in (-1, x.ndim - 1):
        return None
    plan = _places_plan(x.dtype, x.shape, bool(descending), device)
    if plan is None:
        return None
    places = cupy.empty(x.shape, _LONG_INT)
    return places if ran(plan, (x.data.ptr, places.data.ptr)) else None


def sort_pairs_on_card(keys: cupy.ndarray, values: cupy.ndarray, descending: bool) -> tuple[object, object] | None:
    import cupy

    device = _device_to_sort_on(keys, stable=False)
    if device is None or values.device.id != device or keys.ndim != 1 or values.shape != keys.shape:
        return None
    plan = _pairs_plan(keys.dtype, values.dtype, keys.size, bool(descending), device)
    if plan is None:
        return None
    results, moved = cupy.empty(keys.shape, keys.dtype), cupy.empty(values.shape, values.dtype)
    given = keys.data.ptr, values.data.ptr, results.data.ptr, moved.data.ptr
    return (results, moved) if ran(plan, given) else None


def _device_to_sort_on(x: cupy.ndarray, stable: bool) -> int | None:
    """The current device, if it is the array's and the last axis has something to sort."""
    import cupy

    if x.ndim == 0 or x.size == 0 or x.shape[-1] < 2 or (stable and x.dtype.kind == "f"):
        return None
    device = cupy.cuda.runtime.getDevice()
    return device if x.device.id == device else None


def ran(plan: Plan | None, given: tuple[int, ...]) -> bool:
    from .targets.cuda.target import device_errors

    if plan is None:
        return False
    with device_errors():
        plan.run(given)
    return True


# -- plans ------------------------------------------------------------------------------------------------


def forget_plans() -> None:
    """What was chosen may be chosen anew."""
    _sort_plan.cache_clear()


@lru_cache(maxsize=256)
def _sort_plan(
    dtype: np.dtype[np.generic], shape: tuple[int, ...], descending: bool, device: int, placement: Placement
) -> Plan | None:
    """The plan that sorts all rows at once, from one array into another or in place, if there is one."""
    key, target = _key_for(dtype), card()
    if key is None:
        return None
    rows, length = _rows_of(shape)
    chosen = fitting_sort(target.info, key, rows, length)
    fits = rows_together(chosen, length, dtype_of(key.element).itemsize, target) >= rows
    if not fits or placement not in chosen.placements(key):
        return None
    schedule = schedule_of(SortPlan(chosen, key, rows, length, ORDERS[descending], placement))
    return target.prepared(schedule, device)


@lru_cache(maxsize=256)
def _places_plan(dtype: np.dtype[np.generic], shape: tuple[int, ...], descending: bool, device: int) -> Plan | None:
    """The plan that argsorts all rows at once, if there is one."""
    key, target = _key_for(dtype), card()
    if key is None:
        return None
    rows, length = _rows_of(shape)
    radix = fitting_pairs(target.info, key, rows, length, 4)
    itemsize = dtype.itemsize
    if rows > (placed_together(length, itemsize, target) if radix is None else sorted_together(radix, length, target)):
        return None
    plan = PlacesPlan(radix, key, rows, length, ORDERS[descending], target.info.limits)
    return target.prepared(places_schedule(plan), device)


@lru_cache(maxsize=256)
def _pairs_plan(
    dtype: np.dtype[np.generic], values: np.dtype[np.generic], length: int, descending: bool, device: int
) -> Plan | None:
    """The plan that sorts keys with values, if values of their size are taken along."""
    key, value, target = _key_for(dtype), VALUES.get(values.itemsize), card()
    radix = None if key is None else fitting_pairs(target.info, key, 1, length, values.itemsize)
    if key is None or value is None or radix is None:
        return None
    return target.prepared(pairs_schedule(PairsPlan(radix, key, value, length, ORDERS[descending])), device)


def _rows_of(shape: tuple[int, ...]) -> tuple[int, int]:
    return int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]


def card() -> CudaTarget:
    from .targets.cuda.target import CudaTarget

    target = registry.target("cuda")
    assert isinstance(target, CudaTarget)
    return target


def _key_for(dtype: np.dtype[np.generic]) -> ArrayKey | None:
    try:
        return key_for(dtype)
    except UnsupportedTypeError:
        return None
