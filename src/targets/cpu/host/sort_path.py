"""The fast path of sorts along one axis: packs strided arrays, and leaves short ones to NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ....types.specs import Spec
from ...base import HostArray
from .numpy_sort import SHORT_STABLE
from .packing import with_last
from .short_sort import ShortSort, Sorted, sort_stably, turning
from .sort import sort_rows

PLAIN = "biufMm"
SHORT = 1 << 10  # elements: below, NumPy's sort alone
_FEW_STABLE = 128  # elements in all, that NumPy's stable sort is given in any row


@attrs.frozen(eq=False)
class SortPath:
    """Along one axis, or of the flattened array."""

    policy: HostSortPolicy
    axis: int | None
    order: SortOrder
    stable: bool
    dtype: np.dtype[np.generic]
    short: ShortSort | None  # of arrays that are given to NumPy's sort as they are
    function: Sorted = attrs.field(init=False)
    into_short: Callable[[HostArray, HostArray], bool] | None = attrs.field(init=False)

    @classmethod
    def of(cls, policy: HostSortPolicy, given: Spec, axis: int | None, order: SortOrder, stable: bool) -> SortPath:
        dtype, has_rows = given.dtype, len(given.shape) > 1 and axis is not None
        # More needs threads, or a radix sort, for which rows are long; float16 is sorted as integers.
        most = policy.serial_below if has_rows else min(policy.serial_below, policy.radix_from)
        most = SHORT if dtype.kind == "f" and dtype.itemsize == 2 else max(SHORT, most)
        short = ShortSort(dtype, axis, has_rows, order, most, policy.radix_from) if dtype.kind in PLAIN else None
        return cls(policy, axis, order, stable, dtype, short)

    def __attrs_post_init__(self) -> None:
        function = self._sorted if self.short is None else self.short.sorter(self._sorted)
        object.__setattr__(self, "function", function)
        into_short = None if self.short is None or self.axis is None else self.short.writer(function)
        object.__setattr__(self, "into_short", into_short)

    def __call__(self, x: HostArray, /, *_: HostArray) -> HostArray:
        return self.function(x)

    def _sorted(self, x: HostArray) -> HostArray:
        if self.axis is None:
            return self._flat(x)
        if self._keeps_ties_by_numpy(x):
            return self._sorted_stably(x)
        results = new_array(x.shape, x.dtype) if x.flags.c_contiguous else np.empty_like(x)
        self._sort_along(self.axis, x, results)
        return results

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray], /) -> None:
        x, results = arrays[0], outs[0]
        if self.into_short is not None and self.into_short(x, results):
            return
        if self.axis is None or (self.short is not None and self.short.takes(x)):
            results[...] = self.function(x)
        elif self._keeps_ties_by_numpy(x):
            results[...] = self._sorted_stably(x)
        else:
            self._sort_along(self.axis, x, x if _are_one(x, results) else results)

    def _keeps_ties_by_numpy(self, x: HostArray) -> bool:
        """Whether floats are few, or rows short: NumPy's stable sort then takes less time than putting ties back."""
        if not self.stable or self.dtype.kind != "f" or self.axis is None:
            return False
        return x.size <= _FEW_STABLE or (x.size < self.policy.serial_below and x.shape[self.axis] <= SHORT_STABLE)

    def _sorted_stably(self, x: HostArray) -> HostArray:
        results = x.copy("K")
        sort_stably(results, -1 if self.axis is None else self.axis, turning(self.order, "f"))
        return results

    def _flat(self, x: HostArray) -> HostArray:
        flat = x.flatten()
        self._sort_along(-1, flat, flat)
        return flat

    def _sort_along(self, axis: int, x: HostArray, results: HostArray) -> None:
        if x.ndim > 1:
            axes, in_place = with_last(x, axis), results is x
            x = x.transpose(axes)
            results = x if in_place else results.transpose(axes)
        sort_rows(x, results, self.order, self.policy, self.stable)


def _are_one(x: HostArray, results: HostArray) -> bool:
    """Whether both are the same elements in the same layout."""
    if x is results:
        return True
    return x.strides == results.strides and x.__array_interface__["data"] == results.__array_interface__["data"]
