"""Pages of host memory: which are there, and writing to those that are not before a copy has to wait for them.

The system maps a page of new memory when it is first written, a fault of a microsecond or more, which one copying
thread after another would pay. Several threads touch them beforehand, while other memory is copied to the card.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from ..cpu.pool import shared_pool

Bytes = npt.NDArray[np.uint8]

_SAMPLES = 64  # pages that are asked about, spread over an array


def touch(pages: Bytes) -> None:
    """Overwrites a byte of each page."""
    pages[:: mmap.PAGESIZE] = 0


def touch_by_threads(memory: Bytes) -> None:
    parts = np.array_split(memory, shared_pool().threads)
    shared_pool().run(lambda number: touch(parts[number]), len(parts))


def is_mapped(memory: Bytes) -> bool:
    """Whether sampled pages of an array are all there. False where the system does not tell."""
    ask = _mincore()
    if ask is None or not memory.size:
        return False
    first = -(-memory.ctypes.data // mmap.PAGESIZE)
    last = (memory.ctypes.data + memory.size) // mmap.PAGESIZE - 1
    told = ctypes.c_ubyte()
    for page in np.linspace(first, max(first, last), _SAMPLES, dtype=np.uint64).tolist():
        if ask(page * mmap.PAGESIZE, 1, ctypes.byref(told)) or not told.value & 1:
            return False
    return True


@cache
def _mincore() -> Callable[..., int] | None:
    try:
        found = ctypes.CDLL(None).mincore
    except (AttributeError, OSError, TypeError):  # Windows has none
        return None
    found.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    return found
