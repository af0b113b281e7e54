"""Device memory for out-of-core work: one allocation, with a stream each for uploads, kernels and downloads, so that
copies overlap with computation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from ...arrays.kinds import APART
from ...types.libraries import cupy
from ..base import Copies, HostArray
from .card import device_errors
from .pinned import Bytes, PinnedMemory
from .transfers import Transfers, bytes_of, is_pinned

_SPARE = 1 << 26  # bytes left for kernels' code and other users of the card


def free_bytes() -> int:
    """Bytes that cupy can allocate on the current card: free memory and its pool's, within the pool's limit if set."""
    pool, (free, _) = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo()
    limit = pool.get_limit()
    found = free + pool.free_bytes()
    return max(0, (min(found, limit - pool.used_bytes()) if limit else found) - _SPARE)


@contextmanager
def cuda_room(nbytes: int, transfers: Transfers, pinned: PinnedMemory) -> Generator[CudaRoom]:
    """Allocates on the current card for the length of a with block. Raises DeviceMemoryError."""
    with device_errors():
        memory = cupy.cuda.alloc(nbytes)
        cupy.cuda.get_current_stream().synchronize()  # the pool reuses memory in stream order: kernels may still use it
    room = CudaRoom(memory.ptr, transfers, pinned)
    try:
        yield room
    except BaseException:
        with suppress(cupy.cuda.runtime.CUDARuntimeError):  # which may be what is raised
            room.wait()  # for an upload that no work has waited for
        raise
    finally:
        del memory  # an error's traceback would keep it alive


class CudaRoom:
    """A `Room` (base.py) on the current card. All calls but uploads synchronise their stream before they return."""

    alignment = APART  # as cupy's allocator aligns

    def __init__(self, address: int, transfers: Transfers, pinned: PinnedMemory) -> None:
        self.address = address
        self._transfers, self._pinned, self._device = transfers, pinned, cupy.cuda.runtime.getDevice()
        with device_errors():
            self._there, self._work, self._back = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))

    def upload(self, copies: Copies, later: Sequence[HostArray], /) -> cupy.cuda.Event:
        with cupy.cuda.Device(self._device), device_errors():
            touched = [bytes_of(array) for array in later if array.nbytes and not is_pinned(array)]
            self._transfers.upload(copies, self._there, touched)
            return self._there.record(cupy.cuda.Event(disable_timing=True))

    def work(self, run: Callable[[int], object], upload: Any, /) -> None:
        with cupy.cuda.Device(self._device), self._work, device_errors():
            try:
                self._work.wait_event(upload)
                run(self._work.ptr)
            finally:
                self._work.synchronize()

    def download(self, copies: Copies, /) -> None:
        with cupy.cuda.Device(self._device), device_errors():
            self._transfers.download(copies, self._back)
            self._back.synchronize()

    def wait(self) -> None:
        """Waits until nothing is under way."""
        for stream in (self._there, self._work, self._back):
            stream.synchronize()

    def host_memory(self, nbytes: int, /) -> AbstractContextManager[Bytes]:
        return self._pinned.taken(nbytes)
