"""The public functions that order elements: sort, sort_inplace, argsort, sort_by_key, merge, merge_by_key and top_k."""

# Of variables that an overload has once: signatures.py says why.
# pyright: reportInvalidTypeVarUse=false
from __future__ import annotations

from collections.abc import Hashable
from typing import Any, SupportsIndex, TypedDict, Unpack, cast, overload

import numpy as np
from numpy import memmap, ndarray
from numpy.typing import NDArray

from ..operations.argsort import Argsort, SortPairs
from ..operations.merge import Merge, MergeByKey
from ..operations.select import TopK
from ..operations.sort import Sort
from ..types.checks import check_like, checked_flag, index_of
from ..types.specs import HostArray
from .arguments import ORDERS, axis_or_none, check_key, checked_count, checked_order
from .call import AUTO, Settings, call, call_in_place, call_with, find_also, find_plan
from .prepared import Planning, mapped_call
from .signatures import (
    AxisOrAll,
    Chosen,
    D,
    Given,
    Given2,
    Given3,
    Given4,
    Keyed,
    Labelled,
    Like,
    Nested,
    Raw,
    Row,
    Row2,
    Shape,
    Where,
    Written,
)


class Ordered(TypedDict, total=False):
    """What sorts and merges may be told by name."""

    descending: bool
    target: Where
    key: Keyed


class Permuting(Ordered, total=False):
    stable: bool


class Sorting(Permuting, total=False):
    algorithm: Chosen


@overload
def sort(
    x: np.ndarray[Shape, D], /, *, axis: SupportsIndex = -1, out: np.ndarray[Shape, D] | None = None,
    **how: Unpack[Sorting],
) -> np.ndarray[Shape, D]: ...  # fmt: skip
@overload
def sort(
    x: np.ndarray[Shape, D], /, *, axis: None, out: np.ndarray[tuple[int], D] | None = None, **how: Unpack[Sorting]
) -> np.ndarray[tuple[int], D]: ...
@overload  # an axis that may be None
def sort(
    x: np.ndarray[Shape, D], /, *, axis: AxisOrAll, out: None = None, **how: Unpack[Sorting]
) -> np.ndarray[tuple[int, ...], D]: ...
@overload  # the ignores: texts are of texts, a bool is an int, an int a float, so these overlap, and are read in turn
def sort(  # type: ignore[overload-overlap]
    x: Raw | Labelled, /, *, axis: AxisOrAll = -1, out: None = None, **how: Unpack[Sorting]
) -> HostArray: ...
@overload
def sort(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    x: Nested[bool], /, *, axis: AxisOrAll = -1, out: NDArray[np.bool_] | None = None, **how: Unpack[Sorting]
) -> NDArray[np.bool_]: ...
@overload
def sort(  # type: ignore[overload-overlap]
    x: Nested[int], /, *, axis: AxisOrAll = -1, out: NDArray[np.int64] | None = None, **how: Unpack[Sorting]
) -> NDArray[np.int64]: ...
@overload
def sort(
    x: Nested[float], /, *, axis: AxisOrAll = -1, out: NDArray[np.float64] | None = None, **how: Unpack[Sorting]
) -> NDArray[np.float64]: ...
@overload
def sort(x: Like, /, *, axis: AxisOrAll = -1, out: Like | None = None, **how: Unpack[Sorting]) -> Like: ...
@overload  # one or the other, or along an axis or none
def sort(
    x: np.ndarray[Shape, D] | Like, /, *, axis: AxisOrAll = -1, out: None = None, **how: Unpack[Sorting]
) -> np.ndarray[tuple[int, ...], D] | Like: ...
@overload
def sort(x: Given, /, *, axis: AxisOrAll = -1, out: None = None, **how: Unpack[Sorting]) -> HostArray: ...
def sort(
    x: object, /, *, axis: AxisOrAll = -1, descending: bool = False, stable: bool = False,
    out: object = None, target: Where = "auto", algorithm: Chosen = None, key: Keyed = None,
) -> object:  # fmt: skip
    """A sorted copy of an array, in NumPy's order: NaN and NaT last, in both directions.

    `axis=None` sorts the flattened array. `descending` puts the greatest first. With `stable`, elements that compare
    equal but differ in their bits (0.0 and -0.0, NaNs, elements of one rank by a `key`) keep their order; for all
    others it makes no difference. `out` takes the result and must have its shape and dtype; it may be `x`, or overlap
    with `x`, which costs a copy. `target` is a name of `targets()` or a target; "auto" runs on the array's own device.
    `algorithm` is a value such as `Bitonic()`. `key` is a SortableKey of your own, for another order; a lossy one, and
    any with `stable`, goes by an argsort, whatever the `algorithm`. A memory-mapped array that is larger than
    `$GPUSORT_MEMORY`, by default half of the free memory, is sorted with the help of a temporary file; the result is
    mapped too.
    """
    if axis.__class__ is not int:
        axis = axis_or_none(axis)
    short: Hashable = None
    if (
        key is None and algorithm is None and target is AUTO
        and type(x) is ndarray and (out is None or type(out) is ndarray)
    ):  # fmt: skip
        if descending is stable is False and axis == -1 and x.ndim == 1:  # most calls: the dtype alone finds the plan
            short = x.dtype
        elif descending.__class__ is bool is stable.__class__:  # 0 and 1, which are as good, are checked
            short = x.dtype, x.ndim, axis, descending, stable
        plan = find_plan(short)
        if plan is not None:
            if out is None:
                run = plan.run  # see call
                return run(x)
            if plan.into_short is not None and plan.into_short(x, out):
                return out
    settings = _settings(axis, descending, stable, algorithm, key)
    if x.__class__ is memmap or out.__class__ is memmap:
        found = _sorted_map(x, out, settings, target)
        if found is not None:
            return found
        if x.__class__ is out.__class__ and not isinstance(target, Planning):
            x = np.array(x) if mapped_call().are_mapped_twice(cast(Any, x), cast(Any, out)) else x
    result = call(Sort, settings, target, x) if out is None else call_with(Sort, settings, target, (x,), out)
    if short is not None:
        known = cast(HostArray, x)
        find_also(short, (Sort, settings, target, known.dtype, known.ndim))
    return result


