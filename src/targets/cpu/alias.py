"""Views of the same memory: as one contiguous row, or without the read-only flag.

What is handed in without the flag is only read: no kernel that writes to an INPUT is run.
"""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np

from ..base import HostArray

A = TypeVar("A", bound=HostArray)


class _Window:
    """Memory as NumPy's array interface describes it; keeps its owner alive."""

    def __init__(self, owner: HostArray, offset: int = 0, **described: object) -> None:
        self.owner = owner
        address, _ = owner.__array_interface__["data"]
        self.__array_interface__ = {**owner.__array_interface__, "data": (address + offset, False), **described}


def address_of(array: HostArray) -> int:
    """Of its first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def place_of(array: HostArray) -> tuple[int, int]:
    """Where packed elements are, and how many: as our compiler's kernels take an array."""
    return address_of(array), array.size


def without_lock(array: A) -> A:
    """For code that only reads it."""
    return array if array.flags.writeable else cast(A, np.asarray(_Window(array)).view(array.dtype))


def as_row(array: HostArray, offset: int, count: int, dtype: np.dtype[np.generic]) -> HostArray:
    """So many elements, from so many bytes before or behind the array's first one. They may be read only."""
    return np.asarray(_Window(array, offset, shape=(count,), strides=None, typestr=dtype.str))
