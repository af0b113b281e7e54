"""Device memory of the WGSL target: a buffer pool with size classes, uploads, and a staging buffer for downloads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...types.specs import padded
from .runtime import wgpu

Bytes: TypeAlias = npt.NDArray[np.uint8]

_STORAGE = 128 | 8 | 4  # STORAGE, COPY_DST, COPY_SRC: WebGPU fixes the numbers of these flags
_UNIFORM = 64 | 8  # UNIFORM, COPY_DST
_READ_BACK = 1 | 8  # MAP_READ, COPY_DST
_READ = 1  # MapMode.READ
_LEAST = 1 << 12  # bytes of the smallest size class
_CHUNK = 64 << 20  # bytes of a transfer: the driver holds a copy of what is in flight
_KEPT = 1 << 30  # bytes of idle buffers in the pool; beyond, the oldest are destroyed


def size_class(size: int, most: int) -> int:
    """A size in bytes rounded up to its class, of which there are four in each octave."""
    if size <= _LEAST:
        return _LEAST
    step = 1 << ((size - 1).bit_length() - 3)
    return max(size, min(most, -(-size // step) * step))


class _Pooled(NamedTuple):
    """A pooled buffer; its size and usage are slower to read from wgpu's object."""

    buffer: wgpu.GPUBuffer
    size: int
    usage: int


class Pool:
    """A pool of a device's buffers, reused by size class and usage."""

    def __init__(self, device: wgpu.GPUDevice, most: int) -> None:
        self._device = device
        self._most = most
        self._idle: list[_Pooled] = []

    def lease(self) -> Lease:
        """A lease to take buffers by. As a context manager: all go back to the pool at its end. Else they are kept."""
        return Lease(self)

    def put_back(self, held: Sequence[_Pooled]) -> None:
        if held:
            self._idle += reversed(held)  # the pool is LIFO: a similar run gets the same buffers in the same order
            while self.idle_bytes > _KEPT:
                self._idle.pop(0).buffer.destroy()

    def take(self, size: int, usage: int) -> _Pooled:
        wanted = size_class(size, self._most)
        for position in range(len(self._idle) - 1, -1, -1):
            held = self._idle[position]
            if held.size == wanted and held.usage == usage:
                return self._idle.pop(position)
        return _Pooled(self._device.create_buffer(size=wanted, usage=usage), wanted, usage)

    @property
    def idle_bytes(self) -> int:
        return sum([held.size for held in self._idle])


class Lease(AbstractContextManager["Lease"]):
    """Buffers leased from a pool for one run."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._held: list[_Pooled] = []

    def __exit__(self, *_: object) -> None:
        self._pool.put_back(self._held)

    def storage(self, size: int) -> wgpu.GPUBuffer:
        return self._take(size, _STORAGE)

    def uniform(self, size: int) -> wgpu.GPUBuffer:
        return self._take(size, _UNIFORM)

    def _take(self, size: int, usage: int) -> wgpu.GPUBuffer:
        held = self._pool.take(size, usage)
        self._held.append(held)
        return held.buffer


def upload(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, data: Bytes) -> None:
    """Writes an array to the beginning of a buffer."""
    whole = data.size // 4 * 4
    for start in range(0, whole, _CHUNK):
        piece = data[start : min(whole, start + _CHUNK)]
        device.queue.write_buffer(buffer, start, piece)
        if whole > _CHUNK:
            device.queue.submit([])  # flushes, so that the driver frees its copy of this chunk
    if whole < data.size:
        tail = np.zeros(4, np.uint8)
        tail[: data.size - whole] = data[whole:]
        device.queue.write_buffer(buffer, whole, tail)


class Staging:
    """Downloads through one mappable buffer, which grows on demand up to a chunk. Larger arrays come in chunks."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device
        self._buffer: wgpu.GPUBuffer | None = None

    def reserve(self, size: int) -> wgpu.GPUBuffer:
        wanted = min(_CHUNK, size_class(size, _CHUNK))
        if self._buffer is None or self._buffer.size < wanted:
            if self._buffer is not None:
                self._buffer.destroy()
            self._buffer = self._device.create_buffer(size=wanted, usage=_READ_BACK)
        return self._buffer

    def finish(self, encoder: wgpu.GPUCommandEncoder, arrays: Sequence[tuple[wgpu.GPUBuffer, Bytes]]) -> None:
        """Submits the encoder, waits for the device, and copies each buffer to its array."""
        pieces = [(b, array, s) for b, array in arrays for s in range(0, array.size, _CHUNK)]
        total = sum(padded(min(_CHUNK, array.size - start)) + 4 for _, array, start in pieces)
        staging = self.reserve(total)
        batch: list[tuple[int, Bytes]] = []
        used = 0
        for source, array, start in pieces:
            target = array[start : start + _CHUNK]
            size = padded(target.size)
            if used + size > staging.size:
                self._fetch(encoder, staging, batch, used)
                encoder, batch, used = self._device.create_command_encoder(), [], 0
            encoder.copy_buffer_to_buffer(source, start, staging, used, size)
            batch.append((used, target))
            used = -(-(used + size) // 8) * 8  # a mapped range begins at a multiple of 8
        self._fetch(encoder, staging, batch, used)

    def _fetch(
        self, encoder: wgpu.GPUCommandEncoder, staging: wgpu.GPUBuffer, batch: list[tuple[int, Bytes]], used: int
    ) -> None:
        self._device.queue.submit([encoder.finish()])
        # Mapping waits for the device. Done even if nothing is downloaded, so that the run's errors are raised here.
        staging.map_sync(_READ, 0, max(8, used))
        try:
            for position, target in batch:
                view = staging.read_mapped(position, padded(target.size), copy=False)
                target[:] = np.frombuffer(view, np.uint8, target.size)
        finally:
            staging.unmap()
