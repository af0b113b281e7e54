"""Merges short host arrays by NumPy's stable sort of their concatenation, whose timsort finds the two runs; and longer
ones of which one lies behind the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import attrs
import numpy as np

from ....operations.argsort import different_sizes
from ....operations.tied import has_ties_in_order
from ....types.dtypes import key_for, native
from ....types.indices import SortOrder
from ...base import HostArray
from .key_words import bits_of, ordered_ranks, ordered_words
from .short_sort import are_ties_alike, turned_as, turning

_MOST = 1 << 13  # elements of both: of more the kernels take less time
_MOST_BYTES = 1 << 15  # the same of bytes, which NumPy counts

_concatenate = cast("Callable[[tuple[HostArray, ...]], HostArray]", np.concatenate)


@attrs.frozen(eq=False)
class _Short:
    """Two arrays of a dtype."""

    order: SortOrder
    dtype: np.dtype[np.generic]

    def suits(self, arrays: Sequence[HostArray]) -> bool:
        """Whether of longer arrays one lies behind the other."""
        x, y = arrays[0], arrays[len(arrays) // 2]
        if self.order is SortOrder.DESCENDING or not (x.size and y.size and self.dtype.isnative):
            return False
        return x.flags.c_contiguous and y.flags.c_contiguous and bool(x[-1] <= y[0])

    def _numbers(self, keys: HostArray, x: HostArray, y: HostArray) -> HostArray | None:
        """Words that ascend as such keys should, where NumPy does not order floats as we do."""
        if self.dtype.kind != "f" or are_ties_alike(keys):
            return None
        # As equals where they tie and a part has its ties in another order. Kernels take long ones so, too: see
        # algos/merge_path.py.
        are_equal = not (has_ties_in_order(x, self.order) and has_ties_in_order(y, self.order))
        return (ordered_ranks if are_equal else ordered_words)(key_for(keys.dtype), bits_of(keys), self.order)

    @property
    def _seen(self) -> np.dtype[np.generic]:
        return native(self.dtype) if self.order is SortOrder.ASCENDING else turned_as(native(self.dtype))


@attrs.frozen(eq=False)
class ShortMerge(_Short):
    """Without values."""

    most: int = attrs.field(init=False)
    function: Callable[..., HostArray] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "most", _MOST_BYTES if self.dtype.itemsize == 1 else _MOST)
        object.__setattr__(self, "function", self._function())

    def __call__(self, *arrays: HostArray) -> HostArray:
        return self.function(*arrays)

    def _function(self) -> Callable[..., HostArray]:
        turn, seen, is_native = turning(self.order, self.dtype.kind), self._seen, self.dtype.isnative
        words_of = self._numbers if self.dtype.kind == "f" else None

        def merge(x: HostArray, y: HostArray) -> HostArray:
            keys = _concatenate((x, y))  # in the machine's byte order
            words = None if words_of is None else words_of(keys, x, y)
            if words is not None:
                keys = keys.take(words.argsort(kind="stable"))
            else:
                numbers = keys if keys.dtype is seen else keys.view(seen)
                if turn is not None:
                    turn(numbers, numbers)
                numbers.sort(-1, "stable")
                if turn is not None:
                    turn(numbers, numbers)
            return keys if is_native else keys.astype(x.dtype)

        return merge


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
        numbers = self._numbers(keys, x, y)
        if numbers is None:
            numbers = keys if keys.dtype is seen else keys.view(seen)
            numbers = numbers if turn is None else turn(numbers)
        places = numbers.argsort(kind="stable")
        merged, moved = keys.take(places), _concatenate((values, other_values)).take(places)
        return (
            merged if merged.dtype is x.dtype else merged.astype(x.dtype, copy=False),
            moved if moved.dtype is values.dtype else moved.astype(values.dtype, copy=False),
        )
