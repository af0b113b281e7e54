"""Cuts rows that exceed one buffer binding into pieces, for every operation. What is left of a piece (a state, a few
candidates) goes into arrays between works, at places where any device binds."""

from __future__ import annotations

import attrs

from ..algos.sizes import LARGEST_U32, bound_together
from ..machine import TargetInfo
from ..types.errors import CapabilityError
from ..types.specs import DType
from .base import Output, Part


@attrs.frozen
class Piece:
    """A piece of a row: its number, first element and length, and the length of the row."""

    number: int
    first: int
    count: int
    row: int

    def of(self, array: int, row: int) -> Part:
        """This piece of one of the rows of an array."""
        return Part(array, self.count, row * self.row + self.first)


def fits_binding(length: int, itemsize: int, info: TargetInfo) -> bool:
    """Whether a row fits one binding and 32-bit indices; `itemsize` is an element's bytes in the largest buffer."""
    return length <= LARGEST_U32 and length * itemsize <= info.limits.storage_bytes


def pieces_of(length: int, itemsize: int, info: TargetInfo, name: str = "x") -> tuple[Piece, ...]:
    """Cuts a row into as few pieces as possible, of a power of two of elements, so that each starts aligned."""
    from ..algos.fit import power_below

    most = min(LARGEST_U32, info.limits.storage_bytes // max(1, itemsize))
    if most < 1:
        raise CapabilityError(
            f"{name}: one element takes {itemsize} bytes, target {info.name!r} binds {info.limits.storage_bytes}"
        )
    most = power_below(most)
    starts = range(0, length, most)
    return tuple(Piece(n, first, min(most, length - first), length) for n, first in enumerate(starts))


def require_counted(length: int, info: TargetInfo, name: str = "x") -> None:
    """Raises CapabilityError for a row whose indices exceed 32 bits."""
    if length > LARGEST_U32:
        raise CapabilityError(
            f"{name}: a row of {length} elements is more than kernels count places in on target {info.name!r}: at most "
            f"{LARGEST_U32}; work on parts of it"
        )


@attrs.frozen
class Slots:
    """An array with one value for each piece of each row."""

    count: int
    apart: int  # elements from one value to the next

    @classmethod
    def of(cls, count: int, dtype: DType, info: TargetInfo) -> Slots:
        """Spaced so that each value can be bound on any device, if one binding then still holds all."""
        apart = cls(count, bound_together(dtype.itemsize))
        return apart if fits_binding(apart.span, dtype.itemsize, info) else cls(count, 1)

    @property
    def span(self) -> int:
        """Elements from the first value to the last."""
        return (self.count - 1) * self.apart + 1

    def output(self, dtype: DType) -> Output:
        return Output((self.span,), dtype, (0,))
