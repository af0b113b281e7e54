"""The short way to add up a packed array of cupy's: a plan is found once for a dtype and length, and then launched."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .algos.choice import fitting_scan
from .algos.scan import scan_array
from .algos.sorts import LARGEST_U32
from .quick_card import card, ran
from .reducing import result_dtype
from .types.dtypes import number_for
from .types.elements import dtype_of
from .types.indices import ScanKind
from .types.monoids import Sum

if TYPE_CHECKING:
    import cupy

    from .targets.cuda.plan import Plan


def cumsum_on_card(x: cupy.ndarray) -> object | None:
    """Neither waits for the card nor copies; None where the long way is needed."""
    import cupy

    device = cupy.cuda.runtime.getDevice()
    if x.size == 0 or x.device.id != device:
        return None
    wanted = result_dtype(np.cumsum, x.dtype)
    plan = _plan(x.dtype, wanted, x.size, device)
    if plan is None:
        return None
    sums = cupy.empty(x.size, wanted)
    return sums if ran(plan, (x.data.ptr, sums.data.ptr)) else None


@lru_cache(maxsize=256)
def _plan(dtype: np.dtype[np.generic], wanted: np.dtype[np.generic], length: int, device: int) -> Plan | None:
    """The plan that adds up so many elements, if the sums need no conversion."""
    total, target = Sum(number_for(dtype, "x")), card()
    if dtype_of(total.state).itemsize != wanted.itemsize or length > LARGEST_U32:
        return None
    policy = fitting_scan(total.state, length, target.info)
    return target.prepared(scan_array(total, length, ScanKind.INCLUSIVE, policy), device)
