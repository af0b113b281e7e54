"""Compiled loops of the packed argsort, each of which NumPy does in several. Only imported for long rows: it loads
Numba."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..jit import njit
from ..keeping import kept

U64s: TypeAlias = npt.NDArray[np.uint64]


@kept
@njit(nogil=True)
def rank_floats(bits: Any, sign: Any, offset: Any, last: Any, descends: bool, ranks: U64s) -> None:
    """What `ordered_ranks` does."""
    zero, one, everything = np.uint64(0), np.uint64(1), (sign << np.uint64(1)) - np.uint64(1)
    for index in range(bits.size):
        word = np.uint64(bits[index])
        negative = one if word & sign else zero
        word = (word ^ (sign | (zero - negative))) + negative - one
        word = offset - word if descends else word - offset
        ranks[index] = min(word & everything, last)


@kept
@njit(nogil=True)
def range_of(ranks: U64s) -> tuple[Any, Any]:
    """The least and the greatest."""
    least, greatest = ranks[0], ranks[0]
    for index in range(ranks.size):
        least, greatest = min(least, ranks[index]), max(greatest, ranks[index])
    return least, greatest


@kept
@njit(nogil=True)
def pack(ranks: U64s, least: Any, left_out: Any, index_bits: Any, first: int, words: U64s) -> Any:
    """Makes words of ranks less the least, less their lowest bits, and of indices from the first on. All bits that any
    rank had."""
    seen = np.uint64(0)
    for index in range(ranks.size):
        rank = ranks[index] - least
        seen |= rank
        words[index] = rank >> left_out << index_bits | np.uint64(first + index)
    return seen


@kept
@njit(nogil=True)
def count_ties(words: U64s, limit: Any) -> int:
    """How many words differ from the one before by their indices alone."""
    ties = 0
    for index in range(1, words.size):
        ties += words[index] ^ words[index - 1] < limit
    return ties
