"""Merges of two short arrays by NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from ....operations.argsort import different_sizes
from ....operations.merge import has_ties_in_order
from ....types.bounded import Bounded
from ....types.dtypes import name_of
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from .key_words import ordered_ranks, ordered_words
from .numpy_sort import ascending, places_in_order, sort_by_numpy
from .numpy_speed import numpy_sorts_slowly
from .signed_bits import are_ties_alike

_MOST_LENGTHS = 1 << 10
_FEW = 1 << 11  # elements of which a look whether to sort or to merge them takes longer than it can save
_LOOKS, _APART = 16, 8  # at so many places of the longer array, at elements so far apart

_concatenate = cast("Callable[[tuple[HostArray, ...]], HostArray]", np.concatenate)


class ShortMerge:
    """Merges two short arrays of a dtype, with a value for each of their elements or without, by NumPy's stable sort of
    their concatenation, whose timsort finds the two runs; or, where it would go from one to the other all the time, by
    its vectorised sort. And longer ones of which one lies behind the other, or whose lengths are new: to plan kernels
    for these takes longer."""

    most = 1 << 15  # elements of all arrays: of more the kernels take less time
    most_new = 1 << 17  # the same where kernels are to be planned yet

    def __init__(self, order: SortOrder, dtype: np.dtype[np.generic], with_values: bool) -> None:
        self._order, self._ascends, self._has_ties = order, order is SortOrder.ASCENDING, dtype.kind == "f"
        # elements at most that NumPy has a vectorised sort for, which is sooner done than its merge
        most_sorted = {"i2": self.most, "i4": self.most, "i8": _FEW, "f4": self.most, "f8": self.most}
        self._most_sorted = most_sorted.get(name_of(dtype).replace("u", "i"), 0)
        self.function: Callable[..., object] = self._merge_by_key if with_values else self._merge
        self._seen = Bounded[object, bool](_MOST_LENGTHS)

    def suits(self, arrays: Sequence[HostArray]) -> bool:
        """Whether longer arrays need but be joined, or come for the first time."""
        x, y = arrays[0], arrays[len(arrays) // 2]
        if self._are_joined(x, y):
            return True
        lengths = x.size, y.size
        if sum(lengths) * len(arrays) > 2 * self.most_new or lengths in self._seen:
            return False
        self._seen[lengths] = True
        return True

    def _are_joined(self, x: HostArray, y: HostArray) -> bool:
        """Whether one lies behind the other, or is empty, so that nothing is to be done but to join them."""
        if not (x.size and y.size):
            return True
        return bool(x[-1] < y[0] if self._ascends else x[-1] > y[0])

    def _merge(self, x: HostArray, y: HostArray) -> HostArray:
        keys = _concatenate((x, y))
        if keys.size <= self.most or not self._are_joined(x, y):
            words = self._words(keys, x, y) if self._has_ties else None
            if words is not None:
                keys = keys.take(words.argsort(kind="stable"))
            else:
                sort_by_numpy(keys, -1, self._order, None if self._is_sorted_sooner(x, y) else "stable")
        return keys

    def _is_sorted_sooner(self, x: HostArray, y: HostArray) -> bool:
        """Whether NumPy's vectorised sort takes less time than its merge. NaNs, whose bits it may lose, are not for
        it."""
        size = x.size + y.size
        if not 0 < size <= self._most_sorted or numpy_sorts_slowly(x.itemsize):
            return False
        if self._has_ties and any(array.size and array.item(-1) != array.item(-1) for array in (x, y)):
            return False
        return size <= _FEW or x.itemsize == 2 or self._are_mixed(x, y)  # of 16 bits the stable sort merges nothing

    def _are_mixed(self, x: HostArray, y: HostArray) -> bool:
        """Whether elements of the shorter array are among any few of the longer one."""
        long, short = (x, y) if x.size > y.size else (y, x)
        if not self._ascends:
            long, short = long[::-1], short[::-1]
        step = (long.size - _APART) // _LOOKS
        before, behind = short.searchsorted(long[:-_APART:step]), short.searchsorted(long[_APART::step])
        return 2 * count_nonzero(before != behind) > before.size

    def _merge_by_key(
        self, x: HostArray, values: HostArray, y: HostArray, other_values: HostArray
    ) -> tuple[HostArray, HostArray]:
        if x.size != values.size or y.size != other_values.size:
            name, *pair = ("values", x, values) if x.size != values.size else ("other_values", y, other_values)
            raise different_sizes(str(name), *[array.shape for array in pair])
        keys, moved = _concatenate((x, y)), _concatenate((values, other_values))
        if 2 * keys.size <= self.most or not self._are_joined(x, y):
            words = self._words(keys, x, y)
            places = places_in_order(ascending(keys, self._order) if words is None else words, -1)
            keys, moved = keys.take(places), moved.take(places)
        return keys, moved.astype(values.dtype, copy=False)  # fields are packed where arrays are joined

    def _words(self, keys: HostArray, x: HostArray, y: HostArray) -> HostArray | None:
        """Words that ascend as such keys should, where NumPy does not order floats as we do."""
        if not self._has_ties or are_ties_alike(keys):
            return None
        # As equals where they tie and a part has its ties in another order. Kernels take long ones so, too: see
        # algos/merge_path.py.
        are_equal = not (has_ties_in_order(x, self._order) and has_ties_in_order(y, self._order))
        return (ordered_ranks if are_equal else ordered_words)(keys, self._order)
