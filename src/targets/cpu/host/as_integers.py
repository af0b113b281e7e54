"""Extremes of times and bools, by the loops of the integers that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

from ....operations.reduce import Reducer
from ...base import HostArray
from .reducers import LONG, HostCall

Make: TypeAlias = Callable[[Reducer, np.dtype[np.generic]], HostCall]  # the reduction of elements of a dtype

# Which reduction finds the first NaT, where there is one.
FIRST_NAT = {
    Reducer.MIN: Reducer.MIN, Reducer.MAX: Reducer.MIN, Reducer.ARGMIN: Reducer.ARGMIN, Reducer.ARGMAX: Reducer.ARGMIN
}  # fmt: skip
_NAT = np.int64(np.iinfo(np.int64).min)
_FEW = 1 << 14  # times: NumPy has compared them by then
_INT64, _BYTE, _BOOL = (np.dtype(name) for name in ("i8", "u1", "?"))


def of_times(fold: Reducer, dtype: np.dtype[np.generic], make: Make) -> HostCall:
    """NaT is the least integer, and yet the result of any that has one: it is looked for."""
    by_numpy, extreme, least, first = (
        make(fold, dtype),
        *(make(f, _INT64) for f in (fold, Reducer.MIN, FIRST_NAT[fold])),
    )
    finds_nat = fold is FIRST_NAT[fold]

    def reduced(x: HostArray) -> object:
        if x.size < _FEW or type(x) is not np.ndarray:
            return by_numpy(x)
        ints = x.view(np.int64)
        found = cast(HostArray, extreme(ints))
        if not finds_nat and np.size(found) < x.size:
            has_nat = np.equal(cast(HostArray, least(ints)), _NAT)
            if has_nat.any():
                found = cast(HostArray, np.where(has_nat, cast(HostArray, first(ints)), found)[()])
        return found if fold.finds_index else found.view(dtype)

    return reduced


def places_of_bools(fold: Reducer, axis: int, make: Make) -> HostCall:
    """NumPy looks at many bools of a row at once, but at those that lie apart one by one."""
    by_numpy, of_bytes = make(fold, _BOOL), make(fold, _BYTE)

    def found(x: HostArray) -> object:
        if x.size < LONG or x.strides[axis] == 1 or type(x) is not np.ndarray:
            return by_numpy(x)
        return of_bytes(np.not_equal(x.view(np.uint8), 0).view(np.uint8))

    return found
