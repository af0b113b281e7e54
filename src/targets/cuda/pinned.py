"""Page-locked (pinned) host memory for what a call parks on the host, kept a while for the next such call.

A card reads and writes pinned memory by itself; other memory goes through staging buffers, at about half the rate where
copies go both ways at once. To pin new memory takes about as long as a sort in pieces then saves, so it is kept. Up to
`GPUSORT_PINNED_BYTES` are pinned, a quarter of the machine's memory unless set; 0 pins none.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache

import attrs
import numpy as np
import numpy.typing as npt

from ...arrays.shelf import TimedShelf
from ...types.environment import memory_bytes, whole_number
from ...types.libraries import cupy
from ..addresses import address_of
from ..cpu.pool import shared_pool

Bytes = npt.NDArray[np.uint8]

_SAMPLES = 64  # pages that are asked about, spread over an array


def touch(pages: Bytes) -> None:
    """Overwrites a byte of each page, before a copy has to wait for it: the system maps a page of new memory when it is
    first written, a fault of a microsecond or more, which one copying thread after another would pay."""
    pages[:: mmap.PAGESIZE] = 0


def touch_by_threads(memory: Bytes) -> None:
    parts = np.array_split(memory, shared_pool().threads)
    shared_pool().run(lambda number: touch(parts[number]), len(parts))


def is_mapped(memory: Bytes) -> bool:
    """Whether sampled pages of an array are all there. False where the system does not tell."""
    ask = _mincore()
    if ask is None or not memory.size:
        return False
    first = -(-address_of(memory) // mmap.PAGESIZE)
    last = (address_of(memory) + memory.size) // mmap.PAGESIZE - 1
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


_LEAST = 1 << 26  # bytes: for fewer, pinning is not worth it
_ALIGNMENT = 1 << 21  # bytes: of a huge page
_PORTABLE = 1  # cudaHostRegisterPortable: pinned for every device of the process


def most_bytes() -> int:
    return whole_number("GPUSORT_PINNED_BYTES", memory_bytes() // 4, least=0, what="a number of bytes, e.g. 0")


class _Pinned:
    """Pinned memory, as long as this object lives."""

    def __init__(self, nbytes: int) -> None:
        whole = np.empty(nbytes + _ALIGNMENT, np.uint8)
        first = -address_of(whole) % _ALIGNMENT
        memory: Bytes = whole[first : first + nbytes]
        touch_by_threads(memory)  # the driver, in one thread, would touch its pages at a tenth of this rate
        self.memory = memory
        self._device, self._process = cupy.cuda.runtime.getDevice(), os.getpid()
        # Before there is something to undo: a signal's handler runs, and may raise, right behind a long call. What is
        # freed and still registered is an error of the next allocation at its address.
        self._address = address_of(memory)
        cupy.cuda.runtime.hostRegister(self._address, nbytes, _PORTABLE)

    def __del__(self) -> None:
        address = getattr(self, "_address", 0)
        if address and self._process == os.getpid() and not sys.is_finalizing():
            cupy.cuda.runtime.setDevice(self._device)  # which a timer's thread has none of
            with suppress(cupy.cuda.runtime.CUDARuntimeError):  # where it was refused
                cupy.cuda.runtime.hostUnregister(address)


@attrs.define(eq=False)
class PinnedMemory:
    """Hands out pinned memory, and keeps the last block until nobody has asked for a while. A call takes the block for
    itself, so no lock is needed, which an interrupt could leave held."""

    _idle: TimedShelf[_Pinned] = attrs.field(factory=lambda: TimedShelf[_Pinned](1))

    @contextmanager
    def taken(self, nbytes: int) -> Generator[Bytes]:
        """Uninitialised memory for a with block; pageable if there are few bytes, too many, or the driver refuses."""
        block = self._block(nbytes)
        if block is None:
            yield np.empty(nbytes, np.uint8)
            return
        try:
            yield block.memory[:nbytes]
        except BaseException:
            cupy.cuda.runtime.deviceSynchronize()  # a copy may be on its way
            raise
        self._idle.put_now(block)
        self._idle.watch()

    def release(self) -> None:
        self._idle.clear()

    def _block(self, nbytes: int) -> _Pinned | None:
        if not _LEAST <= nbytes <= most_bytes():
            return None
        try:
            return self._idle.take(lambda _, kept: nbytes <= kept.memory.size or None) or _Pinned(nbytes)
        except cupy.cuda.runtime.CUDARuntimeError:
            return None
