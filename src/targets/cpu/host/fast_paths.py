"""Fast paths on host arrays without kernels: NumPy's SIMD sort and loops, shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import cast

import attrs
import numpy as np

from ....algos.host_sort import HostSort, HostSortPolicy
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
from .argsort import (
    BY_DIGITS,
    INDEX,
    LEAST_MIXED,
    argsort_by_network,
    argsort_mixed,
    argsort_rows,
    argsort_runs,
    places_shared,
)
from .at_sight import places_at_sight
from .cumsum import from_zero, host_cumsum, shifted
from .float_ties import are_ties_alike
from .key_words import Places, ordered_words
from .numpy_sort import FEW_HALVES, ascending, places_in_order
from .reduce import host_reduction
from .select_loops import SHORT_ROWS
from .short_merge import ShortMerge
from .sort_path import SHORT, SortPath
from .strides import along_rows, packed, taken
from .top_k import top_k_of_row, top_k_rows

_HALF = np.dtype(np.float16)
_UP = SortOrder.ASCENDING
_SCANNED = 1 << 17  # elements of an exclusive scan: of more the kernels take less time
_NEVER = 1 << 62
_MOST_AXES = 32  # of arrays that NumPy's own sorts take


def fast_path(operation: Operation, given: Sequence[Spec], policy: HostSortPolicy) -> Native | None:
    """The CPU's implementation of an operation without a kernel; None if there is none."""
    if isinstance(operation, Sort | Argsort | SortPairs | Reduce | Merge | TopK) and operation.key is not None:
        from .keyed import keyed_path  # which reads kernels

        return keyed_path(operation, policy)
    if isinstance(operation, Sort | Argsort) and len(given[0].shape) > _MOST_AXES:
        return None
    if not isinstance(operation, Reduce) and not all(spec.dtype.isnative for spec in given):
        found = fast_path(operation, [attrs.evolve(spec, dtype=native(spec.dtype)) for spec in given], policy)
        return None if found is None else _by_copies(found, [output.dtype for output in operation.outputs(*given)])
    match operation:
        case Sort(axis, order, stable, None, (None | HostSort()) as chosen):
            policy = policy if chosen is None else chosen.policy
            path = SortPath(policy, given[0], axis, order, stable)
            return Native(path.function, into=path.into, into_short=path.into_short)
        case Argsort(axis, order, None, by_bits):
            dtype = given[0].dtype
            return Native(ArgsortPath(policy, dtype, axis, order, by_bits and dtype.kind == "f").run)
        case SortPairs(order, None):
            dtype = given[0].dtype
            argsort = ArgsortPath(policy, dtype, 0, order, dtype.kind == "f").run
            return Native(partial(sorted_pairs, argsort=argsort))
        case Reduce(axis, keepdims, reducer, None):
            reduction = host_reduction(reducer, given[0].dtype, len(given[0].shape), axis, keepdims)
            return None if reduction is None else Native(reduction)
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
            run = partial(_top_k, k=k, axis=axis, order=order, policy=policy)
            return Native(run, takes_empty=False, takes=partial(_has_as_many, k, axis))
        case _:
            return None


def _by_copies(found: Native, dtypes: Sequence[np.dtype[np.generic]]) -> Native:
    """A fast path for the machine's byte order as one for any: NumPy turns the bytes of each element whenever it looks
    at it. `dtypes` are those of the results."""

    def function(*arrays: HostArray) -> object:
        results = found.function(*map(_turned, arrays))
        if len(dtypes) == 1:
            return results.astype(dtypes[0], copy=False)
        given = cast("tuple[HostArray, ...]", results)
        return tuple(result.astype(dtype, copy=False) for result, dtype in zip(given, dtypes, strict=True))

    def into(arrays: Sequence[HostArray], outs: Sequence[HostArray]) -> None:
        outs[0][...] = found.function(*map(_turned, arrays))

    return attrs.evolve(found, function=function, into=into if found.into is not None else None, into_short=None)


def _turned(x: HostArray) -> HostArray:
    return x.astype(native(x.dtype))


