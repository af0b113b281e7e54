"""Recycles buffers for results on WebGPU devices: that of an earlier result which nobody references any more, if any.

A driver takes longer to make a buffer, and to let one go, than many a kernel runs. So the buffers of the last few
results are kept when these go, as recycled.py keeps the host's memory: a buffer leaves the shelf for another result
only if nobody but the shelf holds it, by CPython's own count. One that was ever shown to a caller is not kept, for it
may have been destroyed, or be known to code that Python does not see; nor is one that commands in a caller's encoder
use, which may be submitted at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .recycled import most_bytes
from .shelf import Shelf

if TYPE_CHECKING:
    import wgpu

COPY_SRC, COPY_DST, STORAGE = 4, 8, 128  # WebGPU fixes the numbers of these flags
USAGE = STORAGE | COPY_SRC | COPY_DST
_MOST = 4

_kept: Shelf[wgpu.GPUDevice, wgpu.GPUBuffer] = Shelf(_MOST)


class Held:
    """A buffer shared by an array and its views."""

    __slots__ = ("_owner", "buffer")

    def __init__(self, buffer: wgpu.GPUBuffer, owner: wgpu.GPUDevice | None = None) -> None:
        """Recycled when the last reference goes, if `owner`, its device, is given."""
        self.buffer, self._owner = buffer, owner

    def shown(self) -> wgpu.GPUBuffer:
        """Hands the buffer to a caller, who may keep it: it is not recycled any more."""
        self._owner = None
        return self.buffer

    def __del__(self) -> None:
        if self._owner is not None:
            _kept.put(self._owner, self.buffer)


def held(buffer: wgpu.GPUBuffer | Held) -> Held:
    """Wraps a caller's own buffer, which is never recycled."""
    return buffer if isinstance(buffer, Held) else Held(buffer)


def new_buffer(device: wgpu.GPUDevice, size: int) -> Held:
    """An uninitialised buffer of `size` bytes, recycled or new."""
    if size > most_bytes():
        return Held(device.create_buffer(size=size, usage=USAGE))
    found = _kept.take(lambda owner, kept: owner is device and kept.size == size)
    return Held(found or device.create_buffer(size=size, usage=USAGE), device)


def forget() -> None:
    """Releases the recycled buffers."""
    _kept.clear()
