"""gpusort's order of one key or of several (lexicographic): as words that NumPy can compare, and as argsorts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

import attrs
import numpy as np

from ..algos.host_sort import Partition
from ..algos.words import KeyWords
from ..types.dtypes import key_for, native
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from .cuts import Array, Indices


class Engine(Protocol):
    """Sorts pieces that fit into memory."""

    @property
    def workers(self) -> int:
        """How many pieces to sort concurrently, each in a thread (the caller's, if 1)."""
        ...

    @property
    def alone(self) -> Engine:
        """An engine for a single piece, which may use all threads."""
        ...

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None: ...

    def argsort(self, x: Array, order: SortOrder) -> Indices:
        """The stable argsort."""
        ...

    def partition_for(self, dtype: np.dtype[Any]) -> Partition | None:
        """A partition of elements of a dtype in the order of NumPy's `<`, faster than a sort; None if there is none."""
        ...

    def foresee_sorts(self, dtype: np.dtype[Any], order: SortOrder, length: int) -> None:
        """Loads in the background what sorts of pieces of about this length will need."""
        ...


_key_words = lru_cache(64)(KeyWords)


def words_of(elements: Array, order: SortOrder, *, ranks: bool, key: SortableKey[Any, Any] | None = None) -> Array:
    """Unsigned integers in sort order, of elements of any byte order, by NumPy's order or a user's key. With `ranks`
    elements that are equal to a stable sort have equal ones, as 0.0 and -0.0 and all NaNs; else floats differ if their
    bits do."""
    machines = native(elements.dtype)
    words = _key_words(cast(Any, key_for(machines) if key is None else key), order)
    return words.to_words(ranks=ranks)(np.ascontiguousarray(elements, machines))


@attrs.frozen
class KeyColumn:
    """A sort key's dtype and direction."""

    dtype: np.dtype[Any]
    order: SortOrder


@attrs.frozen(eq=False)
class KeyOrder:
    """The lexicographic order of several keys, stable."""

    columns: Sequence[KeyColumn]

    @property
    def extra(self) -> int:
        """Temporary bytes that `argsort` takes for an element: a contiguous key, indices, and argsort's own."""
        return max(column.dtype.itemsize for column in self.columns) + (32 if len(self.columns) == 1 else 48)

    def words(self, keys: Sequence[Array]) -> Array:
        """Values that compare as the keys do: integers for one key, big-endian byte strings for several."""
        found = [words_of(key, column.order, ranks=True) for column, key in zip(self.columns, keys, strict=True)]
        if len(found) == 1:
            return found[0]
        big = [word.astype(word.dtype.newbyteorder(">")) for word in found]
        parts = [word.view(np.uint8).reshape(word.size, word.itemsize) for word in big]
        joined = np.concatenate(parts, axis=1)
        return joined.view(f"S{joined.shape[1]}").reshape(-1)

    def argsort(self, keys: Sequence[Array], engine: Engine) -> Indices:
        """The argsort by all keys: a stable argsort by each, the least significant key first (LSD)."""
        (column, key), *others = reversed([*zip(self.columns, keys, strict=True)])
        indices = engine.argsort(np.ascontiguousarray(key, native(column.dtype)), column.order)
        for column, key in others:
            machines = np.ascontiguousarray(key, native(column.dtype))
            indices = indices[engine.argsort(machines[indices], column.order)]
        return indices
