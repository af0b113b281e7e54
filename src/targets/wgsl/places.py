"""Arrays on a device of WebGPU, as kernels take them: where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...kernel.launch import Buffer
from ...types.errors import InvalidArgumentError
from .commands import Place
from .memory import padded
from .session import Session

if TYPE_CHECKING:
    import wgpu

_STORAGE = 128  # WebGPU fixes the numbers of these flags


class OnWebGpu(Protocol):
    """A packed array on a device of WebGPU."""

    @property
    def buffer(self) -> wgpu.GPUBuffer: ...
    @property
    def offset(self) -> int: ...  # of its first byte
    @property
    def device(self) -> wgpu.GPUDevice: ...


def places_of(session: Session, given: Sequence[Buffer[Any]], memories: Sequence[object]) -> dict[str, Place]:
    """Of a schedule's buffers, by their names."""
    return {buffer.name: _place(session, buffer, memory) for buffer, memory in zip(given, memories, strict=True)}


def _place(session: Session, buffer: Buffer[Any], memory: Any) -> Place:
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
    return Place(array.buffer, offset)


def are_at(memories: Sequence[Any], places: tuple[Place, ...]) -> bool:
    """Whether arrays, which were looked at when they were bound, lie there."""
    for memory, place in zip(memories, places, strict=True):
        if memory.buffer is not place.buffer or memory.offset != place.offset:
            return False
    return True
