"""Buffers for results on WebGPU's devices: that of an earlier result which nobody holds any more, if one is there.

A driver takes longer to make a buffer, and to let one go, than many a kernel runs. So the buffers of the last few
results are kept when these go, as recycled.py keeps the host's memory: a buffer leaves the shelf for another result
only if nobody but the shelf holds it, by CPython's own count. One that was ever shown to a caller is not kept, for it
may have been destroyed, or be known to code that Python does not see; nor is one that commands in a caller's encoder
use, which may be submitted at any time.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING

from .recycled import most_bytes

if TYPE_CHECKING:
    import wgpu

COPY_SRC, COPY_DST, STORAGE = 4, 8, 128  # WebGPU fixes the numbers of these flags
USAGE = STORAGE | COPY_SRC | COPY_DST
_MOST = 4

# With their devices; appending and popping need no lock.
_kept: deque[tuple[wgpu.GPUDevice, wgpu.GPUBuffer]] = deque(maxlen=_MOST)


class Held:
    """A buffer in which an array lies, with all its views."""

    __slots__ = ("_owner", "buffer")

    def __init__(self, buffer: wgpu.GPUBuffer, owner: wgpu.GPUDevice | None = None) -> None:
        """Kept for others only if its device is told."""
        self.buffer, self._owner = buffer, owner

    def shown(self) -> wgpu.GPUBuffer:
        """To a caller, who may do anything with it."""
        self._owner = None
        return self.buffer

    def __del__(self) -> None:
        if self._owner is not None:
            _kept.append((self._owner, self.buffer))


def held(buffer: wgpu.GPUBuffer | Held) -> Held:
    """One of a caller's, as it is."""
    return buffer if isinstance(buffer, Held) else Held(buffer)


def new_buffer(device: wgpu.GPUDevice, size: int) -> Held:
    """Of so many bytes, which hold anything."""
    if size > most_bytes():
        return Held(device.create_buffer(size=size, usage=USAGE))
    return Held(_taken(device, size) or device.create_buffer(size=size, usage=USAGE), device)


def forget() -> None:
    """Gives back what is kept."""
    _kept.clear()


def _taken(device: wgpu.GPUDevice, size: int) -> wgpu.GPUBuffer | None:
    for _ in range(len(_kept)):
        try:
            entry = _kept.popleft()
        except IndexError:  # another thread was faster
            break
        owner, buffer = entry
        if sys.getrefcount(buffer) != _ALONE:
            continue
        if owner is device and buffer.size == size:
            return buffer
        _kept.append(entry)
    return None


def _count_alone() -> int:
    """What is counted of a buffer that came off the shelf, and that nobody else holds."""
    shelf = deque([(object(), object())])
    entry = shelf.popleft()
    _, buffer = entry
    return sys.getrefcount(buffer)


_ALONE = _count_alone()
