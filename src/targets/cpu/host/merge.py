"""Merges short host arrays by NumPy's stable sort of their concatenation, whose timsort finds the two runs, and longer
ones that hardly interleave: timsort gallops over stretches of either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import attrs
import numpy as np

from ....operations.argsort import different_sizes
from ....operations.tied import has_ties_in_order
from ....types.dtypes import key_for, native
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from .key_words import Elements, bits_of, ordered_ranks, ordered_words
from .short_sort import FEW, are_ties_alike, has_minus_zero, puts_nans_back, turned_as, turning

_MOST = 1 << 13  # elements of both: of more the kernels take less time
_MOST_BYTES = 1 << 15  # the same of bytes, which NumPy counts
_LONG = 1 << 19  # more than NumPy is given, however they interleave
_LOOKS = 32  # neighbours of the shorter array, and whether any of the longer one's elements come between them
_STRETCH = 8  # elements at least, on average, of either array that lie side by side in the result

Merged: TypeAlias = Callable[..., HostArray]

_concatenate = cast("Callable[[tuple[HostArray, ...]], HostArray]", np.concatenate)


@attrs.frozen(eq=False)
class _Short:
    """Two arrays of a dtype."""

    order: SortOrder
    dtype: np.dtype[np.generic]

    def suits(self, arrays: Sequence[HostArray]) -> bool:
        """Whether longer arrays hardly interleave."""
        x, y = arrays[0], arrays[len(arrays) // 2]
        if self.order is SortOrder.DESCENDING or not (x.flags.c_contiguous and y.flags.c_contiguous):
            return False
        if not (x.size and y.size and self.dtype.isnative):
            return False
        if x[-1] <= y[0]:
            return True
        short, long = (x, y) if x.size < y.size else (y, x)
        if short.size < 2 or x.size + y.size > _LONG or self.dtype.itemsize <= 2:
            return False
        step = max(1, (short.size - 1) // _LOOKS)
        here, next_ = long.searchsorted(short[:-1:step]), long.searchsorted(short[1::step])
        apart = count_nonzero(here != next_)
        return apart * short.size * _STRETCH <= here.size * (x.size + y.size)

    @property
    def _seen(self) -> np.dtype[np.generic]:
        return native(self.dtype) if self.order is SortOrder.ASCENDING else turned_as(native(self.dtype))


@attrs.frozen(eq=False)
class ShortMerge(_Short):
    """Without values."""

    most: int = attrs.field(init=False)
    function: Merged = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "most", _MOST_BYTES if self.dtype.itemsize == 1 else _MOST)
        object.__setattr__(self, "function", self._merges_floats() if self.dtype.kind == "f" else self._merges())

    def __call__(self, *arrays: HostArray) -> HostArray:
        return self.function(*arrays)

    def _merges(self) -> Merged:
        turn, seen, is_native = turning(self.order, self.dtype.kind), self._seen, self.dtype.isnative

        def merge(x: HostArray, y: HostArray) -> HostArray:
            keys = _concatenate((x, y))  # in the machine's byte order
            numbers = keys if keys.dtype is seen else keys.view(seen)
            if turn is not None:
                turn(numbers, numbers)
            numbers.sort(-1, "stable")
            if turn is not None:
                turn(numbers, numbers)
            return keys if is_native else keys.astype(x.dtype)

        return merge

    def _merges_floats(self) -> Merged:
        """NumPy's stable sort loses no bits: it leaves what ties as it came."""
        order, turn = self.order, turning(self.order, "f")
        zero: HostArray = np.zeros((), native(self.dtype))

        def merge_keys(x: HostArray, y: HostArray) -> HostArray:
            keys = _concatenate((x, y))
            size = keys.size
            if size <= FEW and count_nonzero(keys) != size and has_minus_zero(keys):
                return keys[_words(keys, order, x, y).argsort(kind="stable")]
            if turn is not None:
                turn(keys, keys)
            keys.sort(-1, "stable")
            try:
                greatest = keys[-1]  # NaN, where there is one
            except IndexError:
                return keys  # without elements
            first = int(keys.searchsorted(zero)) if size > FEW else size  # zeros are found sooner in what is sorted
            has_zeros = first < size and not keys[first]
            if turn is not None:
                turn(keys, keys)
            if (has_zeros and has_minus_zero(keys)) or (greatest != greatest and not puts_nans_back(keys, keys)):
                return keys[_words(keys, order, x, y).argsort(kind="stable")]
            return keys

        def merge_swapped(x: HostArray, y: HostArray) -> HostArray:
            return merge_keys(x, y).astype(x.dtype)

        return merge_keys if self.dtype.isnative else merge_swapped


@attrs.frozen(eq=False)
class ShortMergeByKey(_Short):
    """With a value for each of their elements."""

    most: int = 2 * _MOST  # keys and values

    @property
    def function(self) -> Callable[..., tuple[HostArray, HostArray]]:
        return self.__call__

    def __call__(self, *arrays: HostArray) -> tuple[HostArray, HostArray]:
        x, values, y, other_values = arrays
        if x.size != values.size or y.size != other_values.size:
            name, *pair = ("values", x, values) if x.size != values.size else ("other_values", y, other_values)
            raise different_sizes(str(name), *[array.shape for array in pair])
        keys, seen, turn = _concatenate((x, y)), self._seen, turning(self.order, self.dtype.kind)
        numbers = keys if keys.dtype is seen else keys.view(seen)
        if seen.kind == "f" and not are_ties_alike(keys):
            numbers = _words(keys, self.order, x, y)
        elif turn is not None:
            numbers = turn(numbers)
        places = numbers.argsort(kind="stable")
        merged, moved = keys.take(places), _concatenate((values, other_values)).take(places)
        return (
            merged if merged.dtype is x.dtype else merged.astype(x.dtype, copy=False),
            moved if moved.dtype is values.dtype else moved.astype(values.dtype, copy=False),
        )


def _words(keys: Elements, order: SortOrder, *parts: HostArray) -> Elements:
    """Integers that compare as the keys do, which are those of sorted parts: floats by their bits, but as equals where
    they tie and a part has its ties in another order. Kernels take long ones so, too: see algos/merge_ties.py."""
    are_equal = keys.dtype.kind == "f" and not all(has_ties_in_order(part, order) for part in parts)
    return (ordered_ranks if are_equal else ordered_words)(key_for(keys.dtype), bits_of(keys), order)
