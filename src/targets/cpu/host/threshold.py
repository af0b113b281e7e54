"""Where the first few elements of a part of a row stand, and some more: all that a threshold lets pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....types.indices import SortOrder
from ...counts import count_nonzero
from .key_words import Elements, Places, numbers_of, ordered_ranks, ordered_words

_PARTED = 1 << 12  # elements that a partition takes sooner than the best of columns are found
_TIED = 1 << 7  # elements that stand besides the k first ones, where hardly any are equal
_AT_ONCE = 1 << 10  # elements among which equals are looked for
_COLUMN, _SHORTEST_COLUMN = 64, 8  # elements


def comparable(elements: Elements, order: SortOrder) -> tuple[Elements, bool]:
    """Numbers that compare as elements do, NaN in no way; and whether the first are the least of them."""
    match elements.dtype.kind:
        case "f" if elements.dtype.itemsize == 2:  # which are compared as integers in a tenth of the time
            return ordered_ranks(elements, order), True
        case "M" | "m":
            return ordered_words(elements, order), True
        case _:
            return numbers_of(elements), order is SortOrder.ASCENDING


def first_of(numbers: Elements, ascends: bool, k: int) -> Places | None:
    """Where they stand, k and some more; None where too few are numbers."""
    height = min(_COLUMN, numbers.size // (4 * k))
    if height >= _SHORTEST_COLUMN and (numbers.size > _PARTED or numbers.itemsize <= 2):
        width = numbers.size // height
        best = _best_of(numbers[: height * width].reshape(height, width), ascends)
    else:
        best = numbers.copy()
    if best.dtype.kind == "f" and count_nonzero(are_numbers := best == best) < best.size:
        best = best[are_numbers]
    if best.size < k:
        return None
    place, reaches, exceeds = (k - 1, np.less_equal, np.less) if ascends else (-k, np.greater_equal, np.greater)
    best.partition(place)
    threshold = best[place]
    mask: npt.NDArray[np.bool_] = reaches(numbers, threshold)
    if count_nonzero(mask) <= 8 * k + _TIED:
        return mask.nonzero()[0]
    near = exceeds(numbers, threshold).nonzero()[0]  # many are equal to it: the first of them will do
    return np.concatenate([near, first_equals(numbers, threshold, k - near.size)])


def first_equals(numbers: Elements, threshold: Elements | np.bool_, count: int) -> Places:
    """Where so many numbers that are equal to it stand, or all that are."""
    size, equal = 0, np.empty(0, np.intp)
    while equal.size < count and size < numbers.size:
        size = 8 * size + _AT_ONCE
        equal = (numbers[:size] == threshold).nonzero()[0]
    return equal[: max(0, count)]


def _best_of(columns: Elements, ascends: bool) -> Elements:
    """The least or the greatest number of each column that has any; of others NaN."""
    best: Elements = columns.min(0) if ascends else columns.max(0)
    if best.dtype.kind == "f" and count_nonzero(best == best) < best.size:
        best = (np.fmin if ascends else np.fmax).reduce(columns, 0)  # which takes several times as long
    return best
