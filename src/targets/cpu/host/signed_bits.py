"""Rows of floats or times sorted as the signed integers of their bits: NumPy sorts those at least as fast, and loses no
bit of a zero or a NaN.

Of sorted integers little is to be put in our order. Floats with a sign descend where their bits ascend; NaNs, of either
sign, are last; so is NaT, the least integer.
"""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np

from ....types.dtypes import FloatBits
from ....types.indices import SortOrder
from .key_words import Elements


@attrs.frozen(eq=False)
class SignedBits:
    """Of one native dtype. What a row is searched for is an array of no dimension, which takes NumPy the least time."""

    word: np.dtype[np.generic]
    is_time: bool
    zero: Elements
    least: Elements  # NaT, or -0.0
    infinity: Elements
    last: int  # of the numbers without a sign, infinity
    last_negative: int  # -infinity

    @classmethod
    @cache
    def of(cls, dtype: np.dtype[np.generic]) -> SignedBits:
        word, least = np.dtype(f"i{dtype.itemsize}"), -(1 << (8 * dtype.itemsize - 1))
        infinity = FloatBits.of(dtype).infinity if dtype.kind == "f" else 0
        zero, lowest, highest = (np.array(number, word) for number in (0, least, infinity))
        return cls(word, dtype.kind != "f", zero, lowest, highest, infinity, infinity + least)

    def put_in_order(self, words: Elements, order: SortOrder) -> Elements:
        """Sorted words, of which there are some, in the order of their elements: where they are, if they ascend."""
        if self.is_time:
            nats = int(words.searchsorted(self.least, "right"))
            if nats:
                words[:] = np.concatenate((words[nats:], words[:nats]))
            return words
        below = int(words.searchsorted(self.zero))
        if words.item(-1) > self.last or (below and words.item(below - 1) > self.last_negative):
            return self._with_nans(words, below, order)
        if order is SortOrder.DESCENDING:
            return np.concatenate((words[below:][::-1], words[:below]))
        if below:
            negative = words[:below]
            negative[:] = negative[::-1]
        return words

    def _with_nans(self, words: Elements, below: int, order: SortOrder) -> Elements:
        positive, negative = words[below:], words[:below]
        numbers, negatives = self._numbers_in(positive), self._numbers_in(negative)
        nans = positive[numbers:], negative[negatives:][::-1]
        if order is SortOrder.DESCENDING:
            return np.concatenate((positive[:numbers][::-1], negative[:negatives], *nans))
        words[:] = np.concatenate((negative[:negatives][::-1], positive[:numbers], *nans))
        return words

    def _numbers_in(self, words: Elements) -> int:
        """How many of the words of one sign are no NaNs."""
        last = self.infinity if words.size and words.item(0) >= 0 else self.infinity + self.least
        return int(words.searchsorted(last, "right"))
