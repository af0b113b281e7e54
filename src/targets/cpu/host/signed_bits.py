"""Floats and times as the signed integers of their bits: rows of them sorted as such, which NumPy does at least as fast
and loses no bit of a zero or a NaN; and whether there are floats that tie and yet differ in their bits, zeros of both
signs and NaNs, of which NumPy's sort may return any for another.

Floats with a sign descend where their bits ascend; NaNs, of either sign, are last; so is NaT, the least integer.
"""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np

from ....types.dtypes import infinity_of
from ....types.indices import SortOrder
from ...counts import count_nonzero
from .key_words import Elements, bits_of

# elements: of more, a look at all as integers costs less than a count of those that are not zero, which NumPy makes one
# by one of float16
_FEW, _HALVES = 640, 200


@attrs.frozen(eq=False)
class SignedBits:
    """Of one native dtype. What rows are searched for is an array of no dimension, which takes NumPy the least time."""

    word: np.dtype[np.generic]
    is_time: bool
    few: int
    zero: Elements
    least: int  # NaT, or -0.0
    last: int  # of the numbers without a sign, infinity
    last_negative: int  # -infinity

    @classmethod
    @cache
    def of(cls, dtype: np.dtype[np.generic]) -> SignedBits:
        word, least = np.dtype(f"i{dtype.itemsize}"), -(1 << (8 * dtype.itemsize - 1))
        infinity = infinity_of(dtype) if dtype.kind == "f" else 0
        few, zero = _FEW if dtype.itemsize > 2 else _HALVES, np.array(0, word)
        return cls(word, dtype.kind != "f", few, zero, least, infinity, infinity + least)

    def put_in_order(self, words: Elements, order: SortOrder) -> Elements:
        """Sorted words, of which there are some, in the order of their elements: where they are, if they ascend."""
        if self.is_time:
            nats = 0 if words.item(0) > self.least else int(words.searchsorted(self.word.type(self.least), "right"))
            return np.concatenate((words[nats:], words[:nats])) if nats else words
        below = int(words.searchsorted(self.zero))
        negative = words[:below]
        nans: tuple[Elements, ...] = ()
        if words.item(-1) <= self.last and (not below or negative.item(-1) <= self.last_negative):
            if order is SortOrder.ASCENDING:
                negative[:] = negative[::-1]
                return words
            positive = words[below:]
        else:
            minus = int(negative.searchsorted(self.word.type(self.last_negative), "right"))
            plus = below + int(words[below:].searchsorted(self.word.type(self.last), "right"))
            positive, nans = words[below:plus], (words[plus:], negative[minus:][::-1])
            negative = negative[:minus]
        if order is SortOrder.DESCENDING:
            return np.concatenate((positive[::-1], negative, *nans))
        return np.concatenate((negative[::-1], positive, *nans))

    def has_minus_zero(self, source: Elements) -> bool:
        """Whether -0.0 is among floats; after a sort it may have become another zero."""
        words = source.view(self.word)
        if words.flags.c_contiguous:  # the least time of a few
            return bool(words.item(words.argmin()) == self.least)
        return bool(words.min() == self.least)  # which goes over memory as it lies

    def has_nan(self, source: Elements) -> bool:
        """Whether NaN is among floats, of which there are some."""
        if source.itemsize == 2 and source.size > self.few:  # which are compared one by one
            return bool((bits_of(source) & 0x7FFF).max() > self.last)
        greatest = source.item(source.argmax())
        return bool(greatest != greatest)

    def puts_nans_back(self, source: Elements, results: Elements) -> bool:
        """Whether all NaNs, of which there are some, have the same bits; then the results' NaNs, which are the last of
        each row, have these."""
        are_nans, given, made = np.isnan(source), source.view(self.word), results.view(self.word)
        nan, count = np.array(given.item(are_nans.argmax()), self.word), count_nonzero(are_nans)
        if count > 1 and count_nonzero(given == nan) != count:
            return False
        if made.ndim == 1 and (first := results.item(-count)) != first:
            made[-count:] = nan
        elif count_nonzero(made == nan) != count:  # or NumPy has left them as they are
            made[np.isnan(results)] = nan
        return True


def are_ties_alike(source: Elements) -> bool:
    """Whether floats that tie have the same bits, so that any stable order is theirs by their bits too. -0.0 is taken
    to have 0.0 beside it."""
    size = source.size
    if not size:
        return True
    bits = SignedBits.of(source.dtype)
    if (size > bits.few or count_nonzero(source) != size) and bits.has_minus_zero(source):
        return False
    if not bits.has_nan(source):
        return True
    nans = bits_of(source)[np.isnan(source)]
    return not count_nonzero(nans != nans[0])
