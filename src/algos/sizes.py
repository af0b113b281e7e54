"""What every schedule asks of the sizes it is made for: kernels count elements in 32 bits."""

from __future__ import annotations

import math

from ..types.errors import InvalidArgumentError

LARGEST_U32 = (1 << 32) - 1
_BOUND_AT = 256  # bytes: of WebGPU's limits on where a binding begins, the greatest that a device may have


def bound_together(itemsize: int) -> int:
    """So many elements that behind them any device binds."""
    return _BOUND_AT // math.gcd(_BOUND_AT, itemsize)


def require_countable(rows: int, length: int, together: int = 1) -> None:
    """Refuses what a kernel cannot count. `together`: rows are rounded up to so many."""
    rounded = -(-rows // together) * together
    if rows < 0 or length < 0 or rows * length > LARGEST_U32 or rounded > LARGEST_U32:
        raise InvalidArgumentError(
            f"rows, length: expected no more than {LARGEST_U32} elements in all, found {rows} rows of {length}"
        )


def require_digits(key_bits: int, word_bits: int) -> None:
    """Refuses a radix sort by bits that a word does not have, or by none."""
    if not 1 <= key_bits <= word_bits:
        raise InvalidArgumentError(f"key_bits: expected 1 to the {word_bits} bits of a word, found {key_bits}")
