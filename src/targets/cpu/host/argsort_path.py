"""The fast path of argsorts along one axis: leaves short arrays to NumPy alone, and makes of elements numbers that
ascend as they should."""

from __future__ import annotations

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from .argsort import (
    BY_DIGITS,
    LEAST_MIXED,
    are_packed_soon,
    argsort_by_network,
    argsort_row,
    argsort_rows,
    is_counted,
    places_shared,
)
from .copies import along_rows
from .key_words import HALF, INDEX, Places, ordered_words
from .numpy_sort import FEW_HALVES, ascending, places_in_order
from .packed_argsort import places_packed
from .signed_bits import are_ties_alike

_UP = SortOrder.ASCENDING
_FEW_IN_ROWS = 1 << 10  # elements


class ArgsortPath:
    """The permutation that sorts along one axis, or of the flattened array. `by_bits`, of floats: -0.0 before 0.0, and
    NaNs by their bits; of all else that ties the bits are alike."""

    def __init__(
        self, policy: HostSortPolicy, dtype: np.dtype[np.generic], axis: int | None, order: SortOrder, by_bits: bool
    ) -> None:
        self._policy, self._axis, self._order, self._by_bits = policy, axis, order, by_bits
        self._is_turned = order is not _UP or dtype.kind not in "iuf"
        self._is_narrow = dtype.itemsize <= 2
        # How many, in one row and in several, NumPy's own argsort takes no longer for.
        of_row = LEAST_MIXED if not self._is_narrow else FEW_HALVES if dtype == HALF else policy.deal_from
        self._few = of_row, 0 if self._is_narrow else _FEW_IN_ROWS

    def run(self, x: HostArray, /) -> HostArray:
        x, axis = (x.reshape(-1), 0) if self._axis is None or x.ndim == 0 else (x, self._axis)
        size, length = x.size, x.shape[axis]
        if size == 0 or length == 1:
            return np.zeros(x.shape, INDEX)
        is_row = length == size  # such as a table's column
        if size < self._few[not is_row] and (not self._by_bits or are_ties_alike(x)):
            own = ascending(x, self._order) if self._order is not _UP else x
            if own is x and self._is_narrow:
                own = x.copy()  # needs_own_memory says why
            found: Places = own.argsort(axis, "stable")
            return found
        if is_row:
            return argsort_row(self._numbers(x.reshape(-1)), self._policy).reshape(x.shape)
        return self._of_rows(x, axis)

    def _numbers(self, x: HostArray) -> HostArray:
        """What ascends and ties as the elements should."""
        if self._by_bits:
            return ordered_words(x, self._order)
        return ascending(x, self._order) if self._is_turned else x

    def _of_rows(self, x: HostArray, axis: int) -> HostArray:
        policy, length = self._policy, x.shape[axis]
        by_network = None if self._by_bits else argsort_by_network(x, axis, self._order, policy)
        if by_network is not None:
            return by_network
        x = self._numbers(x)
        if x.size < policy.serial_below and not policy.packs(x.size, length, x.dtype):
            if not are_packed_soon(x, axis):
                return places_in_order(x, axis)
            return along_rows(x, axis, lambda rows: (places_packed(rows, policy),))[0]
        if is_counted(x) and length < policy.deal_from and abs(x.strides[axis]) > x.itemsize:
            return places_shared(x, axis, BY_DIGITS)  # none are transposed
        return along_rows(x, axis, lambda rows: (argsort_rows(rows, policy),))[0]
