"""Floats that tie and yet differ in their bits, zeros of both signs and NaNs, in a few elements: whether there are any,
and where they belong after NumPy's sort, which may return any of them for another."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np

from ...counts import count_nonzero
from .key_words import Elements, bits_of

# elements: of more, a look at all as integers costs less than a count of those that are not zero, which NumPy makes one
# by one of float16 and in another byte order
_FEW, _FEW_ONE_BY_ONE = 640, 200
_INFINITY = 0x7C00  # in float16


@attrs.frozen(eq=False)
class FloatTies:
    """For one dtype. Bits are compared as integers with arrays of no dimension, which takes NumPy the least time."""

    word: np.dtype[np.generic]
    unsigned: np.dtype[np.generic]
    least: int  # -0.0 as a signed integer, the least of all
    few: int
    usual_nan: Elements
    minus_nan: Elements

    @classmethod
    @cache
    def of(cls, dtype: np.dtype[np.generic]) -> FloatTies:
        word = np.dtype(f"i{dtype.itemsize}").newbyteorder(dtype.byteorder)
        least, nan = -(1 << (8 * dtype.itemsize - 1)), np.array(np.nan, dtype).view(word)
        few = _FEW if dtype.itemsize > 2 and dtype.isnative else _FEW_ONE_BY_ONE
        return cls(word, np.dtype(f"{word.byteorder}u{dtype.itemsize}"), least, few, nan, nan | least)

    def has_minus_zero(self, source: Elements) -> bool:
        """Whether -0.0 is among packed floats; after a sort it may have become another zero."""
        words = source.view(self.word)
        return bool(words.item(words.argmin()) == self.least)

    def has_nan(self, source: Elements) -> bool:
        """Whether NaN is among packed floats, of which there are some."""
        if source.itemsize > 2 or source.size <= self.few:
            greatest = source.item(source.argmax())
            return bool(greatest != greatest)
        words, with_sign = source.view(self.word), source.view(self.unsigned)  # float16 is compared one by one
        return bool(words.item(words.argmax()) > _INFINITY or with_sign.item(with_sign.argmax()) > _INFINITY | 0x8000)

    def puts_usual_nans_back(self, source: Elements, results: Elements) -> bool:
        """Whether all NaNs, of which there are some, are the usual ones, of either sign: these are but counted. They
        are the last ones of a row, or NumPy has left them as they are."""
        if not self.word.isnative:
            return False
        nans, given, words = count_nonzero(np.isnan(source)), source.view(self.word), results.view(self.word)
        plus, size = count_nonzero(given == self.usual_nan), words.size
        if words.ndim > 1:
            return plus == nans and count_nonzero(words == self.usual_nan) == nans
        if plus != nans:
            minus = count_nonzero(given == self.minus_nan)
            if plus + minus != nans:
                return False
            words[size - minus :] = self.minus_nan
        if plus:
            words[size - nans : size - nans + plus] = self.usual_nan
        return True

    def puts_nans_back(self, source: Elements, results: Elements, stable: bool) -> bool:
        """Whether all NaNs, of which there are some, have the same bits; then the results' NaNs have these. Or unless
        `stable` all are the usual ones."""
        if not stable and self.puts_usual_nans_back(source, results):
            return True
        found = bits_of(source)[np.isnan(source)]
        if not _are_alike(found):
            return False
        bits_of(results)[np.isnan(results)] = found[0]
        return True


def are_ties_alike(source: Elements) -> bool:
    """Whether packed floats that tie have the same bits, so that any stable order is theirs by their bits too. -0.0 is
    taken to have 0.0 beside it."""
    size = source.size
    if not size:
        return True
    ties = FloatTies.of(source.dtype)
    if (size > ties.few or count_nonzero(source) != size) and ties.has_minus_zero(source):
        return False
    return not ties.has_nan(source) or _are_alike(bits_of(source)[np.isnan(source)])


def _are_alike(bits: Elements) -> bool:
    return not count_nonzero(bits != bits[0])
