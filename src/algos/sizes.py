"""Limits on sizes that all schedules share: kernels index elements with 32 bits."""

from __future__ import annotations

import math

from ..types.errors import InvalidArgumentError

LARGEST_U32 = (1 << 32) - 1
_BOUND_AT = 256  # bytes: WebGPU's greatest minStorageBufferOffsetAlignment


def bound_together(itemsize: int) -> int:
    """The least number of elements whose bytes are a multiple of the alignment of bindings on any device."""
    return _BOUND_AT // math.gcd(_BOUND_AT, itemsize)


def countable_rows(length: int) -> int:
    """The rows of a length whose elements kernels can count."""
    return LARGEST_U32 // max(1, length)


def require_countable(rows: int, length: int, together: int = 1) -> None:
    """Raises InvalidArgumentError for more than 2**32 - 1 elements; rows are first rounded up to `together`."""
    rounded = -(-rows // together) * together
    if rows < 0 or length < 0 or rows * length > LARGEST_U32 or rounded > LARGEST_U32:
        raise InvalidArgumentError(
            f"rows, length: expected no more than {LARGEST_U32} elements in all, found {rows} rows of {length}"
        )


def require_digits(key_bits: int, word_bits: int) -> None:
    """Raises InvalidArgumentError for a radix sort by no bits, or by more than a word has."""
    if not 1 <= key_bits <= word_bits:
        raise InvalidArgumentError(f"key_bits: expected 1 to the {word_bits} bits of a word, found {key_bits}")
