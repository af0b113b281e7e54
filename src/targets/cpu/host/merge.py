"""Merging short host arrays: NumPy's stable sort of both, one behind the other, finds that they are two runs."""

from __future__ import annotations

import attrs
import numpy as np

from ....operations.tied import has_ties_in_order
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from .key_words import bits_of, ordered_ranks, ordered_words
from .short_sort import are_plain


@attrs.frozen(eq=False)
class ShortMerge:
    """Two arrays, or two with a value for each of their elements."""

    order: SortOrder
    takes_values: bool
    most: int = 1 << 12  # elements of both: of more the kernels take less time

    def __call__(self, *arrays: HostArray) -> HostArray | tuple[HostArray, HostArray]:
        each = 2 if self.takes_values else 1
        keys = np.concatenate((arrays[0], arrays[each]))  # in the machine's byte order
        words = keys if self._is_numpys(keys) else self._words(keys, arrays[::each])
        if words is keys and not self.takes_values:
            keys.sort(kind="stable")
            return _as(arrays[0], keys)
        places = words.argsort(kind="stable")
        if not self.takes_values:
            return _as(arrays[0], keys[places])
        values = np.concatenate((arrays[1], arrays[3]))
        return _as(arrays[0], keys[places]), _as(arrays[1], values[places])

    def _words(self, keys: HostArray, parts: tuple[HostArray, ...]) -> HostArray:
        are_equal = keys.dtype.kind == "f" and not all(has_ties_in_order(part, self.order) for part in parts)
        words = ordered_ranks if are_equal else ordered_words  # as kernels take long ones: see Merge.for_values
        return words(key_for(keys.dtype), bits_of(keys), self.order)

    def _is_numpys(self, keys: HostArray) -> bool:
        """Whether NumPy's order is ours."""
        if self.order is SortOrder.DESCENDING:
            return False
        return keys.dtype.kind in "iu" or (keys.dtype.kind == "f" and are_plain(keys))


def _as(given: HostArray, made: HostArray) -> HostArray:
    """In the byte order of what was given, which `np.concatenate` turned."""
    return made if given.dtype.isnative else made.astype(given.dtype)