class ArgsortPath:
    """The permutation that sorts along one axis, or of the flattened array. `by_bits`, of floats: -0.0 before 0.0, and
    NaNs by their bits; of all else that ties the bits are alike."""

    def __init__(
        self, policy: HostSortPolicy, dtype: np.dtype[np.generic], axis: int | None, order: SortOrder, by_bits: bool
    ) -> None:
        self.policy, self.dtype, self.axis, self.order, self.by_bits = policy, dtype, axis, order, by_bits
        is_narrow, suits = dtype.itemsize <= 2, not by_bits
        # elements that NumPy's own argsort is given at once, the same of one row, and of a row that is looked at else
        self.most = 0 if order is not _UP else FEW_HALVES if dtype.itemsize == 2 else SHORT
        self.most_of_row = self.most
        if self.most and suits and dtype != _HALF and dtype.kind in "iuf":
            longer = policy.deal_from if is_narrow else min(policy.pack_from, policy.serial_below)
            self.most_of_row = max(self.most, longer - 1)
        self._is_bytes = is_narrow and dtype != _HALF  # or two, which NumPy places by their digits
        self.most_at_sight = policy.serial_below - 1 if suits and not self._is_bytes else 0
        self.mixed_from = _NEVER if is_narrow else LEAST_MIXED

    def run(self, x: HostArray, /) -> HostArray:
        ties_differ, size = False, x.size
        if x.ndim > 1 and (size >= self.mixed_from if self.axis is None else x.shape[self.axis] == size > 1):
            found = self._of_one_row.run(x.reshape(-1))  # such as a table's column
            return found if self.axis is None else found.reshape(x.shape)
        if x.ndim == 1 or self.axis is None:
            is_at_once = self.most and size <= self.most_of_row and x.ndim > 0
        else:
            is_at_once = self.most and size <= self.most and x.itemsize > 2
        if size >= LEAST_MIXED and x.ndim == 1:
            if not is_at_once and size <= self.most_at_sight:
                at_sight = places_at_sight(x, self.order, size)
                if at_sight is not None:
                    return at_sight
            if self.mixed_from <= size < self.policy.serial_below:
                mixed = argsort_mixed(x, self.order, self.policy, by_bits=self.by_bits)
                if mixed is not None:
                    return mixed
        if is_at_once:
            if not self.by_bits or are_ties_alike(x):
                own = x.copy() if self._is_bytes else x  # needs_own_memory says why
                return own.argsort(self.axis, "stable")
            ties_differ = True
        x, axis = (x.reshape(-1), -1) if self.axis is None or x.ndim == 0 else (x, self.axis)
        length = x.shape[axis]
        if size == 0 or length == 1:
            return np.zeros(x.shape, INDEX)
        by_network = None if self.by_bits else argsort_by_network(x, axis, self.order, self.policy)
        if by_network is not None:
            return by_network
        if self._is_short(x, length) and not ties_differ and (not self.by_bits or are_ties_alike(x)):
            return places_in_order(x, axis, self.order)
        if self._is_bytes and x.ndim > 1 and length < self.policy.deal_from and abs(x.strides[axis]) > x.itemsize:
            return places_shared(ascending(x, self.order), axis, BY_DIGITS)  # none are transposed
        return along_rows(x, axis, lambda rows: (self._indices(rows),))[0]

    @cached_property
    def _of_one_row(self) -> ArgsortPath:
        return ArgsortPath(self.policy, self.dtype, 0, self.order, self.by_bits)

    def _is_short(self, x: HostArray, length: int) -> bool:
        """Whether NumPy's own argsort is as fast as ours."""
        if x.size <= SHORT:
            return True
        if x.itemsize <= 2 and x.size == length:
            return x.size < self.policy.deal_from
        return x.size < self.policy.serial_below and not self.policy.packs(x.size, length, x.dtype)

    def _indices(self, rows: HostArray) -> Places:
        order, policy = self.order, self.policy
        if self.by_bits:
            rows, order = ordered_words(rows, order), _UP
        if len(rows) == 1:
            merged = argsort_runs(rows[0], order, policy)
            if merged is not None:
                return merged
        return argsort_rows(rows, order, policy)


def sorted_pairs(
    keys: HostArray, values: HostArray, /, argsort: Callable[[HostArray], HostArray]
) -> tuple[HostArray, HostArray]:
    """Keys and values, taken in the order of the keys."""
    if keys.size != values.size:
        raise different_sizes("values", keys.shape, values.shape)
    if not keys.size:
        return keys.copy(), values.copy()
    indices = cast(Places, argsort(keys))
    return taken(keys, indices), taken(values, indices)


def _has_as_many(k: int, axis: int | None, x: HostArray) -> bool:
    """Whether there are rows, of k elements at least."""
    return x.size > 0 < k <= (x.size if axis is None or not x.ndim else x.shape[axis])


def _top_k(
    x: HostArray, /, k: int, axis: int | None, order: SortOrder, policy: HostSortPolicy
) -> tuple[HostArray, ...]:
    """Along one axis, or of the flattened array; in order, whether that is asked for or not."""
    if axis is None:
        x, axis = x.reshape(-1), -1
    if x.ndim == 1:
        return top_k_of_row(packed(x), k, order, policy)
    if x.shape[axis] == x.size > 1:  # such as a table's column
        shape = [k if length > 1 else 1 for length in x.shape]
        return tuple(found.reshape(shape) for found in top_k_of_row(packed(x.reshape(-1)), k, order, policy))
    if k == 1 == x.shape[axis]:
        return x.copy(), np.zeros(x.shape, INDEX)
    if x.size > SHORT_ROWS:
        return along_rows(x, axis, lambda rows: top_k_rows(rows, k, order, policy))
    if x.ndim == 2 and axis in (-1, 1):  # the commonest, whose shape is the result's
        return top_k_rows(packed(x), k, order, policy)
    rows = packed(x.swapaxes(axis, -1))
    found = top_k_rows(rows.reshape(-1, rows.shape[-1]), k, order, policy)
    return tuple(made.reshape(*rows.shape[:-1], k).swapaxes(axis, -1) for made in found)
