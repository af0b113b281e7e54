"""Merging short host arrays: NumPy's stable sort of both, one behind the other, finds that they are two runs."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from .key_words import bits_of, ordered_words
from .short_sort import is_ordered_by_numpy


@attrs.frozen(eq=False)
class ShortMerge:
    """Two arrays, or two with a value for each of their elements."""

    order: SortOrder
    takes_values: bool
    most: int = 1 << 12  # elements of both: of more the kernels take less time

    def __call__(self, *arrays: HostArray) -> HostArray | tuple[HostArray, HostArray]:
        each = 2 if self.takes_values else 1
        keys = np.concatenate((arrays[0], arrays[each]))  # in the machine's byte order
        words = keys if self._is_numpys(keys) else ordered_words(key_for(keys.dtype), bits_of(keys), self.order)
        if words is keys and not self.takes_values:
            keys.sort(kind="stable")
            return keys
        places = words.argsort(kind="stable")
        if not self.takes_values:
            return cast(HostArray, keys[places])
        values = np.concatenate((arrays[1], arrays[3]))
        return cast("tuple[HostArray, HostArray]", (keys[places], values[places]))

    def _is_numpys(self, keys: HostArray) -> bool:
        """Whether NumPy's order is ours."""
        if self.order is SortOrder.DESCENDING:
            return False
        return keys.dtype.kind in "iu" or (keys.dtype.kind == "f" and is_ordered_by_numpy(keys))
