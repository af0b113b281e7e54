"""Fast paths on host arrays without kernels: NumPy's SIMD sort and loops, shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from ....algos.host_sort import HostSort, HostSortPolicy
from ....arrays.host import is_packed
from ....arrays.recycled import new_array
from ....operations.argsort import Argsort, SortPairs, different_sizes
from ....operations.base import Operation
from ....operations.merge import Merge
from ....operations.reduce import Reduce
from ....operations.scan import Cumsum
from ....operations.select import TopK
from ....operations.sort import Sort
from ....types.dtypes import native
from ....types.indices import ScanKind, SortOrder
from ....types.specs import Spec
from ...base import HostArray, Native
from .argsort import argsort_rows, argsort_runs
from .cumsum import from_zero, host_cumsum, shifted
from .float_ties import are_ties_alike
from .key_words import ordered_words
from .merge import ShortMerge
from .numpy_sort import places_in_rows, turned_as, turning
from .reduce import host_reduction
from .row_networks import argsort_short_rows
from .sort_path import SHORT, SortPath
from .strides import along_rows, copy_shared, packed, with_last
from .top_k import SHORT_ROWS, taken, top_k_of_row, top_k_rows

Turner: TypeAlias = Callable[[HostArray], HostArray]
Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.intp]]"
_INDEX: np.dtype[np.intp] = np.dtype(np.intp)
_SCANNED = 1 << 15  # elements of an exclusive scan: of more the kernels take less time
_MOST_AXES = 32  # of arrays that NumPy's own sorts take
_SHORT_HALVES = 1 << 9  # of float16, whose places NumPy finds more slowly


def fast_path(operation: Operation, given: Sequence[Spec], policy: HostSortPolicy) -> Native | None:
    """The CPU's implementation of an operation without a kernel; None if there is none."""
    if isinstance(operation, Sort | Argsort | SortPairs | Reduce | Merge | TopK) and operation.key is not None:
        from .keyed import keyed_path  # which reads kernels

        return keyed_path(operation, given, policy)
    if isinstance(operation, Sort | Argsort) and len(given[0].shape) > _MOST_AXES:
        return None
    match operation:
        case Sort(axis, order, stable, None, (None | HostSort()) as chosen):
            policy = policy if chosen is None else chosen.policy
            path = SortPath(policy, given[0], axis, order, stable)
            return Native(path.function, into=path.into, into_short=path.into_short)
        case Argsort(axis, order, None, by_bits):
            turn = _turner(given[0].dtype, order)
            is_plain = not by_bits and order is SortOrder.ASCENDING
            return Native(ArgsortPath(policy, axis, order, by_bits, is_plain, turn).run)
        case SortPairs(order, None):
            dtype = given[0].dtype
            by_bits = dtype.kind == "f"  # of all else that ties the bits are alike
            argsort = ArgsortPath(policy, 0, order, by_bits, order is SortOrder.ASCENDING)
            return Native(PairsPath(argsort.run, None if dtype.isnative else native(dtype)).run)
        case Reduce(axis, keepdims, reducer, None):
            found = host_reduction(reducer, given[0].dtype, len(given[0].shape), axis, keepdims)
            return None if found is None else Native(found)
        case Cumsum(axis):
            scan = host_cumsum(given[0].dtype, len(given[0].shape), axis)
            if scan is None:
                return None
            scan = from_zero(scan, axis) if operation.from_zero else scan
            return Native(scan) if operation.kind is ScanKind.INCLUSIVE else Native(shifted(scan, axis), most=_SCANNED)
        case Merge(order, None):
            merge = ShortMerge(order, given[0].dtype, operation.with_values)
            return Native(merge.function, most=merge.most, suits=merge.suits)
        case TopK(k, axis, order, _, None):
            return Native(TopKPath(policy, k, axis, order, _turner(given[0].dtype, order)).run, takes_empty=False)
        case _:
            return None


def _turner(dtype: np.dtype[np.generic], order: SortOrder) -> Turner | None:
    """What makes of elements that are to descend numbers that ascend."""
    turn = cast("Turner | None", turning(order, dtype.kind))
    plain, seen = native(dtype), turned_as(native(dtype))
    if turn is None or seen == plain:
        return turn
    return lambda x: turn(x.astype(plain, copy=False).view(seen))


