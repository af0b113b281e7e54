"""Short arrays: NumPy's own sort, and as little around it as can be.

Sorted by it floats are in our order too, if no NaN is among them, nor -0.0. Mostly that is so, and
these look for it in less time than the sort takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from ....types.indices import SortOrder
from ...base import HostArray
from .key_words import Elements

# What NumPy's function comes to, in a fourth of the time; the function itself where it is not found.
_inside = getattr(getattr(np, "_core", None), "multiarray", None)
count_nonzero = cast("Callable[[HostArray], int]", getattr(_inside, "count_nonzero", np.count_nonzero))

_FEW = 500  # elements: of more, a look at all as integers costs less than a count of those that are not zero
_WORDS: dict[int, tuple[np.dtype[np.signedinteger[Any]], int]] = {  # and the least of them
    4: (np.dtype(np.int32), -(1 << 31)), 8: (np.dtype(np.int64), -(1 << 63)),
}  # fmt: skip

Ends: TypeAlias = "tuple[slice | int, ...]"  # where along an axis the last elements are


def has_minus_zero(source: Elements) -> bool:
    """Whether -0.0 is among floats that lie packed. As an integer it is the least of all; sorted it may be another
    zero."""
    if source.size <= _FEW and count_nonzero(source) == source.size:
        return False
    word, least = _WORDS[source.itemsize]
    words = (source if source.ndim == 1 else source.ravel("K")).view(word)
    return int(words.item(words.argmin())) == least


def has_nan(results: Elements, ends: Ends | None) -> bool:
    """Whether NaN is among floats that NumPy has sorted: the last of a row, or one of these."""
    last = results.item(-1) if ends is None else _greatest(results[ends])
    return bool(last != last)


def are_plain(row: Elements) -> bool:
    """Whether NumPy orders floats as we do: there is no NaN, and no -0.0."""
    greatest = _greatest(row)
    return greatest == greatest and not has_minus_zero(row)


def ends_of(ndim: int, axis: int) -> Ends:
    ends: list[slice | int] = [slice(None)] * ndim
    ends[axis] = -1
    return tuple(ends)


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """What is done before and after, to all elements of a kind, where they are to descend."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert


def _greatest(elements: Elements) -> float:
    """NaN, where there is one."""
    return cast(float, elements.item(elements.argmax()))
