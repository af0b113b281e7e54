"""Fast paths on host arrays without kernels: NumPy's SIMD sort and loops, shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
from .argsort_path import ArgsortPath
from .copies import along_rows, packed
from .cumsum import from_zero, host_cumsum, shifted
from .key_words import INDEX, Places
from .reduce import host_reduction
from .select_loops import SHORT_ROWS
from .short_merge import ShortMerge
from .sort_path import SortPath
from .taking import taken
from .top_k import top_k_of_row, top_k_rows

_SCANNED = 1 << 17  # elements of an exclusive scan: of more the kernels take less time
_MOST_AXES = 32  # of arrays that NumPy's own sorts take


def fast_path(operation: Operation, given: Sequence[Spec], policy: HostSortPolicy) -> Native | None:
    """The CPU's implementation of an operation without a kernel; None if there is none."""
    if not isinstance(operation, Reduce) and not all(spec.dtype.isnative for spec in given):
        found = fast_path(operation, [attrs.evolve(spec, dtype=native(spec.dtype)) for spec in given], policy)
        return None if found is None else _by_copies(found, [output.dtype for output in operation.outputs(*given)])
    if isinstance(operation, Sort | Argsort | SortPairs | Reduce | Merge | TopK) and operation.key is not None:
        from .keyed import keyed_path  # which reads kernels

        return keyed_path(operation, policy)
    if isinstance(operation, Sort | Argsort) and len(given[0].shape) > _MOST_AXES:
        return None
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
        case Reduce(axis, keepdims, None, reducer):
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
            return Native(run, takes=partial(_has_as_many, k, axis))
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

    return attrs.evolve(found, function=function, into=None, into_short=None)


def _turned(x: HostArray) -> HostArray:
    return x.astype(native(x.dtype))


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
