"""Rows that one binding does not hold: the one place where they are cut, for every operation.

A row is cut into pieces, each of which a binding does hold. What is left of a piece (a state, a few candidates) goes
into arrays between works, at places where any device binds.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ..algos.sizes import LARGEST_U32, bound_together
from ..machine import TargetInfo
from ..types.errors import CapabilityError
from .base import DType, Output


@attrs.frozen
class Piece:
    """Of a row: which one, where it begins, and how many elements it has."""

    number: int
    first: int
    count: int


@attrs.frozen
class Pieces:
    """All pieces of a row. They are as long but for the last."""

    length: int
    most: int

    def __len__(self) -> int:
        return (self.length + self.most - 1) // self.most

    def __iter__(self) -> Iterator[Piece]:
        for number in range(len(self)):
            first = number * self.most
            yield Piece(number, first, min(self.most, self.length - first))

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(piece.count for piece in self)


def fits_binding(length: int, itemsize: int, info: TargetInfo) -> bool:
    """Whether a row, of elements that take so many bytes of the largest buffer, need not be cut."""
    return length <= LARGEST_U32 and length * itemsize <= info.limits.storage_bytes


def pieces_of(length: int, itemsize: int, info: TargetInfo, name: str = "x") -> Pieces:
    """A row in as few pieces as can be, of a power of two of elements: so each begins where a device binds, if the row
    does."""
    from ..algos.fit import power_below

    most = min(LARGEST_U32, info.limits.storage_bytes // max(1, itemsize))
    if most < 1:
        raise CapabilityError(
            f"{name}: one element takes {itemsize} bytes, target {info.name!r} binds {info.limits.storage_bytes}"
        )
    return Pieces(length, power_below(most))


def require_counted(length: int, info: TargetInfo, name: str = "x") -> None:
    """Refuses a row in which the place of an element has no number of 32 bits."""
    if length > LARGEST_U32:
        raise CapabilityError(
            f"{name}: a row of {length} elements is more than kernels count places in on target {info.name!r}: at most "
            f"{LARGEST_U32}; work on parts of it"
        )


@attrs.frozen
class Slots:
    """One value for each piece of each row, in an array of their own."""

    count: int
    apart: int  # elements from one value to the next

    @classmethod
    def of(cls, count: int, dtype: DType, info: TargetInfo) -> Slots:
        """Where any device binds, if one binding then still holds all."""
        apart = cls(count, bound_together(dtype.itemsize))
        return apart if fits_binding(apart.span, dtype.itemsize, info) else cls(count, 1)

    @property
    def span(self) -> int:
        """From the first value to the last."""
        return (self.count - 1) * self.apart + 1

    def output(self, dtype: DType) -> Output:
        return Output((self.span,), dtype, (0,))
