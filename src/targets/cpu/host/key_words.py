"""Built-in keys vectorised: the transform from elements to words, by NumPy on whole arrays."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ....types.dtypes import ArrayKey, FloatBits, elements_of
from ....types.errors import UnsupportedTypeError
from ....types.indices import SortOrder
from ....types.keys import FloatKey, SignedKey, TimeKey, UnsignedKey

# Of any dtype that is sorted here, or the unsigned integers of its bits.
Elements: TypeAlias = npt.NDArray[Any]
Places: TypeAlias = npt.NDArray[np.intp]


def bits_of(elements: Elements) -> Elements:
    """The same memory as unsigned integers."""
    return elements.view(f"u{elements.itemsize}")


def numbers_of(elements: Elements) -> Elements:
    """The same memory as numbers that compare in order: times as integers, and bools by their bytes, as NumPy sorts."""
    if elements.dtype.kind == "b":
        return elements.view(np.uint8)
    return elements.view(np.int64) if elements.dtype.kind in "Mm" else elements


def words_of(key: ArrayKey, bits: Elements) -> Elements:
    """`key.to_word` of each element. Words of 8 and 16 bits stay in as many."""
    of = bits.dtype.type
    words: Elements
    match key:
        case UnsignedKey():
            words = bits
        case SignedKey(sign=sign):
            words = bits ^ of(sign)
        case TimeKey():
            words = bits - of((1 << 63) + 1)
        case FloatKey(sign=sign, lowest=lowest):
            words = _sign_spread(bits)
            words |= of(sign)  # the bits to flip: of negative floats all
            words ^= bits
            words -= of(lowest)
        case _:
            raise UnsupportedTypeError(f"words of a {type(key).__name__} are not known to the host")
    return words


def ordered_words(key: ArrayKey, bits: Elements, order: SortOrder) -> Elements:
    """Words that ascend as elements should in this order."""
    words = words_of(key, bits)
    return words if order is SortOrder.ASCENDING else _mirrored(key, words)


def elements_in_order(key: ArrayKey, words: Elements, order: SortOrder) -> Elements:
    """The bits of elements from such words."""
    return elements_of(key, words if order is SortOrder.ASCENDING else _mirrored(key, words))


def ordered_ranks(key: ArrayKey, bits: Elements, order: SortOrder) -> Elements:
    """The same where elements that compare equal share a word: 0.0 and -0.0, and all NaNs. Of floats that are integers
    the lowest bits are alike."""
    if not isinstance(key, FloatKey):
        return ordered_words(key, bits, order)
    of, floats = bits.dtype.type, FloatBits.of(np.dtype(f"f{bits.itemsize}"))
    words: Elements = bits & of(floats.magnitude)
    are_nan = words > of(floats.infinity)
    negative = _sign_spread(bits)
    if order is SortOrder.DESCENDING:
        np.invert(negative, out=negative)
    words ^= negative
    words -= negative
    words ^= of(key.sign)
    words[are_nan] = np.iinfo(words.dtype).max
    return words


@cache
def constants(dtype: np.dtype[np.generic], order: SortOrder) -> Elements:
    """What compiled loops make words of elements by: bits to turn over, and what to take away. Of floats also all bits
    but the sign, those of infinity, and how far the sign is from the lowest bit."""
    bits = 8 * dtype.itemsize
    sign, is_down = -(1 << (bits - 1)), order is SortOrder.DESCENDING
    found = [0, 0, 0, 0, 0]
    match dtype.kind:
        case "f":
            floats = FloatBits.of(dtype)
            found = [
                sign if is_down else 0,
                floats.magnitude - floats.infinity,
                floats.magnitude,
                floats.infinity,
                bits - 1,
            ]
        case "M" | "m":  # NaT, the least integer, is to be last
            found[:2] = [-1, 0] if is_down else [0, 1]
        case "i":
            found[0] = -1 if is_down else 0
        case _:
            found[0] = ~sign if is_down else sign
    return np.array(found, f"i{dtype.itemsize}")


def _sign_spread(bits: Elements) -> Elements:
    """All bits of negative floats, and none of others."""
    return (bits.view(f"i{bits.itemsize}") >> (8 * bits.itemsize - 1)).view(bits.dtype)


def _mirrored(key: ArrayKey, words: Elements) -> Elements:
    if key.last == np.iinfo(words.dtype).max:
        return np.invert(words)
    last = words.dtype.type(key.last)
    mirrored: Elements = last - words
    return mirrored if not words.size or words.max() <= last else np.where(words <= last, mirrored, words)
