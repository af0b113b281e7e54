"""Merging two sorted arrays, with or without values."""

from __future__ import annotations

from typing import Unpack, cast, overload

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from ..operations.merge import Merge, MergeByKey
from ..types.specs import HostArray
from .arguments import checked_order
from .call import call_with, find_short
from .signatures import D, Keyed, Ordered, Other, V, Where


@overload
def merge(
    x: np.ndarray[tuple[int], D], y: np.ndarray[tuple[int], D], /, **how: Unpack[Ordered]
) -> np.ndarray[tuple[int], D]: ...
@overload
def merge(x: Other, y: Other, /, **how: Unpack[Ordered]) -> Other: ...
@overload
def merge(x: ArrayLike, y: ArrayLike, /, **how: Unpack[Ordered]) -> HostArray: ...
def merge(x: object, y: object, /, *, descending: bool = False, target: Where = "auto", key: Keyed = None) -> object:
    """Merges two sorted arrays of one dimension and dtype into a new array.

    Both must be in the order of `sort` with the same `descending` and `key`. This is not checked: for unsorted input
    the order of the result is undefined, and elements may be lost or repeated. Of equal elements those of `x` come
    first.

    Zeros of both signs and NaNs may be in any order among themselves, as stable sorts and `np.sort` leave them; they
    are merged as equal then.
    """
    short_key = None
    if descending is False and key is None and target == "auto" and type(x) is ndarray and type(y) is ndarray:
        short_key = Merge, x.dtype, x.ndim, y.dtype, y.ndim  # see sort
        plan = find_short(short_key)
        if plan is not None:
            return plan.run(x, y)
    return call_with(Merge, (checked_order(descending, key), key), target, (x, y), short_key=short_key)


@overload
def merge_by_key(
    keys: np.ndarray[tuple[int], D], values: np.ndarray[tuple[int], V], other_keys: np.ndarray[tuple[int], D],
    other_values: np.ndarray[tuple[int], V], /, **how: Unpack[Ordered],
) -> tuple[np.ndarray[tuple[int], D], np.ndarray[tuple[int], V]]: ...  # fmt: skip
@overload
def merge_by_key(
    keys: Other, values: Other, other_keys: Other, other_values: Other, /, **how: Unpack[Ordered]
) -> tuple[Other, Other]: ...
@overload
def merge_by_key(
    keys: ArrayLike, values: ArrayLike, other_keys: ArrayLike, other_values: ArrayLike, /, **how: Unpack[Ordered]
) -> tuple[HostArray, HostArray]: ...
def merge_by_key(
    keys: object, values: object, other_keys: object, other_values: object, /, *, descending: bool = False,
    target: Where = "auto", key: Keyed = None,
) -> tuple[object, object]:  # fmt: skip
    """Merges two sorted arrays of keys, and their values with them: two new arrays. See `merge`."""
    settings, arrays = (checked_order(descending, key), key), (keys, values, other_keys, other_values)
    return cast("tuple[object, object]", call_with(MergeByKey, settings, target, arrays))
