"""gpusort's order, as words that NumPy compares and as places: of one key, or of several, the first counting most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from ..algos.words import KeyWords, Transform, Wanted
from ..types.dtypes import key_for, native
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from .cuts import Array, Places


class Engine(Protocol):
    """Who sorts what fits into memory."""

    @property
    def workers(self) -> int:
        """How many pieces are sorted at once, each in a thread of its own; of one the caller's."""
        ...

    @property
    def alone(self) -> Engine:
        """The same for a piece beside which there are no others."""
        ...

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None: ...

    def argsort(self, x: Array, order: SortOrder) -> Places:
        """Where the elements of the sorted array come from; equal ones keep their order."""
        ...


def transform_of(
    dtype: np.dtype[Any], order: SortOrder, *, ranks: bool, key: SortableKey[Any, Any] | None = None
) -> Transform:
    """From elements, in the machine's byte order, to unsigned integers that compare as sorted elements lie, by NumPy's
    order or a user's key. With `ranks`, elements that are equal have one."""
    found = key_for(dtype) if key is None else key
    return KeyWords(found, order).to_words(Wanted.RANKS if ranks else Wanted.WORDS)


def words_of(dtype: np.dtype[Any], order: SortOrder, *, ranks: bool) -> Transform:
    """From elements of any byte order to unsigned integers that compare as sorted elements lie: floats by their bits.

    With `ranks` every NaN is equal, and so are 0.0 and -0.0: that is the order of a stable sort.
    """
    transform = transform_of(dtype, order, ranks=ranks)
    machines = native(dtype)
    first_nan = key_for(dtype).last + 1

    def words(elements: Array) -> Array:
        found = transform(np.ascontiguousarray(elements, machines))
        are_told_apart = not ranks or first_nan >> (8 * found.itemsize)
        return found if are_told_apart else np.minimum(found, found.dtype.type(first_nan))

    return words


@attrs.frozen
class KeyColumn:
    """One of the keys that elements are ordered by."""

    dtype: np.dtype[Any]
    order: SortOrder


@attrs.frozen(eq=False)
class KeyOrder:
    """Elements in the order of their keys; those of equal keys stay as they were."""

    columns: tuple[KeyColumn, ...]
    transforms: tuple[Transform, ...]

    @classmethod
    def of(cls, columns: Sequence[KeyColumn]) -> KeyOrder:
        return cls(tuple(columns), tuple(words_of(column.dtype, column.order, ranks=True) for column in columns))

    @property
    def extra(self) -> int:
        """Bytes that `places` takes for an element: keys in one piece, places, and what argsort works in."""
        return max(column.dtype.itemsize for column in self.columns) + (32 if len(self.columns) == 1 else 48)

    def words(self, keys: Sequence[Array]) -> Array:
        """What compares as the keys do: an integer where there is one of them, bytes where there are several."""
        found = [transform(key) for transform, key in zip(self.transforms, keys, strict=True)]
        if len(found) == 1:
            return found[0]
        parts = [word.astype(word.dtype.newbyteorder(">")).view(np.uint8).reshape(word.size, -1) for word in found]
        joined = np.concatenate(parts, axis=1)
        return joined.view(f"S{joined.shape[1]}").reshape(-1)

    def places(self, keys: Sequence[Array], engine: Engine) -> Places:
        """Where the sorted elements come from: stable sorts, the last key's first."""
        places: Places | None = None
        for column, key in zip(reversed(self.columns), reversed(keys), strict=True):
            machines = np.ascontiguousarray(key, native(column.dtype))
            if places is None:
                places = engine.argsort(machines, column.order)
            else:
                places = places[engine.argsort(machines[places], column.order)]
        assert places is not None  # there is a key
        return places
