"""Memory for long results: that of an earlier result which nobody holds any more, if one is there.

The system hands out new memory page by page, cleared, as it is first written to. For a long array that can take longer
than sorting it. So the memory of the last two long results is kept when they go, and the next of about their size
takes it over. `GPUSORT_KEEP_BYTES` says how long a result may be for that (256 MiB unless set; 0 keeps nothing).
"""

from __future__ import annotations

import math
import os
from collections import deque
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .types.errors import InvalidArgumentError

D = TypeVar("D", bound=np.dtype[np.generic])

_LEAST = 1 << 24  # bytes: shorter arrays come from the C library, which keeps their memory itself
_MOST = 1 << 28

_kept: deque[npt.NDArray[np.uint8]] = deque(maxlen=2)  # appending and popping need no lock


class _Lent:
    """Memory in use. NumPy holds on to it as long as there is a view of it, and then lets it go."""

    def __init__(self, block: npt.NDArray[np.uint8]) -> None:
        self._block = block
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        _kept.append(self._block)


def new_array(shape: tuple[int, ...], dtype: D) -> np.ndarray[Any, D]:
    """A new array in C order, which holds anything."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _LEAST or nbytes > most_bytes():
        return np.empty(shape, dtype)
    lent = np.asarray(_Lent(_taken(nbytes)))
    return lent[:nbytes].view(dtype).reshape(shape)


def most_bytes() -> int:
    """How long a result may be for its memory to be kept."""
    asked = os.environ.get("GPUSORT_KEEP_BYTES")
    if asked is None:
        return _MOST
    if not asked.isdecimal():
        raise InvalidArgumentError(f"GPUSORT_KEEP_BYTES: expected a number of bytes, e.g. 0, found {asked!r}")
    return int(asked)


def forget() -> None:
    """Gives back to the system what is kept."""
    _kept.clear()


def _taken(nbytes: int) -> npt.NDArray[np.uint8]:
    """A block that is kept, if one fits without waste; else a new one."""
    for _ in range(len(_kept)):
        try:
            block = _kept.popleft()
        except IndexError:  # another thread was faster
            break
        if nbytes <= block.size <= 2 * nbytes:
            return block
        _kept.append(block)
    return np.empty(nbytes, np.uint8)
