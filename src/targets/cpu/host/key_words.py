"""Built-in keys vectorised: the transform from elements to words, by NumPy on whole arrays, and in compiled loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ....types.dtypes import infinity_of
from ....types.indices import SortOrder
from ..loops import place_of

# Of any dtype that is sorted here, or the unsigned integers of its bits.
Elements: TypeAlias = npt.NDArray[Any]
Places: TypeAlias = npt.NDArray[np.intp]

INDEX: np.dtype[np.intp] = np.dtype(np.intp)
HALF = np.dtype(np.float16)

_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}  # by their names NumPy looks dtypes up slowly


def bits_of(elements: Elements) -> Elements:
    """The same memory as unsigned integers."""
    return elements.view(_UNSIGNED[elements.itemsize])


def numbers_as(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Of numbers that compare as elements do: times as integers, and bools (which may be any byte) by their bytes."""
    if dtype.kind not in "bMm":
        return dtype
    return np.dtype(np.uint8 if dtype.kind == "b" else np.int64).newbyteorder(dtype.byteorder)


def numbers_of(elements: Elements) -> Elements:
    """The same memory as such numbers."""
    return elements.view(numbers_as(elements.dtype)) if elements.dtype.kind in "bMm" else elements


def ordered_words(elements: Elements, order: SortOrder) -> Elements:
    """Unsigned integers that ascend as elements should, floats by their bits, NaN and NaT last. The elements' own
    memory where they do."""
    turned, less, _, _, shift, sign, flip = _arrays(elements.dtype, order)
    words: Elements = elements.view(sign.dtype)
    if elements.dtype.kind == "f":
        numbers = _turned(elements, order) if turned else words
        words = numbers >> shift
        words |= sign  # the bits to flip: of negative floats all
        words ^= numbers
        words -= less
        return bits_of(words)
    words = words ^ flip if flip else words
    return bits_of(words - less if less else words)


def elements_in_order(words: Elements, dtype: np.dtype[np.generic], order: SortOrder) -> Elements:
    """The elements of a dtype from such words."""
    turned, less, magnitude, _, shift, _, flip = _arrays(dtype, order)
    found: Elements = words.view(flip.dtype) + less
    found ^= flip
    if dtype.kind == "f":
        numbers = found >> shift
        numbers &= magnitude
        found ^= numbers
        if turned:
            found = _turned(found.view(dtype), order)
    return found.view(dtype)


def _turned(floats: Elements, order: SortOrder) -> Elements:
    """Their bits, with the signs turned over, but not of NaNs: of which NumPy soon knows that there are none, unless
    floats are of 16 bits."""
    turned, _, magnitude, infinity, *_ = _arrays(floats.dtype, order)
    bits: Elements = floats.view(turned.dtype)
    if floats.size and floats.itemsize > 2 and (greatest := floats.item(floats.argmax())) == greatest:
        return bits ^ turned
    return bits ^ ((bits & magnitude) <= infinity) * turned


def ordered_ranks(elements: Elements, order: SortOrder) -> Elements:
    """The same where elements that compare equal share a word: 0.0 and -0.0, and all NaNs. Of floats that are integers
    the lowest bits are alike."""
    if elements.dtype.kind != "f":
        return ordered_words(elements, order)
    turned, _, magnitude, infinity, shift, sign, _ = _arrays(elements.dtype, order)
    words: Elements = elements.view(sign.dtype)
    ranks: Elements = words & magnitude
    are_nan, negative = ranks > infinity, (words ^ turned if turned else words) >> shift
    ranks ^= negative
    ranks -= negative
    ranks ^= sign
    ranks[are_nan] = -1
    return bits_of(ranks)


@cache
def constants(dtype: np.dtype[np.generic], order: SortOrder) -> Elements:
    """What words are made of elements by, signed ones in compiled loops: bits to turn over, and what to take away. Of
    floats also all bits but the sign, those of infinity, and how far the sign is from the lowest bit."""
    bits = 8 * dtype.itemsize
    sign, is_down = -(1 << (bits - 1)), order is SortOrder.DESCENDING
    match dtype.kind:
        case "f":
            magnitude, infinity = ~sign, infinity_of(dtype)
            found = [sign if is_down else 0, magnitude - infinity, magnitude, infinity, bits - 1]
        case "M" | "m":  # NaT, the least integer, is to be last
            found = [-1, 0, 0, 0, 0] if is_down else [0, 1, 0, 0, 0]
        case "i":
            found = [-1 if is_down else 0, 0, 0, 0, 0]
        case _:
            found = [~sign if is_down else sign, 0, 0, 0, 0]
    return np.array(found, f"i{dtype.itemsize}")


@cache
def place_of_constants(dtype: np.dtype[np.generic], order: SortOrder) -> tuple[int, int]:
    """As compiled loops take them: they are kept for good."""
    return place_of(constants(dtype, order))


@cache
def _arrays(dtype: np.dtype[np.generic], order: SortOrder) -> tuple[Elements, ...]:
    """The same, the sign, and what to flip of a number, as arrays of no dimension: what NumPy computes with soonest."""
    found = constants(dtype, order)
    sign = np.array(np.iinfo(found.dtype).min)
    flip = sign if dtype.kind == "f" else sign ^ found[0]
    return *(np.array(value) for value in found), sign.astype(found.dtype), np.array(flip, found.dtype)


def lines_of_bits(is_float: bool) -> Iterator[str]:
    """The constants by their names."""
    names = ("turned", "less", "magnitude", "infinity", "shift") if is_float else ("turned", "less")
    for place, name in enumerate(names):
        yield f"{name} = bits[{place}]"


def turned(word: str, element: str, is_float: bool) -> Iterator[str]:
    """An element in its place becomes a word. Signs of floats are turned over first, if they are to descend, but not of
    NaNs; then negatives get the order of numbers."""
    if not is_float:
        yield f"{element} = {word}({word}({element} ^ turned) - less)"
        return
    yield f"found = {element}"
    yield f"found = select({word}(found & magnitude) <= infinity, {word}(found ^ turned), found)"
    yield f"{element} = {word}({word}(found ^ {word}({word}(found >> shift) & magnitude)) - less)"


def ranked(word: str, element: str, is_float: bool) -> Iterator[str]:
    """The same, and elements that compare equal become one word: zeros of both signs, and all NaNs."""
    if not is_float:
        yield from turned(word, element, is_float)
        return
    yield f"found = {word}({element} & magnitude)"
    yield f"negative = {word}({word}({element} ^ turned) >> shift)"
    yield f"{element} = select(found <= infinity, {word}({word}(found ^ negative) - negative), magnitude)"


def turned_back(word: str, element: str, is_float: bool) -> Iterator[str]:
    if not is_float:
        yield f"{element} = {word}({word}({element} + less) ^ turned)"
        return
    yield f"found = {word}({element} + less)"
    yield f"found = {word}(found ^ {word}({word}(found >> shift) & magnitude))"
    yield f"{element} = select({word}(found & magnitude) <= infinity, {word}(found ^ turned), found)"