def sort_inplace(
    x: Written, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = False, target: Where = "auto",
    algorithm: Chosen = None, key: Keyed = None,
) -> None:  # fmt: skip
    """Sorts an array in place. If a target cannot use its layout, a copy is sorted and written back.

    `axis` is an int; the other arguments are as for `sort`.
    """
    if axis.__class__ is not int:
        axis = index_of("axis", axis)
    settings = _settings(axis, descending, stable, algorithm, key)
    if type(x) is ndarray and algorithm is None and target is AUTO:
        plan = find_plan((Sort, settings, target, x.dtype, x.ndim))
        if plan is not None and plan.into_short is not None and plan.into_short(x, x):
            return
    if x.__class__ is not memmap or _sorted_map(x, x, settings, target) is None:
        call_in_place(Sort, settings, target, x)


def _settings(axis: object, descending: object, stable: object, algorithm: object, key: object) -> Settings:
    """The checked arguments of Sort, in order; in most calls the axis alone."""
    if descending is stable is False and algorithm is None and key is None:
        return (axis,)
    if stable is not False:
        stable = checked_flag("stable", stable)
    if algorithm is not None:
        check_like("algorithm", algorithm)
    return axis, checked_order(descending, key), stable, key, algorithm


def _sorted_map(x: object, out: object, settings: Settings, target: Where | Planning) -> object | None:
    """The result for a memory-mapped array that exceeds memory; None for any other array."""
    asked = Sort(*cast(Any, settings))
    if asked.key is not None or asked.algorithm is not None or isinstance(target, Planning):
        return None
    return mapped_call()(asked.order, asked.stable, target).sorted(x, out, asked.axis)


@overload
def argsort(
    x: np.ndarray[Shape, D], /, *, axis: SupportsIndex = -1, **how: Unpack[Permuting]
) -> np.ndarray[Shape, np.dtype[np.int64]]: ...
@overload
def argsort(
    x: np.ndarray[Shape, D], /, *, axis: None, **how: Unpack[Permuting]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]: ...
@overload
def argsort(x: Labelled, /, *, axis: AxisOrAll = -1, **how: Unpack[Permuting]) -> NDArray[np.int64]: ...
@overload
def argsort(x: Like, /, *, axis: AxisOrAll = -1, **how: Unpack[Permuting]) -> Like: ...
@overload
def argsort(
    x: np.ndarray[Shape, D] | Like, /, *, axis: AxisOrAll = -1, **how: Unpack[Permuting]
) -> NDArray[np.int64] | Like: ...
@overload
def argsort(
    x: Given, /, *, axis: AxisOrAll = -1, **how: Unpack[Permuting]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]: ...
