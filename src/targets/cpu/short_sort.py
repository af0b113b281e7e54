"""Short arrays: NumPy's own sort, and as little around it as can be.

Sorted by it floats are in our order too, if no NaN is among them, nor -0.0. Mostly that is so, and
these look for it in less time than the sort takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from ..base import HostArray
from .ranks import Elements

# What NumPy's function comes to, in a fourth of the time; the function itself where it is not found.
_inside = getattr(getattr(np, "_core", None), "multiarray", None)
count_nonzero = cast("Callable[[HostArray], int]", getattr(_inside, "count_nonzero", np.count_nonzero))

_FEW = 1000  # elements: of more, a look at all as integers costs less than a count of those that are not zero
_ALL, _BACKWARDS = slice(None), slice(None, None, -1)


def is_row_in_order(row: Elements, source: Elements) -> bool:
    """Whether a row of floats that NumPy has made of a source is as we have it."""
    last = row.item(-1)
    if last != last:
        return False
    if count_nonzero(row) == row.size:
        return True
    return _has_no_minus_zero(source)


def are_plain(source: Elements) -> bool:
    """Whether NumPy's sort of floats leaves nothing to put right: there is no NaN, and no -0.0."""
    last = source.item(source.argmax())  # which finds NaN first
    if last != last:
        return False
    return (source.size <= _FEW and count_nonzero(source) == source.size) or _has_no_minus_zero(source)


def flipped(results: HostArray, axis: int | None) -> HostArray:
    """What ascends along an axis, descending, in the same layout."""
    backwards: list[slice] = [_ALL] * results.ndim
    backwards[-1 if axis is None else axis] = _BACKWARDS
    return results[tuple(backwards)].copy("K")


def _has_no_minus_zero(source: Elements) -> bool:
    """As an integer it is the least of all. Sorted it may be another zero."""
    word = np.dtype(f"i{source.itemsize}")
    return int(np.minimum.reduce(source.view(word), None)) != int(np.iinfo(word).min)
