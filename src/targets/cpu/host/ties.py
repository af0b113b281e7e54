"""Floats that compare equal and differ in their bits, in sorted rows: -0.0 and 0.0, and NaNs.

NumPy's sort may return any zero for a zero and any NaN for a NaN. Each row has as many of a kind as its source, so they
are overwritten with those of the source. Usually there is little to write: no -0.0, and NaNs of one kind.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from ....types.dtypes import FloatBits, key_for
from ....types.indices import SortOrder
from .key_words import Elements, bits_of, elements_in_order, ordered_words
from .short_sort import has_minus_zero

_BLOCK = 1 << 15  # elements


def _among(words: Elements, is_nan: bool) -> npt.NDArray[np.bool_]:
    """Which of some floats are NaN, or zero, by their bits: no setting of the processor takes a subnormal for zero."""
    bits, of = FloatBits.of(np.dtype(f"f{words.itemsize}")), words.dtype.type
    magnitudes = words & of(bits.magnitude)
    found: npt.NDArray[np.bool_] = magnitudes > of(bits.infinity) if is_nan else magnitudes == 0
    return found


def restore_ties(source: Elements, results: Elements, order: SortOrder, stable: bool) -> None:
    """Writes the zeros and NaNs of sorted rows: as they come in the source's rows, or in the order of their words."""
    last = results[..., -1]
    has_nans = bool((last != last).any())
    span = _zeros_among(results, order)
    if span is not None:
        words = bits_of(source)
        if len(results) == 1 and not stable:
            _write_zeros(words, bits_of(results)[0, span], order)
        elif has_minus_zero(source):  # without -0.0 all are alike
            _write(words, bits_of(results), span.start, order, stable)
    if has_nans:
        _write(bits_of(source), bits_of(results), None, order, stable)


def _zeros_among(results: Elements, order: SortOrder) -> slice | None:
    """The span of the zeros of a sorted row, or, if there are several rows, of all elements. None if there are no
    zeros."""
    if len(results) > 1:
        return slice(0, None) if (results == 0).any() else None
    row, ascends = results[0], order is SortOrder.ASCENDING
    value, places = row.item, range(row.size)  # NaNs, which are last, come before nothing
    first = bisect_left(places, True, key=lambda at: not (value(at) < 0 if ascends else value(at) > 0))
    end = bisect_left(places, True, key=lambda at: not (value(at) <= 0 if ascends else value(at) >= 0))
    return slice(first, end) if first < end else None


def _write_zeros(words: Elements, zeros: Elements, order: SortOrder) -> None:
    """All zeros of a row, in the order of their words: one kind need but be counted, block by block in the cache."""
    row, negative = words[0], words.dtype.type(1 << (8 * words.itemsize - 1))
    blocks = (row[start : start + _BLOCK] for start in range(0, row.size, _BLOCK))
    negatives = sum([int(np.count_nonzero(block == negative)) for block in blocks])
    if negatives:
        ascends = order is SortOrder.ASCENDING
        middle = negatives if ascends else zeros.size - negatives
        zeros[:middle], zeros[middle:] = (negative, 0) if ascends else (0, negative)


def _write(words: Elements, sorted_: Elements, first: int | None, order: SortOrder, stable: bool) -> None:
    """All zeros, or all NaNs if there is no `first`, in one call: in a single row from there on, or at its end."""
    several = len(words) > 1
    are_such = _among(words, first is None)
    found = words[are_such]
    if not stable and (found != found[0]).any():
        key = key_for(f"f{words.itemsize}")
        if several:
            found = found[np.lexsort((ordered_words(key, found, order), are_such.nonzero()[0]))]
        else:
            in_order = ordered_words(key, found, order)
            in_order.sort()
            found = elements_in_order(key, in_order, order)
    if several:
        sorted_[_among(sorted_, first is None)] = found
    else:
        start = sorted_.size - found.size if first is None else first
        sorted_[0, start : start + found.size] = found
