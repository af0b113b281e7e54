"""Checks arrays in WebGPU buffers and converts them to what is bound: a buffer and an offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...kernel.launch import Buffer
from ...types.errors import InvalidArgumentError
from .commands import BufferRange
from .memory import padded
from .session import Session

if TYPE_CHECKING:
    import wgpu

_STORAGE = 128  # WebGPU fixes the numbers of these flags


class OnWebGpu(Protocol):
    """A packed array in a WebGPU buffer."""

    @property
    def buffer(self) -> wgpu.GPUBuffer: ...
    @property
    def offset(self) -> int: ...  # of the first element, in bytes
    @property
    def device(self) -> wgpu.GPUDevice: ...


def buffer_ranges(session: Session, given: Sequence[Buffer[Any]], memories: Sequence[object]) -> dict[str, BufferRange]:
    """Checked arrays by the name of their buffer. Raises InvalidArgumentError."""
    return {buffer.name: _place(session, buffer, memory) for buffer, memory in zip(given, memories, strict=True)}


def _place(session: Session, buffer: Buffer[Any], memory: Any) -> BufferRange:
    array: OnWebGpu = memory
    device = session.device
    if array.device is not device.handle:
        raise InvalidArgumentError(
            f"arrays[{buffer.name!r}]: expected one on {device.adapter!r} as this target has opened it, "
            "found one of another device"
        )
    offset = array.offset
    if offset + padded(buffer.nbytes) > array.buffer.size:
        raise InvalidArgumentError(
            f"arrays[{buffer.name!r}]: expected {padded(buffer.nbytes)} bytes from {offset} on, found a buffer of "
            f"{array.buffer.size}"
        )
    if not array.buffer.usage & _STORAGE:
        raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected a buffer with usage STORAGE")
    return BufferRange(array.buffer, offset)


def are_same(memories: Sequence[Any], ranges: tuple[BufferRange, ...]) -> bool:
    """Whether these are the buffers and offsets that were checked before."""
    for memory, region in zip(memories, ranges, strict=True):
        if memory.buffer is not region.buffer or memory.offset != region.offset:
            return False
    return True
