"""Stable order of floats in host arrays: zeros of both signs, and NaNs of differing bits, as they came in.

Rows are sorted elsewhere as if any order of such would do. In a sorted row what ties lies together, and a binary search
tells whether there is any. Only such stretches of the result are written anew, from the source. Words are compared, not
floats: no setting of the processor takes a subnormal for zero there.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ....types.dtypes import FloatBits
from ....types.indices import SortOrder
from ..pool import Pool, slices
from .key_words import Elements, bits_of

Mask: TypeAlias = npt.NDArray[np.bool_]

_PIECE = 1 << 16  # elements looked at together, in the nearer caches


@attrs.frozen
class Kind:
    """One kind of elements that tie, as their words tell."""

    bits: FloatBits
    is_nan: bool

    def among(self, words: Elements) -> Mask:
        """Which of some words are of this kind."""
        of = words.dtype.type
        magnitudes = words & of(self.bits.magnitude)
        found: Mask = magnitudes > of(self.bits.infinity) if self.is_nan else magnitudes == 0
        return found


@cache
def _kinds(dtype: np.dtype[Any]) -> tuple[Kind, Kind]:
    """Zeros, NaNs."""
    bits = FloatBits.of(dtype)
    return Kind(bits, is_nan=False), Kind(bits, is_nan=True)


def may_have_ties(source: Elements, pool: Pool) -> bool:
    """Whether floats hold any -0.0 or NaN: one reading, which costs less than sorting them elsewhere."""
    if not source.size:
        return False
    words, bits = bits_of(source.reshape(-1)), _kinds(source.dtype)[0].bits
    signed, pieces = words.view(f"i{words.itemsize}"), slices(words.size, -(-words.size // _PIECE))

    def has_none(number: int) -> bool:
        """The least integer is -0.0; as integers NaNs of one sign are above inf, and of the other above -inf."""
        piece = pieces[number]
        least, most, most_of_all = int(signed[piece].min()), int(signed[piece].max()), int(words[piece].max())
        minus_infinity = bits.magnitude + 1 + bits.infinity
        return least != -(bits.magnitude + 1) and most <= bits.infinity and most_of_all <= minus_infinity

    return not pool.all(has_none, len(pieces))


# -- long rows, in the order of their words ----------------------------------------------------------------


def restore_row(source: Elements, results: Elements, order: SortOrder, pool: Pool) -> None:
    """Puts what ties in a long sorted row in the order it has in the source. Where there is any, it loads Numba."""
    words, sorted_, bits = bits_of(source), bits_of(results), _kinds(source.dtype)[0].bits
    zeros, nans = ties_of(sorted_, bits, order)
    if zeros.start < zeros.stop or nans.start < nans.stop:
        _write_in_order(words, sorted_[zeros], sorted_[nans], bits, pool)


def ties_of(sorted_: Elements, bits: FloatBits, order: SortOrder) -> tuple[slice, slice]:
    """The zeros of a sorted row, if they are of both signs, and its NaNs, if their bits differ; else empty slices."""
    at, numbers, sign = sorted_.item, sorted_.size, bits.magnitude + 1
    turned = 0 if order is SortOrder.ASCENDING else sign  # then a row goes from negatives by -0.0 and 0.0 upwards
    last, zeros, nans = at(numbers - 1), slice(0, 0), slice(0, 0)
    if last & bits.magnitude > bits.infinity:
        numbers = bisect_left(range(numbers), True, key=lambda place: at(place) & bits.magnitude > bits.infinity)
        if at(numbers) != last:
            nans = slice(numbers, sorted_.size)
    first = bisect_left(range(numbers), True, key=lambda place: at(place) ^ turned <= sign)
    if first < numbers and at(first) ^ turned == sign:
        middle = bisect_left(range(numbers), True, first, key=lambda place: at(place) ^ turned < sign)
        if middle < numbers and at(middle) ^ turned == 0:
            end = bisect_left(range(numbers), True, middle, key=lambda place: at(place) ^ turned != 0)
            zeros = slice(first, end)
    return zeros, nans


def _write_in_order(words: Elements, zeros: Elements, nans: Elements, bits: FloatBits, pool: Pool) -> None:
    """Writes all zeros and all NaNs of a row, or none where there is no room for them: counted piece by piece, then
    each piece behind those before it."""
    from .tie_kernels import count_ties, gather_ties

    pieces, of = slices(words.size, -(-words.size // _PIECE)), words.dtype.type
    magnitude, infinity = of(bits.magnitude), of(bits.infinity)
    counts = np.zeros((len(pieces) + 1, 2), np.int64)

    def count(number: int) -> None:
        counts[number + 1] = count_ties(words[pieces[number]], magnitude, infinity)

    pool.run(count, len(pieces))
    ends: list[tuple[int, int]] = counts.cumsum(axis=0).tolist()

    def write(number: int) -> None:
        own_zeros, own_nans = (slice(*between) for between in zip(ends[number], ends[number + 1], strict=True))
        gather_ties(words[pieces[number]], magnitude, infinity, zeros[own_zeros], nans[own_nans])

    pool.run(write, len(pieces))


# -- short rows, as NumPy's sort leaves them ---------------------------------------------------------------


def restore_rows(source: Elements, results: Elements, zeros: bool = True, nans: bool = True) -> None:
    """Writes zeros and NaNs of sorted rows as they come in the source, as far as there may be any.

    NumPy's sort may return any zero for a zero and any NaN for a NaN. Each row has as many of a kind as its source, so
    row by row they go where their likes are.
    """
    words, sorted_, kinds = bits_of(source), bits_of(results), _kinds(source.dtype)
    signed = words.view(f"i{words.itemsize}")
    has_kind = (
        zeros and int(signed.min()) == -(kinds[0].bits.magnitude + 1),  # without -0.0 all zeros are alike
        nans and bool(kinds[1].among(sorted_[..., -1]).any()),
    )
    for kind, is_there in zip(kinds, has_kind, strict=True):
        if is_there:
            sorted_[kind.among(sorted_)] = words[kind.among(words)]
