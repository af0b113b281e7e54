"""Memory of a card for what travels there in pieces, with a stream for each way and one for the work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from .errors import device_errors
from .transfers import Transfers, bytes_of

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

_SPARE = 1 << 26  # bytes that are left to kernels' code and to what else is on the card
_ALIGNMENT = 256  # as cupy's own memory has it


def free_bytes() -> int:
    """What cupy would give on the current card: within the limit of its pool, if one is set."""
    import cupy

    pool, (free, _) = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo()
    limit = pool.get_limit()
    found = free + pool.free_bytes()
    return max(0, (min(found, limit - pool.used_bytes()) if limit else found) - _SPARE)


@contextmanager
def cuda_room(nbytes: int, transfers: Transfers) -> Generator[CudaRoom]:
    """One piece of memory on the current card, which is let go at the end, whatever still speaks of it."""
    import cupy

    with device_errors():
        memory = cupy.cuda.alloc(nbytes)
        cupy.cuda.get_current_stream().synchronize()  # what had this memory before may still be at work
    try:
        yield CudaRoom(memory.ptr, transfers)
    finally:
        del memory  # which the traceback of an error would hold


class CudaRoom:
    """Memory on the current card. Every call waits for what it started."""

    alignment = _ALIGNMENT

    def __init__(self, address: int, transfers: Transfers) -> None:
        import cupy

        self.address = address
        self._transfers, self._device = transfers, cupy.cuda.runtime.getDevice()
        with device_errors():
            self._there, self._work, self._back = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))

    def upload(self, address: int, parts: Sequence[HostArray], later: Sequence[HostArray], /) -> None:
        import cupy

        with cupy.cuda.Device(self._device), device_errors():
            self._transfers.upload_parts(address, parts, self._there, [bytes_of(array) for array in later])
            self._there.synchronize()

    def work(self, run: Callable[[int], object], /) -> None:
        import cupy

        with cupy.cuda.Device(self._device), self._work, device_errors():
            try:
                run(self._work.ptr)
            finally:
                self._work.synchronize()

    def download(self, address: int, elements: HostArray, /) -> None:
        import cupy

        with cupy.cuda.Device(self._device), device_errors():
            self._transfers.download(address, elements, self._back)
            self._back.synchronize()
