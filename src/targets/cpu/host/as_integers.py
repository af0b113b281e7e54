"""Where the extremes of times and bools are, by the loops of the integers that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

from ....operations.reduce import Reducer
from ...base import HostArray
from .reducers import LONG, HostCall

Make: TypeAlias = Callable[[Reducer, np.dtype[np.generic]], HostCall]  # the reduction of elements of a dtype

_NAT = np.int64(np.iinfo(np.int64).min)
_FEW = 1 << 14  # times: NumPy has compared them by then
_HEAD, _OF = 1 << 5, 1 << 3  # bools of each row that are looked at first, of so many times as many
_INT64, _BYTE, _BOOL = (np.dtype(name) for name in ("i8", "u1", "?"))


def places_of_times(fold: Reducer, dtype: np.dtype[np.generic], make: Make) -> HostCall:
    """NaT is the least integer, and yet the first one is the greatest of times, too: it is looked for."""
    by_numpy, of_extreme, of_least = make(fold, dtype), make(fold, _INT64), make(Reducer.ARGMIN, _INT64)
    least = make(Reducer.MIN, _INT64)

    def found(x: HostArray) -> object:
        if x.size < _FEW:
            return by_numpy(x)
        ints = x.view(np.int64)
        places = of_extreme(ints)
        if fold is Reducer.ARGMAX:
            has_nat = np.equal(cast(HostArray, least(ints)), _NAT)
            if has_nat.any():
                return cast(object, np.where(has_nat, cast(HostArray, of_least(ints)), cast(HostArray, places))[()])
        return places

    return found


def places_of_bools(fold: Reducer, axis: int, make: Make) -> HostCall:
    """NumPy stops at the first bool in a row that settles it, but makes rows of columns before."""
    by_numpy, of_bytes, settles = make(fold, _BOOL), make(fold, _BYTE), fold is Reducer.ARGMAX
    begin = (*(slice(None),) * axis, slice(_HEAD))

    def found(x: HostArray) -> object:
        if x.size < LONG or abs(x.strides[axis]) <= min(map(abs, x.strides)):
            return by_numpy(x)
        if x.shape[axis] >= _OF * _HEAD:
            head: HostArray = x[begin]
            if settles in head[(0,) * axis].T[(0,) * (x.ndim - 1 - axis)] and (head == settles).any(axis).all():
                return by_numpy(head)
        return of_bytes(np.not_equal(x.view(np.uint8), 0).view(np.uint8))

    return found
