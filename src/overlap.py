"""Whether two arrays lie in the same memory, so that one must not be written while the other is read."""

from __future__ import annotations

from enum import Enum

from .arrays import Operand


class Overlap(Enum):
    """How one array lies to another of the same shape and dtype."""

    APART = "apart"
    PARTLY = "partly"  # or perhaps: they lie between each other
    SAME = "same"


def overlap(first: Operand, second: Operand) -> Overlap:
    if first.address == second.address and first.strides == second.strides:
        return Overlap.SAME
    (low, high), (other_low, other_high) = _bounds(first), _bounds(second)
    return Overlap.PARTLY if low < other_high and other_low < high else Overlap.APART


def _bounds(operand: Operand) -> tuple[int, int]:
    """The addresses of its first byte and of what comes after its last."""
    if 0 in operand.shape:
        return operand.address, operand.address
    reaches = [stride * (length - 1) for stride, length in zip(operand.strides, operand.shape, strict=True)]
    low = operand.address + sum(reach for reach in reaches if reach < 0)
    high = operand.address + sum(reach for reach in reaches if reach > 0)
    return low, high + operand.dtype.itemsize
