"""Compiled loops over the source of a long row that has ties. Only imported for those: it loads Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit import njit
from ..keeping import kept
from .key_words import Elements

_BLOCK = 256  # elements of which most often none ties


@kept
@njit(nogil=True)
def count_ties(words: Elements, magnitude: Any, infinity: Any) -> tuple[int, int]:
    """How many words of floats are zeros, and how many are NaNs."""
    zeros, nans = 0, 0
    for start in range(0, words.size, _BLOCK):
        block = words[start : start + _BLOCK]
        block_zeros, block_nans = words.dtype.type(0), words.dtype.type(0)  # as wide as what is compared
        for index in range(block.size):
            block_zeros += words.dtype.type(block[index] & magnitude == 0)
            block_nans += words.dtype.type(block[index] & magnitude > infinity)
        zeros += int(block_zeros)
        nans += int(block_nans)
    return zeros, nans


@kept
@njit(nogil=True)
def gather_ties(words: Elements, magnitude: Any, infinity: Any, zeros: Elements, nans: Elements) -> None:
    """Writes the words of zeros and those of NaNs in their order, as far as there is room for them."""
    some_zeros, some_nans = np.empty(_BLOCK, words.dtype), np.empty(_BLOCK, words.dtype)
    first_zero, first_nan = 0, 0
    for start in range(0, words.size, _BLOCK):
        block = words[start : start + _BLOCK]
        found = 0
        for index in range(block.size):
            found += (block[index] & magnitude == 0) | (block[index] & magnitude > infinity)
        if not found:
            continue
        block_zeros, block_nans = 0, 0
        for index in range(block.size):  # without a branch: each is written, and only what counts is kept
            some_zeros[block_zeros] = block[index]
            some_nans[block_nans] = block[index]
            block_zeros += block[index] & magnitude == 0
            block_nans += block[index] & magnitude > infinity
        for index in range(min(block_zeros, zeros.size - first_zero)):
            zeros[first_zero + index] = some_zeros[index]
        for index in range(min(block_nans, nans.size - first_nan)):
            nans[first_nan + index] = some_nans[index]
        first_zero = min(first_zero + block_zeros, zeros.size)
        first_nan = min(first_nan + block_nans, nans.size)
