"""Top-k selection: the largest or smallest elements, without sorting the rest."""

from __future__ import annotations

from typing import SupportsIndex, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..operations.select import TopK
from ..types.specs import HostArray
from .arguments import ORDERS, axis_or_none, check_like, checked_count, checked_flag
from .call import call
from .signatures import AxisOrAll, D, Keyed, Other, Where


class TopKOptions(TypedDict, total=False):
    axis: AxisOrAll
    largest: bool
    sorted: bool
    target: Where
    key: Keyed


@overload
def top_k(
    x: np.ndarray[tuple[int, ...], D], /, k: SupportsIndex, **how: Unpack[TopKOptions]
) -> tuple[np.ndarray[tuple[int, ...], D], NDArray[np.int64]]: ...
@overload
def top_k(x: Other, /, k: SupportsIndex, **how: Unpack[TopKOptions]) -> tuple[Other, Other]: ...
@overload
def top_k(x: ArrayLike, /, k: SupportsIndex, **how: Unpack[TopKOptions]) -> tuple[HostArray, NDArray[np.int64]]: ...
def top_k(
    x: object, /, k: SupportsIndex, *, axis: AxisOrAll = -1, largest: bool = True, sorted: bool = True,
    target: Where = "auto", key: Keyed = None,
) -> tuple[object, object]:  # fmt: skip
    """The k largest elements along an axis, or the k smallest, and their int64 indices: two new arrays.

    They are the first k of `argsort(x, descending=largest)`: in order, of equals the first come first, and NaN and NaT
    come last in both directions, so they are taken only where nothing else is left. `sorted=False` says that any order
    will do, which may save time; it is the same every time. `axis=None` takes the flattened array.
    """
    count = checked_count(k)
    if axis.__class__ is not int:
        axis = axis_or_none(axis)
    if largest is not True:
        largest = checked_flag("largest", largest)
    if sorted is not True:
        sorted = checked_flag("sorted", sorted)
    if key is not None:
        check_like("key", key)
    return cast("tuple[object, object]", call(TopK, (count, axis, ORDERS[largest], sorted, key), target, x))
