"""The CPU's own ways by a key of the user's: its words are made of whole arrays, and NumPy's sort orders those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.words import KeyWords, Wanted
from ....types.dtypes import Extreme, native
from ....types.indices import SortOrder
from ...base import HostArray
from .by_key import argsort_by_words, extreme_places, sort_by_words

_INDEX = np.dtype(np.intp)


def _rows(x: HostArray, axis: int | None) -> HostArray:
    """A packed copy, in which the elements along an axis lie side by side."""
    laid = x.reshape(-1) if axis is None or x.ndim == 0 else np.moveaxis(x, axis, -1)
    return np.array(laid, native(x.dtype), order="C")


def _put_back(made: HostArray, axis: int | None) -> HostArray:
    return made if axis is None or made.ndim == 1 else np.ascontiguousarray(np.moveaxis(made, -1, axis))


@attrs.frozen(eq=False)
class KeyedWay:
    """What is done to packed rows, for arrays of any layout."""

    policy: HostSortPolicy
    by: KeyWords
    axis: int | None
    work: Callable[[HostArray, KeyedWay], HostArray]

    def __call__(self, *arrays: HostArray) -> HostArray:
        (x,) = arrays
        packed = _rows(x, self.axis)
        flat = packed.reshape(-1, packed.shape[-1])
        found = self.work(flat, self).reshape(packed.shape)
        return _put_back(found if found.dtype == _INDEX else found.astype(x.dtype, copy=False), self.axis)

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray], /) -> None:
        outs[0][...] = self(*arrays)


def keyed_sort(policy: HostSortPolicy, key: Any, axis: int | None, order: SortOrder, stable: bool) -> KeyedWay:
    def work(rows: HostArray, way: KeyedWay) -> HostArray:
        results = np.empty_like(rows)
        sort_by_words(rows, results, way.by, way.policy, stable)
        return results

    return KeyedWay(policy, KeyWords(key, order), axis, work)


def keyed_argsort(policy: HostSortPolicy, key: Any, axis: int | None, order: SortOrder, by_bits: bool) -> KeyedWay:
    wanted = Wanted.WORDS if by_bits else Wanted.RANKS

    def work(rows: HostArray, way: KeyedWay) -> HostArray:
        places = np.empty(rows.shape, _INDEX)
        argsort_by_words(rows, places, way.by, way.policy, wanted)
        return places

    return KeyedWay(policy, KeyWords(key, order), axis, work)


@attrs.frozen(eq=False)
class KeyedExtreme:
    """The least or greatest element along axes."""

    policy: HostSortPolicy
    by: KeyWords
    axes: tuple[int, ...]
    keepdims: bool
    extreme: Extreme

    def __call__(self, *arrays: HostArray) -> Any:
        (x,) = arrays
        others = [axis for axis in range(x.ndim) if axis not in self.axes]
        shape = tuple(x.shape[axis] for axis in others)
        packed = np.array(x.transpose(*others, *self.axes), native(x.dtype), order="C")
        rows = packed.reshape(int(np.prod(shape)), -1)
        places = extreme_places(rows, self.by, self.extreme, self.policy)
        found = cast(HostArray, rows[np.arange(len(rows)), places]).reshape(shape).astype(x.dtype, copy=False)
        return np.expand_dims(found, self.axes) if self.keepdims else found[()]

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray], /) -> None:
        outs[0][...] = self(*arrays)
