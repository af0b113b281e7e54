"""Built-in keys vectorised: the transform from elements to words, by NumPy on whole arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ....types.dtypes import ArrayKey, elements_of
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
    """The same where elements that compare equal share a word: 0.0 and -0.0, and all NaNs.

    0.0 steps down to -0.0, and all above with it: so of floats that are integers the lowest bits are alike.
    """
    if not isinstance(key, FloatKey):
        return ordered_words(key, bits, order)
    of = bits.dtype.type
    negative = _sign_spread(bits)
    words: Elements = np.bitwise_or(negative, of(key.sign))
    words ^= bits
    words += np.invert(negative, out=negative)  # less one, if it is positive
    offset = of(rank_offset(key, order))
    if order is SortOrder.DESCENDING:
        np.subtract(offset, words, out=words)
    else:
        words -= offset
    np.minimum(words, of(key.last), out=words)  # the words of NaNs, wrapped round or not, are behind all others
    return words


def rank_numbers(key: ArrayKey, itemsize: int, order: SortOrder) -> tuple[int, ...]:
    """What the compiled loops make ranks by. Of floats: the sign's bit, `rank_offset`, the last rank, whether they
    descend. Of others: bits to turn over, what to take away then, and all bits."""
    descends, everything = order is SortOrder.DESCENDING, (1 << 8 * itemsize) - 1
    match key:
        case FloatKey(sign=sign, last=last):
            return sign, rank_offset(key, order), last, int(descends)
        case UnsignedKey():
            turned, less = 0, 0
        case SignedKey(sign=sign):
            turned, less = sign, 0
        case TimeKey():  # NaT, the least integer, is last in either order
            turned, less = 1 << 63, 0 if descends else 1
        case _:
            raise UnsupportedTypeError(f"words of a {type(key).__name__} are not known to the host")
    return turned ^ (everything if descends else 0), less, everything


def rank_offset(key: FloatKey[Any, Any], order: SortOrder) -> int:
    """What is taken from flipped bits to make ranks of them; descending, what they are taken from."""
    return key.lowest if order is SortOrder.ASCENDING else (key.last - 1 + key.lowest) % (2 * key.sign)


def _sign_spread(bits: Elements) -> Elements:
    """All bits of negative floats, and none of others."""
    return (bits.view(f"i{bits.itemsize}") >> (8 * bits.itemsize - 1)).view(bits.dtype)


def _mirrored(key: ArrayKey, words: Elements) -> Elements:
    if key.last == np.iinfo(words.dtype).max:
        return np.invert(words)
    last = words.dtype.type(key.last)
    mirrored: Elements = last - words
    return mirrored if not words.size or words.max() <= last else np.where(words <= last, mirrored, words)
