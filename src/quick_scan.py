"""The short way to add up a packed array of cupy's: a plan is found once for a dtype and shape, and then launched."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .algos.choice import fitting_scan
from .algos.scan import scan_rows, shares
from .api import rows_together
from .quick_card import card, ran
from .reducing import result_dtype
from .targets.base import Target
from .types.dtypes import number_for
from .types.elements import dtype_of
from .types.indices import ScanKind
from .types.monoids import Monoid, RunningSum
from .types.params import ScanPolicy

if TYPE_CHECKING:
    import cupy

    from .targets.cuda.plan import Plan

E = TypeVar("E")
S = TypeVar("S")


def cumsum_on_card(x: cupy.ndarray, axis: object) -> object | None:
    """Neither waits for the card nor copies; None where the long way is needed."""
    import cupy

    device = cupy.cuda.runtime.getDevice()
    if x.size == 0 or x.device.id != device:
        return None
    if axis is None:
        shape: tuple[int, ...] = (x.size,)
    elif axis in (-1, x.ndim - 1) and x.ndim:
        shape = x.shape
    else:
        return None
    wanted = result_dtype(np.cumsum, x.dtype)
    plan = _plan(x.dtype, wanted, x.size // shape[-1], shape[-1], device)
    if plan is None:
        return None
    sums = cupy.empty(shape, wanted)
    return sums if ran(plan, (x.data.ptr, sums.data.ptr)) else None


def scanned_together(monoid: Monoid[E, S], rows: int, length: int, policy: ScanPolicy, target: Target) -> int:
    """How many of so many rows one run can take; an error where it cannot take one."""
    largest = max(dtype_of(monoid.element).itemsize, dtype_of(monoid.state).itemsize)
    info = target.info
    return rows_together("x", length, largest, shares(rows, length, policy)[1], info.name, info.limits)


@lru_cache(maxsize=256)
def _plan(
    dtype: np.dtype[np.generic], wanted: np.dtype[np.generic], rows: int, length: int, device: int
) -> Plan | None:
    """The plan that adds up all rows at once, if there is one and the sums need no conversion."""
    total, target = RunningSum(number_for(dtype, "x")), card()
    policy = fitting_scan(total.state, length, target.info)
    if (
        dtype_of(total.state).itemsize != wanted.itemsize
        or scanned_together(total, rows, length, policy, target) < rows
    ):
        return None
    return target.prepared(scan_rows(total, rows, length, ScanKind.INCLUSIVE, policy), device)
