"""Compiled loops that bring rows into blocks and back, as words that compare as integers. Importing this loads Numba.

The words of plain elements are the elements with some bits turned over, less a number; those of floats are as
`FloatKey` has them. The constants of both come as an array of words. What is done to all words of a block is done where
they lie side by side, in vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..jit import inner, njit
from ..keeping import keep

Elements = npt.NDArray[Any]
_BESIDE = 256  # rows that are written side by side: one line of memory of each stays in the nearer caches

Turn = Callable[[Elements, Elements], None]  # of words side by side, by the constants


def _plain_words(word: Any) -> tuple[Turn, Turn]:
    @inner
    def lift(words: Elements, bits: Elements) -> None:
        turned, less = bits[0], bits[1]
        for j in range(words.size):
            words[j] = word(word(words[j] ^ turned) - less)

    @inner
    def lower(words: Elements, bits: Elements) -> None:
        turned, less = bits[0], bits[1]
        for j in range(words.size):
            words[j] = word(word(words[j] + less) ^ turned)

    return lift, lower


def _float_words(word: Any) -> tuple[Turn, Turn]:
    """Signs are turned over first, if they are to descend, but not of NaNs; then negatives get the order of numbers."""

    @inner
    def lift(words: Elements, bits: Elements) -> None:
        turned, less, magnitude, infinity, shift = bits[0], bits[1], bits[2], bits[3], bits[4]
        for j in range(words.size):
            found = words[j]
            found = word(found ^ turned) if word(found & magnitude) <= infinity else found
            words[j] = word(word(found ^ word(word(found >> shift) & magnitude)) - less)

    @inner
    def lower(words: Elements, bits: Elements) -> None:
        turned, less, magnitude, infinity, shift = bits[0], bits[1], bits[2], bits[3], bits[4]
        for j in range(words.size):
            found = word(words[j] + less)
            found = word(found ^ word(word(found >> shift) & magnitude))
            words[j] = word(found ^ turned) if word(found & magnitude) <= infinity else found

    return lift, lower


def _brought(turns: tuple[Turn, Turn]) -> tuple[Any, Any]:
    lift, lower = turns

    @inner
    def load(
        flat: Elements, source: int, s1: int, step: int, block: Elements, lanes: int, length: int, count: int,
        bits: Elements,
    ) -> None:  # fmt: skip
        for place in range(length):
            own, base = block[place * lanes : place * lanes + count], source + place * step
            if s1 == 1:
                row = flat[base : base + count]
                for j in range(count):
                    own[j] = row[j]
            else:
                for j in range(count):
                    own[j] = flat[np.uint64(base + j * s1)]
        lift(block[: length * lanes], bits)

    @inner
    def store(
        out: Elements, goal: int, o1: int, out_step: int, block: Elements, lanes: int, length: int, count: int,
        bits: Elements,
    ) -> None:  # fmt: skip
        lower(block[: length * lanes], bits)
        for place in range(length):
            own, base = block[place * lanes : place * lanes + count], goal + place * out_step
            if o1 == 1:
                row = out[base : base + count]
                for j in range(count):
                    row[j] = own[j]
            else:
                for j in range(count):
                    out[np.uint64(base + j * o1)] = own[j]

    return load, store


load_plain_1, store_plain_1 = _brought(_plain_words(np.int8))
load_plain_2, store_plain_2 = _brought(_plain_words(np.int16))
load_plain_4, store_plain_4 = _brought(_plain_words(np.int32))
load_plain_8, store_plain_8 = _brought(_plain_words(np.int64))
load_float_2, store_float_2 = _brought(_float_words(np.int16))
load_float_4, store_float_4 = _brought(_float_words(np.int32))
load_float_8, store_float_8 = _brought(_float_words(np.int64))


# -- rows too long for a block, one after the other -----------------------------------------------------------


def _packing(turns: tuple[Turn, Turn], label: str) -> tuple[Any, Any]:
    """The same for rows that are sorted elsewhere: in a block they lie one after the other, with room between them."""
    lift, lower = turns

    @njit(nogil=True)
    def pack(flat: Elements, source: int, s1: int, step: int, rows: Elements, length: int, bits: Elements) -> None:
        count = len(rows)
        for first in range(0, count, _BESIDE):
            some = rows[first : first + _BESIDE]
            for place in range(length):
                base = source + first * s1 + place * step
                for j in range(len(some)):
                    some[j, place] = flat[np.uint64(base + j * s1)]
        for j in range(count):
            lift(rows[j][:length], bits)

    @njit(nogil=True)
    def unpack(out: Elements, goal: int, o1: int, out_step: int, rows: Elements, length: int, bits: Elements) -> None:
        count = len(rows)
        for j in range(count):
            lower(rows[j][:length], bits)
        for first in range(0, count, _BESIDE):
            some = rows[first : first + _BESIDE]
            for place in range(length):
                base = goal + first * o1 + place * out_step
                for j in range(len(some)):
                    out[np.uint64(base + j * o1)] = some[j, place]

    return keep(pack, f"pack {label}"), keep(unpack, f"unpack {label}")


PACKS = {
    (False, 1): _packing(_plain_words(np.int8), "i1"), (False, 2): _packing(_plain_words(np.int16), "i2"),
    (False, 4): _packing(_plain_words(np.int32), "i4"), (False, 8): _packing(_plain_words(np.int64), "i8"),
    (True, 2): _packing(_float_words(np.int16), "f2"), (True, 4): _packing(_float_words(np.int32), "f4"),
    (True, 8): _packing(_float_words(np.int64), "f8"),
}  # fmt: skip
