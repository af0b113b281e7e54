"""Recycles host memory for large results: that of an earlier result which nobody references any more.

New memory comes page by page, cleared, which can take longer than sorting it. So the memory of the last two long
results is kept when they go, up to `GPUSORT_KEEP_BYTES` each (256 MiB unless set; 0 keeps nothing). Unless that is set,
the memory of a longer one, up to an eighth of the machine's, is kept for half a minute. A result is a view of a whole,
and the whole a view of a block. When the whole goes, its block is put into the cache, and leaves it for another result
only if nobody else holds it, by CPython's own count: whatever a user keeps of a result holds the block.
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any, TypeVar

import numpy as np

from ..types.environment import memory_bytes, whole_number, word
from .shelf import TimedShelf  # in a module of its own, which outlives this one at the end of the process

D = TypeVar("D", bound=np.dtype[np.generic])

_LEAST = 1 << 24  # bytes: shorter arrays come from the C library, which keeps their memory itself
_MOST = 1 << 28
_ALIGNMENT = 64  # bytes: XLA takes over no other memory without a copy
_BYTE = np.dtype(np.uint8)


class _Block(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Memory of its own. The class keeps NumPy from taking the block itself, and not the whole, for a view's base."""

    __slots__ = ()


KEPT, LARGE = TimedShelf[_Block](2), TimedShelf[_Block](1)


def new_array(shape: tuple[int, ...], dtype: D) -> np.ndarray[Any, D]:
    """An uninitialised C-contiguous array, in recycled memory or new."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _LEAST:
        return np.empty(shape, dtype)
    is_large = nbytes > most_bytes()
    if is_large and nbytes > _most_for_a_while():
        return np.empty(shape, dtype)
    size, shelf = nbytes + _ALIGNMENT, LARGE if is_large else KEPT
    block = shelf.take(lambda _, kept: size <= kept.size <= 2 * size if _is_whole(kept) else None)
    if block is None:
        if is_large:
            shelf.clear()  # before there is more
        block = _Block((size,), _BYTE)
    whole = block.view(np.ndarray)
    weakref.finalize(whole, shelf.put_now, block).atexit = False
    if is_large:
        LARGE.lend(whole)
    first = -int(block.__array_interface__["data"][0]) % _ALIGNMENT  # ctypes may be gone, at the end of the process
    return whole[first : first + nbytes].view(dtype).reshape(shape)


def most_bytes() -> int:
    """The largest block, in bytes, that is recycled."""
    return whole_number("GPUSORT_KEEP_BYTES", _MOST, least=0, what="a number of bytes, e.g. 0") if _COUNTED else 0


def _most_for_a_while() -> int:
    """The same of one that is kept for half a minute."""
    return memory_bytes() // 8 if _COUNTED and not word("GPUSORT_KEEP_BYTES") else 0


def _is_whole(block: _Block) -> bool:
    """Whether a block still has its flags and shape: users can change these through a result's base."""
    flags = block.flags
    return block.dtype == _BYTE and block.ndim == 1 and flags.c_contiguous and flags.writeable and flags.owndata


# Whether reference counts are exact, as in CPython with a GIL.
_COUNTED = sys.implementation.name == "cpython" and bool(getattr(sys, "_is_gil_enabled", lambda: True)())
