"""Compiled loops of the stable argsort. Only imported for long rows: it loads Numba."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..jit import njit
from ..keeping import kept

Elements: TypeAlias = npt.NDArray[Any]
U64s: TypeAlias = npt.NDArray[np.uint64]
# Numbers by value, not in an array: loops keep them in registers.
Recipe: TypeAlias = tuple[np.uint64, ...]

_BLOCK = 2048  # elements between two looks whether any tie


@kept
@njit(nogil=True, inline="always")
def rank(bits: Any, recipe: Recipe) -> Any:
    """An element's place in the order, by the numbers that a recipe lists."""
    wide = np.uint64(bits)
    flipped = wide ^ (recipe[1] if wide & recipe[0] else recipe[2])
    word = (flipped - recipe[3]) & recipe[4]
    if word > recipe[5]:
        return recipe[6]
    if word > recipe[7]:
        word -= recipe[8]
    return recipe[9] - word if recipe[10] else word


@kept
@njit(nogil=True)
def rank_range(bits: Elements, recipe: Recipe) -> tuple[Any, Any, Any]:
    """The least and the greatest rank, and the bits in which any differs from the first."""
    least, greatest, varying = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0), np.uint64(0)
    first = rank(bits[0], recipe)
    for index in range(bits.size):
        word = rank(bits[index], recipe)
        least, greatest, varying = min(least, word), max(greatest, word), varying | (word ^ first)
    return least, greatest, varying


@kept
@njit(nogil=True)
def pack(
    bits: Elements, recipe: Recipe, least: Any, shift: Any, places: Any, first: int, step: int, packed: U64s
) -> None:
    """Words that compare as ranks do, less their lowest `shift` bits, then as places, the lowest `places` bits.

    The elements lie `step` places apart from place `first` on.
    """
    for index in range(bits.size):
        word = (rank(bits[index], recipe) - least) >> shift
        packed[index] = word << places | np.uint64(first + step * index)


@kept
@njit(nogil=True)
def pack_high(bits: Elements, recipe: Recipe, least: Any, places: Any, before: Any, first: int, packed: U64s) -> None:
    """The same by the bits that lie too high for `pack`, of elements that come in another order."""
    for index in range(packed.size):
        word = (rank(bits[before[index]], recipe) - least) >> (np.uint64(64) - places)
        packed[index] = word << places | np.uint64(first + index)


@kept
@njit(nogil=True)
def unpack(packed: U64s, mask: Any, places: Any) -> None:
    for index in range(packed.size):
        places[index] = packed[index] & mask


@kept
@njit(nogil=True)
def unpack_through(packed: U64s, mask: Any, before: Any, places: Any) -> None:
    for index in range(packed.size):
        places[index] = before[packed[index] & mask]


@kept
@njit(nogil=True)
def tie(packed: U64s, index: int, places: Any) -> int:
    """The first word from here on whose rank is not like the one before."""
    while 0 < index < packed.size and packed[index] >> places == packed[index - 1] >> places:
        index += 1
    return index


@kept
@njit(nogil=True)
def settle(packed: U64s, bits: Elements, recipe: Recipe, places: Any) -> bool:
    """Sorts elements whose ranks are equal but for the bits that `pack` left out. False if that takes too long."""
    mask = (np.uint64(1) << places) - np.uint64(1)
    moves_left = 8 * packed.size
    for start in range(1, packed.size, _BLOCK):
        stop = min(start + _BLOCK, packed.size)
        before, after = packed[start - 1 : stop - 1], packed[start:stop]
        ties = 0
        for index in range(after.size):
            ties += before[index] ^ after[index] <= mask
        if not ties:
            continue
        for index in range(start, stop):
            word = packed[index]
            if word >> places != packed[index - 1] >> places:
                continue
            own = rank(bits[word & mask], recipe)
            place = index
            while place > 0:
                other = packed[place - 1]
                if other >> places != word >> places or rank(bits[other & mask], recipe) <= own:
                    break
                packed[place] = other
                place -= 1
            packed[place] = word
            moves_left -= index - place
            if moves_left < 0:
                return False
    return True


@kept
@njit(nogil=True)
def tell_which(
    bits: Elements, values: Elements, table: Elements, multiplier: np.uint64, shift: np.uint64, ranks: Elements,
    which: Elements,
) -> bool:  # fmt: skip
    """Writes the rank of every element, which should be one of a few values. Whether all were."""
    for index in range(bits.size):
        found = table[(np.uint64(bits[index]) * multiplier) >> shift]
        if values[found] != bits[index]:
            return False
        which[index] = ranks[found]
    return True


@kept
@njit(nogil=True)
def count_found(
    bits: Elements, values: Elements, table: Elements, multiplier: np.uint64, shift: np.uint64, counts: Elements
) -> bool:
    """Counts how often each of a few values occurs. Whether all elements were among them."""
    for index in range(bits.size):
        found = table[(np.uint64(bits[index]) * multiplier) >> shift]
        if values[found] != bits[index]:
            return False
        counts[found] += 1
    return True
