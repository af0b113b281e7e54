"""The local operations of a distributed sort: sorting a rank's elements and merging runs of keys, pairs or indices."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import attrs
import numpy as np

from ..algos.words import Transform
from ..api.sorting import argsort, merge, merge_by_key, sort, sort_by_key
from ..external.cuts import Array
from ..external.order import transform_of
from ..types.dtypes import key_for
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey

Columns: TypeAlias = tuple[Array, ...]  # keys, and values if there are any


@attrs.frozen
class Work:
    """Sorts keys."""

    dtype: np.dtype[Any]
    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    # whether equal elements with different bits keep their order: 0.0 and -0.0, and all NaNs
    stable: bool = False

    @property
    def descending(self) -> bool:
        return self.order is SortOrder.DESCENDING

    @cached_property
    def words(self) -> Transform:
        """From host keys to integers in sort order."""
        return transform_of(self.dtype, self.order, ranks=self.stable, key=self.key)

    @property
    def merged_by(self) -> SortableKey[Any, Any] | None:
        if not self.stable:
            return self.key
        return RankKey(key_for(self.dtype) if self.key is None else self.key)

    def sorted(self, given: Columns, offset: int) -> Columns:
        """The rank's sorted run. `offset` is the number of elements on lower ranks."""
        return (sort(given[0], descending=self.descending, stable=self.stable, key=self.key),)

    def sort_into(self, given: Array, out: Array) -> None:
        """Sorts keys without values into other memory."""
        sort(given, descending=self.descending, out=out)

    def merged(self, first: Columns, second: Columns) -> Columns:
        return (merge(*first, *second, descending=self.descending, key=self.merged_by),)


@attrs.frozen
class PairsWork(Work):
    """Sorts keys, and values by them."""

    def sorted(self, given: Columns, offset: int) -> Columns:
        return sort_by_key(*given, descending=self.descending, key=self.key)

    def merged(self, first: Columns, second: Columns) -> Columns:
        return merge_by_key(*first, *second, descending=self.descending, key=self.merged_by)


@attrs.frozen
class IndexWork(PairsWork):
    """Sorts keys with their indices in the concatenation of all ranks' elements."""

    stable: bool = True

    def sorted(self, given: Columns, offset: int) -> Columns:
        (keys,) = given
        indices = argsort(keys, descending=self.descending, key=self.key)
        return keys[indices], indices + np.int64(offset)
