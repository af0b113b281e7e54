"""The fast path of sorts along one axis: packs strided arrays, and gives short ones to NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.host import copy_elements
from ....arrays.recycled import new_array
from ....types.dtypes import native
from ....types.indices import SortOrder
from ....types.specs import Spec
from ...base import HostArray
from .numpy_sort import SHORT_STABLE
from .row_blocks import sort_many_rows
from .short_sort import Sorted, one_row_sorter, rows_sorter, short_writer, sort_stably, turned_as, turning
from .sort import sort_rows, sort_spread_rows

PLAIN = "biufMm"
SHORT = 1 << 10  # elements: below, NumPy's sort alone
_FEW_STABLE = 128  # elements in all, that NumPy's stable sort is given in any row


def short_sort(
    policy: HostSortPolicy, given: Spec, axis: int | None, order: SortOrder
) -> tuple[int, bool, np.ufunc | None]:
    """Up to how many elements NumPy's own sort is tried, and what is to be known of them."""
    kind, ndim = given.dtype.kind, len(given.shape)
    if kind not in PLAIN:
        return 0, False, None
    turn = turning(order, kind)
    is_half = given.dtype == np.float16
    if ndim == 1 or axis is None:
        return (SHORT if is_half else max(SHORT, min(policy.serial_below, policy.radix_from))), False, turn
    # float16 is sorted as integers; all else needs threads, or rows worth a radix sort.
    return (SHORT if is_half else max(SHORT, policy.serial_below)), True, turn


@attrs.frozen(eq=False)
class SortPath:
    """Along one axis, or of the flattened array."""

    policy: HostSortPolicy
    axis: int | None
    order: SortOrder
    stable: bool
    dtype: np.dtype[np.generic]
    short: int  # so many elements, or fewer, are given to NumPy's sort as they are
    has_rows: bool  # whether there may be several
    turn: np.ufunc | None  # done to all before and after
    function: Sorted = attrs.field(init=False)
    into_short: Callable[[HostArray, HostArray], bool] | None = attrs.field(init=False)
    sorts_at_once: bool = attrs.field(init=False)  # short arrays, by one call of NumPy's: they are whole all the time

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "function", self._bound())
        is_plain = self.turn is None and self.dtype.isnative and self.dtype.kind != "f"
        object.__setattr__(self, "sorts_at_once", is_plain and self.axis is not None)
        into_short = (
            None if self.axis is None else short_writer(self.function, self._is_short, self.axis, self.sorts_at_once)
        )
        object.__setattr__(self, "into_short", into_short)

    def _bound(self) -> Sorted:
        """What is known of the signature is bound, and a short array that NumPy sorts as we do asks no more."""
        short, axis, turn, go_on, dtype = self.short, self.axis, self.turn, self._sorted, native(self.dtype)
        if not short:
            return go_on
        seen = dtype if turn is None else turned_as(dtype)
        if axis is None or not self.has_rows:
            sort = one_row_sorter(seen, short, axis is None, turn, go_on)
        else:
            sort = rows_sorter(seen, short, self.policy.radix_from, axis, turn, go_on)

        def sort_seen(x: HostArray) -> HostArray:
            return sort(x.view(seen)).view(dtype) if x.size <= short else go_on(x)

        def sort_swapped(x: HostArray) -> HostArray:
            if x.size > short:
                return go_on(x)
            return sort(x.astype(dtype).view(seen)).byteswap(True).view(x.dtype)

        return sort_swapped if not self.dtype.isnative else sort if seen == dtype else sort_seen

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
        is_short = self._is_short(x)
        if self.sorts_at_once and is_short:
            if results is not x:
                results[...] = x
            results.sort(-1 if self.axis is None else self.axis)
        elif self.axis is None or is_short:
            results[...] = self.function(x)
        elif self._keeps_ties_by_numpy(x):
            results[...] = self._sorted_stably(x)
        else:
            self._sort_along(self.axis, x, x if _are_one(x, results) else results)

    def _is_short(self, x: HostArray) -> bool:
        """Whether NumPy's sort alone is tried."""
        if x.size > self.short:
            return False
        return self.axis is None or not self.has_rows or x.shape[self.axis] < self.policy.radix_from

    def _keeps_ties_by_numpy(self, x: HostArray) -> bool:
        """Whether floats are few, or rows short: NumPy's stable sort then takes less time than putting ties back."""
        if not self.stable or self.dtype.kind != "f" or self.axis is None:
            return False
        return x.size <= _FEW_STABLE or (x.size < self.policy.serial_below and x.shape[self.axis] <= SHORT_STABLE)

    def _sorted_stably(self, x: HostArray) -> HostArray:
        results = x.astype(native(x.dtype))
        sort_stably(results, -1 if self.axis is None else self.axis, self.turn)
        return results.astype(x.dtype, copy=False)

    def _flat(self, x: HostArray) -> HostArray:
        flat = x.flatten()
        self._sort_along(-1, flat, flat)
        return flat

    def _sort_along(self, axis: int, x: HostArray, results: HostArray) -> None:
        in_place = results is x
        if x.shape[axis] < 2:
            if not in_place:
                results[...] = x
            return
        if not x.size:
            return
        may_tie = self.stable and x.dtype.kind == "f"
        if not may_tie and sort_many_rows(x, results, axis, self.order, self.policy):
            return
        if x.ndim > 1:  # the other axes as they lie: rows that follow each other in memory are found so
            axes = sorted(range(x.ndim), key=lambda number: -abs(x.strides[number]))
            axes.remove(axis % x.ndim)
            axes.append(axis % x.ndim)
            x, results = x.transpose(axes), results.transpose(axes)
        if is_packed(x) and is_packed(results):
            shape = x.size // x.shape[-1], x.shape[-1]
            rows = x.reshape(shape)
            sort_rows(rows, rows if in_place else results.reshape(shape), self.order, self.policy, self.stable)
            return
        if x.ndim > 1 and sort_spread_rows(x, results, self.order, self.policy, self.stable):
            return
        packed = results if is_packed(results) else np.empty(x.shape, native(x.dtype))
        copy_elements(x, packed)
        rows = packed.reshape(-1, x.shape[-1])
        sort_rows(rows, rows, self.order, self.policy, self.stable)
        if packed is not results:
            copy_elements(packed, results)


def _are_one(x: HostArray, results: HostArray) -> bool:
    """Whether both are the same elements in the same layout."""
    if x is results:
        return True
    return x.strides == results.strides and x.__array_interface__["data"] == results.__array_interface__["data"]


def is_packed(array: HostArray) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned and array.dtype.isnative
