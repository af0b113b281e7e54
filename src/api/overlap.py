"""Whether two arrays lie in the same memory, so that one must not be written while the other is read."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..arrays.kinds import Space


class Overlap(Enum):
    """How one array lies to another."""

    APART = "apart"
    PARTLY = "partly"  # or perhaps: they lie between each other
    SAME = "same"


def overlap(space: Space[Any], first: Any, second: Any) -> Overlap:
    (address, strides), (other, other_strides) = space.extent(first), space.extent(second)
    if address == other and strides == other_strides and first.shape == second.shape:
        return Overlap.SAME
    low, high = bounds(address, strides, first.shape, first.dtype.itemsize)
    other_low, other_high = bounds(other, other_strides, second.shape, second.dtype.itemsize)
    return Overlap.PARTLY if low < other_high and other_low < high else Overlap.APART


def bounds(address: int, strides: tuple[int, ...], shape: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The addresses of the first byte and of what comes after the last."""
    if 0 in shape:
        return address, address
    reaches = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
    low = address + sum(reach for reach in reaches if reach < 0)
    high = address + sum(reach for reach in reaches if reach > 0)
    return low, high + itemsize
