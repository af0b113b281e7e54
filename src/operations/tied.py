"""Tied floats: `sort` puts -0.0 before 0.0 and NaNs in the order of their bits; `np.sort` and stable sorts leave them
as they come, and such an array is no less sorted. Both lie together, so a binary search finds them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..types.dtypes import key_for
from ..types.indices import SortOrder
from ..types.keys import FloatKey


def has_ties_in_order(x: npt.NDArray[Any], order: SortOrder) -> bool:
    """Whether the zeros and NaNs of a sorted array are in `sort`'s order, by binary search for them."""
    key = cast("FloatKey[Any, Any]", key_for(x.dtype))
    bits, up = x.view(f"{x.dtype.byteorder}u{x.itemsize}"), order is SortOrder.ASCENDING
    item: Callable[[int], float] = x.item
    numbers = range(x.size)
    if x.size and item(x.size - 1) != item(x.size - 1):
        numbers = range(bisect_left(numbers, True, key=lambda place: bool(item(place) != item(place))))
        if not _ascend(bits[len(numbers) :], key):
            return False

    def mirrored(place: int) -> float:
        return -item(place)

    rising = item if up else mirrored
    zeros = bits[bisect_left(numbers, 0.0, key=rising) : bisect_right(numbers, 0.0, key=rising)]
    negative = np.count_nonzero(zeros)
    return bool(negative == 0 or negative == np.count_nonzero(zeros[:negative] if up else zeros[-negative:]))


def _ascend(nans: npt.NDArray[Any], key: FloatKey[Any, Any]) -> bool:
    """Whether the words of NaNs ascend; these are the same in both orders."""
    of = nans.dtype.newbyteorder("=").type
    words = np.where(nans & of(key.sign), ~nans, nans ^ of(key.sign)) - of(key.lowest)
    return bool((words[1:] >= words[:-1]).all())
