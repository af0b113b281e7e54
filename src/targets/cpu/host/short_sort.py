"""Short arrays: NumPy's own sort, and as little around it as can be.

Sorted by it floats are in our order too, if no NaN is among them, nor -0.0. Mostly that is so, and
these look for it in less time than the sort takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....types.indices import SortOrder
from ...counts import count_nonzero
from .key_words import Elements

FEW = 1024  # elements: of more, a look at all as integers costs less than a count of those that are not zero
_WORDS: dict[int, tuple[np.dtype[np.signedinteger[Any]], int]] = {  # and the least of them
    2: (np.dtype(np.int16), -(1 << 15)), 4: (np.dtype(np.int32), -(1 << 31)), 8: (np.dtype(np.int64), -(1 << 63)),
}  # fmt: skip


def has_minus_zero(source: Elements) -> bool:
    """Whether -0.0 is among floats that lie packed. As an integer it is the least of all; sorted it may be another
    zero."""
    if source.size <= FEW and count_nonzero(source) == source.size:
        return False
    word, least = _WORDS[source.itemsize]
    words = source.view(word)
    return int(words.item(words.argmin())) == least


def are_plain(source: Elements) -> bool:
    """Whether NumPy orders floats as we do: there is no NaN, and no -0.0."""
    greatest = source.item(source.argmax())  # NaN, where there is one
    return bool(greatest == greatest) and not has_minus_zero(source)


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """What is done before and after, to all elements of a kind, where they are to descend."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert
