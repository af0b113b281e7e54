"""Merges short host arrays by NumPy's stable sort of their concatenation, whose timsort finds the two runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import numpy as np

from ....operations.tied import has_ties_in_order
from ....types.dtypes import key_for, native
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from .key_words import Elements, bits_of, ordered_ranks, ordered_words
from .short_sort import FEW_IN_ORDER, has_minus_zero, is_ordered_by_numpy, turned_as, turning

_MOST = 1 << 13  # elements of both: of more the kernels take less time


@attrs.frozen(eq=False)
class ShortMerge:
    """Two arrays of a dtype."""

    order: SortOrder
    dtype: np.dtype[np.generic]
    most: int = _MOST
    function: Callable[[HostArray, HostArray], HostArray] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "function", self._bound())

    def __call__(self, *arrays: HostArray) -> HostArray:
        return self.function(*arrays)

    def _bound(self) -> Callable[[HostArray, HostArray], HostArray]:
        kind, order, turn = self.dtype.kind, self.order, turning(self.order, self.dtype.kind)
        concatenate = cast("Callable[[tuple[HostArray, ...]], HostArray]", np.concatenate)
        seen = native(self.dtype) if turn is None else turned_as(native(self.dtype))

        def merge(x: HostArray, y: HostArray) -> HostArray:
            keys = concatenate((x, y))  # in the machine's byte order
            numbers = keys if keys.dtype is seen else keys.view(seen)
            if turn is not None:
                turn(numbers, numbers)
            numbers.sort(-1, "stable")
            if turn is not None:
                turn(numbers, numbers)
            return keys

        zero: HostArray = np.zeros((), native(self.dtype))

        def merge_floats(x: HostArray, y: HostArray) -> HostArray:
            keys = concatenate((x, y))
            size = keys.size
            if size <= FEW_IN_ORDER and count_nonzero(keys) != size and has_minus_zero(keys):
                return keys[_words(keys, order, x, y).argsort(kind="stable")]
            if turn is not None:
                turn(keys, keys)
            keys.sort(-1, "stable")
            try:
                greatest = keys[-1]  # NaN, where there is one
            except IndexError:
                return keys  # without elements
            is_doubtful = bool(greatest != greatest)
            if size > FEW_IN_ORDER:  # then zeros are found sooner in what is sorted
                first = int(keys.searchsorted(zero))
                is_doubtful = is_doubtful or (first < size and not keys[first])
            if turn is not None:
                turn(keys, keys)
            if not is_doubtful or is_ordered_by_numpy(keys):
                return keys
            return keys[_words(keys, order, x, y).argsort(kind="stable")]

        made = merge_floats if kind == "f" else merge
        return made if self.dtype.isnative else lambda x, y: made(x, y).astype(x.dtype)


def _words(keys: Elements, order: SortOrder, *parts: HostArray) -> Elements:
    """Integers that compare as the keys do, which are those of sorted parts: floats by their bits, but as equals where
    they tie and a part has its ties in another order. Kernels take long ones so, too: see algos/merge_ties.py."""
    are_equal = keys.dtype.kind == "f" and not all(has_ties_in_order(part, order) for part in parts)
    return (ordered_ranks if are_equal else ordered_words)(key_for(keys.dtype), bits_of(keys), order)


@attrs.frozen(eq=False)
class ShortMergeByKey:
    """Two arrays with a value for each of their elements."""

    order: SortOrder
    most: int = _MOST

    def __call__(self, *arrays: HostArray) -> tuple[HostArray, HostArray]:
        x, values, y, other_values = arrays
        keys: Elements = np.concatenate((x, y))
        words = keys if self._is_numpys(keys) else _words(keys, self.order, x, y)
        places = words.argsort(kind="stable")
        all_values: Elements = np.concatenate((values, other_values))
        merged = keys[places].astype(x.dtype, copy=False), all_values[places].astype(values.dtype, copy=False)
        return cast("tuple[HostArray, HostArray]", merged)

    def _is_numpys(self, keys: HostArray) -> bool:
        """Whether NumPy's order is ours."""
        if self.order is SortOrder.DESCENDING:
            return False
        return keys.dtype.kind in "iu" or (keys.dtype.kind == "f" and is_ordered_by_numpy(keys))