def argsort(
    x: object, /, *, axis: AxisOrAll = -1, descending: bool = False, stable: bool = True,
    target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The indices that would sort an array along an axis, in int64, as `np.argsort` gives them.

    Always stable: equal elements keep their order in both directions, and so do NaNs, which come last. `stable=False`
    is accepted and changes nothing. `axis=None` takes the flattened array. The rest is as for `sort`.
    """
    if axis.__class__ is not int:
        axis = axis_or_none(axis)
    if stable is not True:
        checked_flag("stable", stable)
    return call(Argsort, (axis, checked_order(descending, key), key), target, x)


@overload  # the ignores: with NumPy 2.5 and newer these overlap, and are read in turn
def sort_by_key(  # type: ignore[overload-overlap, unused-ignore]
    keys: Row, values: Row2, /, **how: Unpack[Ordered]
) -> tuple[Row, Row2]: ...
@overload
def sort_by_key(keys: Given, values: Given2, /, **how: Unpack[Ordered]) -> tuple[HostArray, HostArray]: ...
def sort_by_key(
    keys: object, values: object, /, *, descending: bool = False, target: Where = "auto", key: Keyed = None,
) -> tuple[object, object]:  # fmt: skip
    """Sorts keys and reorders values with them: two new arrays, of one dimension.

    The keys are those of `sort`: -0.0 before 0.0, and NaNs last, by their bits. Keys of the same bits keep the order of
    their values, which may be of any dtype (Python's objects on the target `cpu` alone). Arguments are as for `sort`.
    """
    settings = checked_order(descending, key), key
    return cast("tuple[object, object]", call(SortPairs, settings, target, keys, values))


@overload
def merge(  # type: ignore[overload-overlap, unused-ignore]
    x: Row, y: Row, /, **how: Unpack[Ordered]
) -> Row: ...
@overload
def merge(x: Given, y: Given2, /, **how: Unpack[Ordered]) -> HostArray: ...
def merge(x: object, y: object, /, *, descending: bool = False, target: Where = "auto", key: Keyed = None) -> object:
    """Merges two sorted arrays of one dimension and dtype into a new array.

    Both must be in the order of `sort` with the same `descending` and `key`. This is not checked: for unsorted input
    the order of the result is undefined, and elements may be lost or repeated. Of equal elements those of `x` come
    first.

    Zeros of both signs and NaNs may be in any order among themselves, as stable sorts and `np.sort` leave them; they
    are merged as equal then. Arguments are as for `sort`.
    """
    return call(Merge, (checked_order(descending, key), key), target, x, y)


@overload
def merge_by_key(  # type: ignore[overload-overlap, unused-ignore]
    keys: Row, values: Row2, other_keys: Row, other_values: Row2, /, **how: Unpack[Ordered]
) -> tuple[Row, Row2]: ...
@overload
def merge_by_key(
    keys: Given, values: Given2, other_keys: Given3, other_values: Given4, /, **how: Unpack[Ordered]
) -> tuple[HostArray, HostArray]: ...
def merge_by_key(
    keys: object, values: object, other_keys: object, other_values: object, /, *, descending: bool = False,
    target: Where = "auto", key: Keyed = None,
) -> tuple[object, object]:  # fmt: skip
    """Merges two sorted arrays of keys, and their values with them: two new arrays. The rest is as for `merge`.

    Values have 1, 2, 4 or 8 bytes each: to merge others, merge their indices as values, and index with the result.
    """
    settings, arrays = (checked_order(descending, key), key), (keys, values, other_keys, other_values)
    return cast("tuple[object, object]", call_with(MergeByKey, settings, target, arrays))


class TopKOptions(TypedDict, total=False):
    axis: AxisOrAll
    largest: bool
    sorted: bool
    target: Where
    key: Keyed


@overload
def top_k(
    x: np.ndarray[Shape, D], /, k: SupportsIndex, **how: Unpack[TopKOptions]
) -> tuple[np.ndarray[tuple[int, ...], D], NDArray[np.int64]]: ...
@overload
def top_k(x: Labelled, /, k: SupportsIndex, **how: Unpack[TopKOptions]) -> tuple[HostArray, NDArray[np.int64]]: ...
@overload
def top_k(x: Like, /, k: SupportsIndex, **how: Unpack[TopKOptions]) -> tuple[Like, Like]: ...
@overload
def top_k(
    x: np.ndarray[Shape, D] | Like, /, k: SupportsIndex, **how: Unpack[TopKOptions]
) -> tuple[np.ndarray[tuple[int, ...], D] | Like, NDArray[np.int64] | Like]: ...
@overload
def top_k(x: Given, /, k: SupportsIndex, **how: Unpack[TopKOptions]) -> tuple[HostArray, NDArray[np.int64]]: ...
def top_k(
    x: object, /, k: SupportsIndex, *, axis: AxisOrAll = -1, largest: bool = True, sorted: bool = True,
    target: Where = "auto", key: Keyed = None,
) -> tuple[object, object]:  # fmt: skip
    """The k largest elements along an axis, and their int64 indices: two new arrays; the smallest with `largest=False`.

    They are the first k of `argsort(x, descending=largest)`: in order, equal elements by index, and NaN and NaT last in
    both directions, so these are selected only if nothing else is left. `sorted=False` allows any order, which may save
    time; it is the same in every call. `axis=None` takes the flattened array. The rest is as for `sort`.
    """
    count = checked_count(k)
    if axis.__class__ is not int:
        axis = axis_or_none(axis)
    if largest is not True:
        largest = checked_flag("largest", largest)
    if sorted is not True:
        sorted = checked_flag("sorted", sorted)
    if key is not None:
        check_key(key)
    return cast("tuple[object, object]", call(TopK, (count, axis, ORDERS[largest], sorted, key), target, x))
