"""Merges short host arrays by NumPy's stable sort of their concatenation, whose timsort finds the two runs; and joins
longer ones of which one lies behind the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from ....operations.argsort import different_sizes
from ....operations.merge import has_ties_in_order
from ....types.indices import SortOrder
from ...base import HostArray
from .float_ties import are_ties_alike
from .key_words import ordered_ranks, ordered_words
from .numpy_sort import ascending, sort_stably

_MOST = 1 << 15  # elements of all arrays: of more the kernels take less time

_concatenate = cast("Callable[[tuple[HostArray, ...]], HostArray]", np.concatenate)


class ShortMerge:
    """Two arrays of a dtype, with a value for each of their elements or without."""

    most = _MOST

    def __init__(self, order: SortOrder, dtype: np.dtype[np.generic], with_values: bool) -> None:
        self._order, self._ascends, self._has_ties = order, order is SortOrder.ASCENDING, dtype.kind == "f"
        self.function: Callable[..., object] = self._merge_by_key if with_values else self._merge

    def suits(self, arrays: Sequence[HostArray]) -> bool:
        """Whether of longer arrays one lies behind the other, so that nothing is to be done but to join them."""
        x, y = arrays[0], arrays[len(arrays) // 2]
        if not (x.size and y.size):
            return False
        return bool(x[-1] < y[0] if self._ascends else x[-1] > y[0])

    def _merge(self, x: HostArray, y: HostArray) -> HostArray:
        keys = _concatenate((x, y))  # in the machine's byte order
        if keys.size <= self.most:  # else one lies behind the other
            words = self._words(keys, x, y) if self._has_ties else None
            if words is not None:
                keys = keys.take(words.argsort(kind="stable"))
            elif self._ascends:
                keys.sort(-1, "stable")
            else:
                sort_stably(keys, -1, self._order)
        return keys if keys.dtype is x.dtype else keys.astype(x.dtype, copy=False)

    def _merge_by_key(
        self, x: HostArray, values: HostArray, y: HostArray, other_values: HostArray
    ) -> tuple[HostArray, HostArray]:
        if x.size != values.size or y.size != other_values.size:
            name, *pair = ("values", x, values) if x.size != values.size else ("other_values", y, other_values)
            raise different_sizes(str(name), *[array.shape for array in pair])
        keys, moved = _concatenate((x, y)), _concatenate((values, other_values))
        if 2 * keys.size <= self.most:
            words = self._words(keys, x, y)
            places = (ascending(keys, self._order) if words is None else words).argsort(kind="stable")
            keys, moved = keys.take(places), moved.take(places)
        return keys.astype(x.dtype, copy=False), moved.astype(values.dtype, copy=False)

    def _words(self, keys: HostArray, x: HostArray, y: HostArray) -> HostArray | None:
        """Words that ascend as such keys should, where NumPy does not order floats as we do."""
        if not self._has_ties or are_ties_alike(keys):
            return None
        # As equals where they tie and a part has its ties in another order. Kernels take long ones so, too: see
        # algos/merge_path.py.
        are_equal = not (has_ties_in_order(x, self._order) and has_ties_in_order(y, self._order))
        return (ordered_ranks if are_equal else ordered_words)(keys, self._order)
