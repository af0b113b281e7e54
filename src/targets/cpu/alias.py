"""Read-only arrays as compiled code takes them: Numba would compile all of it once more for these. What is handed in
so is only read: no kernel that writes to an INPUT is run."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np

from ..base import HostArray

A = TypeVar("A", bound=HostArray)


class _Window:
    """Memory as NumPy's array interface describes it; keeps its owner alive."""

    def __init__(self, owner: HostArray) -> None:
        self.owner = owner
        address, _ = owner.__array_interface__["data"]
        self.__array_interface__ = {**owner.__array_interface__, "data": (address, False)}


def without_lock(array: A) -> A:
    """The same memory without the read-only mark, for code that only reads it."""
    return array if array.flags.writeable else cast(A, np.asarray(_Window(array)).view(array.dtype))
