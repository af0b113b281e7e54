"""Short arrays: NumPy's own sort, and as little around it as can be.

Sorted by it floats are in our order too, if no NaN is among them, nor -0.0. Mostly that is so, and
these look for it in less time than the sort takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from ...types.indices import SortOrder
from ..base import HostArray
from .ranks import Elements

# What NumPy's function comes to, in a fourth of the time; the function itself where it is not found.
_inside = getattr(getattr(np, "_core", None), "multiarray", None)
count_nonzero = cast("Callable[[HostArray], int]", getattr(_inside, "count_nonzero", np.count_nonzero))

_FEW = 500  # elements: of more, a look at all as integers costs less than a count of those that are not zero
_WORDS = {4: (np.dtype(np.int32), -(1 << 31)), 8: (np.dtype(np.int64), -(1 << 63))}  # and the least of them


def is_row_in_order(row: Elements, source: Elements) -> bool:
    """Whether a row of floats that NumPy has made of a source is as we have it."""
    last = row.item(-1)
    if last == last and row.size <= _FEW and count_nonzero(row) == row.size:
        return True
    return last == last and _has_no_minus_zero(source)


def are_plain(source: Elements) -> bool:
    """Whether NumPy's sort of floats leaves nothing to put right: there is no NaN, and no -0.0."""
    if source.size > _FEW:
        source = source.ravel("K")
    most = source.item(source.argmax())  # which finds NaN first
    if most == most and source.size <= _FEW and count_nonzero(source) == source.size:
        return True
    return most == most and _has_no_minus_zero(source)


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """What is done before and after, to all elements of a kind, where they are to descend."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert


def _has_no_minus_zero(source: Elements) -> bool:
    """As an integer it is the least of all. Sorted it may be another zero."""
    word, least = _WORDS[source.itemsize]
    words = source.view(word)
    return words.item(words.argmin()) != least
