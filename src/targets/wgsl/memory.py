"""Device memory of the WGSL target: buffers that are used again, and the way of arrays to them and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import wgpu

Bytes: TypeAlias = npt.NDArray[np.uint8]

_STORAGE = 128 | 8 | 4  # STORAGE, COPY_DST, COPY_SRC: WebGPU fixes the numbers of these flags
_UNIFORM = 64 | 8  # UNIFORM, COPY_DST
_READ_BACK = 1 | 8  # MAP_READ, COPY_DST
_READ = 1  # MapMode.READ
_LEAST = 1 << 12
_CHUNK = 64 << 20  # bytes that travel at once: the driver keeps a copy of what is under way
_KEPT = 1 << 30  # bytes of idle buffers that are worth keeping


def size_class(size: int, most: int) -> int:
    """The size a buffer gets that must hold `size` bytes: one of four in each octave, so that it fits others
    too."""
    if size <= _LEAST:
        return _LEAST
    step = 1 << ((size - 1).bit_length() - 3)
    return max(size, min(most, -(-size // step) * step))


class _Held(NamedTuple):
    """A buffer, whose own attributes are slower to read."""

    buffer: wgpu.GPUBuffer
    size: int
    usage: int


class Pool:
    """Buffers of a device. Those not in use wait for the next one who wants their size; the oldest go
    first."""

    def __init__(self, device: wgpu.GPUDevice, most: int) -> None:
        self._device = device
        self._most = most
        self._idle: list[_Held] = []

    def taken(self) -> Taken:
        """A hand to take buffers with, for a with statement; all go back at the end."""
        return Taken(self)

    def put_back(self, held: Sequence[_Held]) -> None:
        self._idle += reversed(held)  # a run like this one gets each buffer for what it was for
        self._trim()

    def take(self, size: int, usage: int) -> _Held:
        wanted = size_class(size, self._most)
        for position in range(len(self._idle) - 1, -1, -1):
            held = self._idle[position]
            if held.size == wanted and held.usage == usage:
                return self._idle.pop(position)
        return _Held(self._device.create_buffer(size=wanted, usage=usage), wanted, usage)

    def clear(self) -> None:
        """Gives all idle memory back to the device."""
        for held in self._idle:
            held.buffer.destroy()
        self._idle.clear()

    def _trim(self) -> None:
        kept = self.idle_bytes
        while kept > _KEPT:
            oldest = self._idle.pop(0)
            kept -= oldest.size
            oldest.buffer.destroy()

    @property
    def idle_bytes(self) -> int:
        return sum([held.size for held in self._idle])


class Taken:
    """The buffers that one run of a schedule uses."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._held: list[_Held] = []

    def __enter__(self) -> Taken:
        return self

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

    def keep(self) -> None:
        """What is taken so far does not go back."""
        self._held.clear()


def padded(size: int) -> int:
    """A size in bytes as a binding or a copy can have it: whole words, at least one."""
    return max(4, -(-size // 4) * 4)


def upload(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, data: Bytes) -> None:
    """Writes an array to the beginning of a buffer."""
    whole = data.size // 4 * 4
    for start in range(0, whole, _CHUNK):
        piece = data[start : min(whole, start + _CHUNK)]
        device.queue.write_buffer(buffer, start, piece)
        if whole > _CHUNK:
            device.queue.submit([])  # lets the copy of this piece go
    if whole < data.size:
        tail = np.zeros(4, np.uint8)
        tail[: data.size - whole] = data[whole:]
        device.queue.write_buffer(buffer, whole, tail)


class Staging:
    """The way back: one buffer that the host can map. It grows to what is asked of it, up to a chunk; larger
    arrays come in chunks."""

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

    def finish(
        self, encoder: wgpu.GPUCommandEncoder, arrays: Sequence[tuple[wgpu.GPUBuffer, Bytes]], first: int = 0
    ) -> None:
        """Submits what is encoded, waits, and copies what the buffers then hold, from a byte on, to the arrays."""
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
            encoder.copy_buffer_to_buffer(source, first + start, staging, used, size)
            batch.append((used, target))
            used = -(-(used + size) // 8) * 8  # a mapped range begins at a multiple of 8
        self._fetch(encoder, staging, batch, used)

    def _fetch(
        self,
        encoder: wgpu.GPUCommandEncoder,
        staging: wgpu.GPUBuffer,
        batch: list[tuple[int, Bytes]],
        used: int,
    ) -> None:
        self._device.queue.submit([encoder.finish()])
        # Mapping waits for the device even where nothing is fetched: an error of the run must not come later.
        staging.map_sync(_READ, 0, max(8, used))
        try:
            for position, target in batch:
                view = staging.read_mapped(position, padded(target.size), copy=False)
                target[:] = np.frombuffer(view, np.uint8, target.size)
        finally:
            staging.unmap()