@attrs.frozen(eq=False)
class ArgsortPath:
    """The permutation that sorts along one axis, or of the flattened array."""

    policy: HostSortPolicy
    axis: int | None
    order: SortOrder
    by_bits: bool = False  # -0.0 before 0.0, and NaNs by their bits
    is_plain: bool = False  # whether NumPy gives what we do of short arrays, but for zeros and NaNs
    turn: Turner | None = None  # what makes elements ascend, of short arrays whose order is another

    def run(self, x: HostArray, /) -> HostArray:
        axis = self.axis
        if not x.size:
            return np.empty((0,) if axis is None else x.shape, _INDEX)
        if axis is not None and x.ndim and x.shape[axis] == 1:
            return np.zeros(x.shape, _INDEX)
        if self.is_plain and self._is_short(x) and (not self.by_bits or are_ties_alike(x)):
            return x.argsort(-1 if x.ndim == 0 else axis, "stable")
        if self.turn is not None and x.ndim and self._is_short(x):
            return self.turn(x).argsort(axis, "stable")  # NaNs are last still
        if axis is None or x.ndim == 0:
            x, axis = x.reshape(-1), -1
        if axis in (-1, x.ndim - 1) and is_packed(x):
            return self._indices(x).reshape(x.shape)
        indices = cast(Indices, np.empty(x.shape, _INDEX))
        axes = with_last(x, axis)
        rows, found = x.transpose(axes), indices.transpose(axes)
        if self.by_bits or not argsort_short_rows(rows, found, self.order, self.policy):
            copy_shared(self._indices(packed(rows)).reshape(rows.shape), found)
        return indices

    def _is_short(self, x: HostArray) -> bool:
        """Whether NumPy's own argsort is as fast as ours."""
        if x.size <= _SHORT_HALVES:
            return True
        if x.dtype == np.float16:
            return False
        if x.size <= SHORT:
            return True
        length = x.size if self.axis is None else x.shape[self.axis]
        if x.itemsize <= 2 and x.size == length:
            return x.size < self.policy.deal_from
        return x.size < self.policy.serial_below and not self.policy.packs(x.size, length, x.dtype)

    def _indices(self, x: HostArray) -> Indices:
        order, policy = self.order, self.policy
        rows = x.reshape(-1, x.shape[-1])
        if self.by_bits and x.dtype.kind == "f":
            rows, order = ordered_words(rows, order), SortOrder.ASCENDING
        if len(rows) == 1:
            merged = argsort_runs(rows[0], order, policy)
            if merged is not None:
                return merged
        indices: Indices = new_array(rows.shape, _INDEX)
        argsort_rows(rows, indices, order, policy)
        return indices


@attrs.frozen(eq=False)
class PairsPath:
    """Keys and values, taken in the order of the keys."""

    argsort: Callable[[HostArray], HostArray]
    native: np.dtype[np.generic] | None = None  # the machine's dtype, where the keys' bytes are in another order

    def run(self, keys: HostArray, values: HostArray, /) -> tuple[HostArray, HostArray]:
        if keys.size != values.size:
            raise different_sizes("values", keys.shape, values.shape)
        if not keys.size:
            return keys.copy(), values.copy()
        indices = cast(Indices, self.argsort(keys if self.native is None else keys.astype(self.native)))
        return cast("tuple[HostArray, HostArray]", (keys.take(indices), values.take(indices)))


@attrs.frozen(eq=False)
class TopKPath:
    """Along one axis, or of the flattened array; in order, whether that is asked for or not."""

    policy: HostSortPolicy
    k: int
    axis: int | None
    order: SortOrder
    turn: Turner | None = None  # what makes elements ascend, of short arrays whose order is another

    def run(self, x: HostArray, /) -> tuple[HostArray, HostArray]:
        axis = self.axis
        if axis is None:
            x, axis = x.reshape(-1), -1
        indices: HostArray
        if x.ndim == 1:
            values, indices = top_k_of_row(packed(x), self.k, self.order, self.policy)
        elif self.k == 1 == x.shape[axis]:
            values, indices = x.copy(), np.zeros(x.shape, _INDEX)
        elif x.size <= SHORT_ROWS:
            values, indices = self._of_short_rows(x, axis)
        else:
            values, indices = along_rows(x, axis, lambda rows: top_k_rows(rows, self.k, self.order, self.policy))
        return values.astype(x.dtype, copy=False), indices

    def _of_short_rows(self, x: HostArray, axis: int) -> tuple[HostArray, HostArray]:
        """All are sorted before anything else has begun."""
        rows = np.ascontiguousarray(x.swapaxes(axis, -1))
        shape, words = (*rows.shape[:-1], self.k), rows if self.turn is None else self.turn(rows)
        indices = places_in_rows(words.reshape(-1, rows.shape[-1]))[:, : self.k].copy()
        values = taken(rows.reshape(-1, rows.shape[-1]), indices)
        return values.reshape(shape).swapaxes(axis, -1), indices.reshape(shape).swapaxes(axis, -1)
