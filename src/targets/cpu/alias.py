"""Where arrays lie, and views of the same memory as one contiguous row."""

from __future__ import annotations

import numpy as np

from ..base import HostArray


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


def as_row(array: HostArray, offset: int, count: int, dtype: np.dtype[np.generic]) -> HostArray:
    """So many elements, from so many bytes before or behind the array's first one. They may be read only."""
    return np.asarray(_Window(array, offset, shape=(count,), strides=None, typestr=dtype.str))
