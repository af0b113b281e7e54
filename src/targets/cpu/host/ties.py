"""Floats that compare equal and differ in their bits, in sorted rows: -0.0 and 0.0, and NaNs.

NumPy's sort may return any zero for a zero and any NaN for a NaN. Each row has as many of a kind as its source, so they
are written anew where their likes are. Mostly there is little to write: no -0.0, and all NaNs alike.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ....types.dtypes import FloatBits, key_for
from ....types.indices import SortOrder
from .key_words import Elements, bits_of, elements_in_order, ordered_words


@attrs.frozen
class Kind:
    """Elements that tie, by their bits: no setting of the processor takes a subnormal for zero there."""

    bits: FloatBits
    is_nan: bool

    def among(self, words: Elements) -> npt.NDArray[np.bool_]:
        """Which of some words are of this kind."""
        of = words.dtype.type
        magnitudes = words & of(self.bits.magnitude)
        found: npt.NDArray[np.bool_] = magnitudes > of(self.bits.infinity) if self.is_nan else magnitudes == 0
        return found


@cache
def _kinds(dtype: np.dtype[Any]) -> tuple[Kind, Kind]:
    """Zeros, NaNs."""
    bits = FloatBits.of(dtype)
    return Kind(bits, is_nan=False), Kind(bits, is_nan=True)


def restore_ties(source: Elements, results: Elements, order: SortOrder, stable: bool) -> None:
    """Writes the zeros and NaNs of sorted rows: as they come in the source's rows, or in the order of their words."""
    zeros, nans = _kinds(source.dtype)
    last = results[..., -1]
    has_nans = bool((last != last).any())
    first = _first_zero(results, order, has_nans)
    if first is not None:
        words = bits_of(source)
        if int(words.view(f"i{words.itemsize}").min()) == -(zeros.bits.magnitude + 1):  # without -0.0 all are alike
            _write(words, bits_of(results), zeros, first, order, stable)
    if has_nans:
        _write(bits_of(source), bits_of(results), nans, None, order, stable)


def _first_zero(results: Elements, order: SortOrder, has_nans: bool) -> int | None:
    """Where zeros begin in a sorted row; of several rows 0. None if there are none."""
    if len(results) > 1:
        return 0 if (results == 0).any() else None
    row, value, numbers = results[0], results[0].item, results.size
    if order is SortOrder.ASCENDING:
        first = int(row.searchsorted(row.dtype.type(0)))
    else:
        if has_nans:
            numbers = bisect_left(range(row.size), True, key=lambda at: value(at) != value(at))
        first = bisect_left(range(numbers), True, key=lambda at: value(at) <= 0)
    return first if first < row.size and value(first) == 0 else None


def _write(words: Elements, sorted_: Elements, kind: Kind, first: int | None, order: SortOrder, stable: bool) -> None:
    """All of a kind, in one call; in a single row from `first` on, or at its end."""
    several, of = len(words) > 1, words.dtype.type
    if first is not None and not several and not stable:  # zeros need but be counted
        zeros = [of(kind.bits.magnitude + 1), of(0)][:: 1 if order is SortOrder.ASCENDING else -1]
        counts = [np.count_nonzero(words == zero) for zero in zeros]
        sorted_[0, first : first + sum(counts)] = np.repeat(np.array(zeros), counts)
        return
    are_such = kind.among(words)
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
        sorted_[kind.among(sorted_)] = found
    else:
        start = sorted_.size - found.size if first is None else first
        sorted_[0, start : start + found.size] = found
