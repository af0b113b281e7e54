"""Staging copies on the device, for arrays that WebGPU does not allow to be bound in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...kernel.launch import Buffer, Role
from ...types.errors import CapabilityError, InvalidArgumentError
from .commands import BufferRange
from .memory import padded

if TYPE_CHECKING:
    import wgpu

_COPY_SRC, _COPY_DST = 4, 8  # WebGPU fixes the numbers of these flags
_WRITTEN = (Role.OUTPUT, Role.INOUT)


def staged(given: Sequence[Buffer[Any]], ranges: Mapping[str, BufferRange], alignment: int) -> Staged | None:
    """The copies that arrays need; None, the common case, if all can be bound in place."""
    sharers: dict[int, int] = {}
    is_aligned = True
    for region in ranges.values():
        sharers[id(region.buffer)] = sharers.get(id(region.buffer), 0) + 1
        is_aligned &= not region.offset % alignment
    if is_aligned and len(sharers) == len(ranges):
        return None
    written = {id(ranges[buffer.name].buffer) for buffer in given if buffer.role in _WRITTEN}
    names = [
        name
        for name, region in ranges.items()
        if region.offset % alignment or (id(region.buffer) in written and sharers[id(region.buffer)] > 1)
    ]
    return Staged(given, ranges, names) if names else None


class Staged:
    """Arrays to be copied to buffers of their own for a run: those at an unaligned offset, or that share a buffer with
    another array of which one is written."""

    def __init__(self, given: Sequence[Buffer[Any]], ranges: Mapping[str, BufferRange], names: Sequence[str]) -> None:
        self._given = {buffer.name: buffer for buffer in given}
        self._ranges, self._names = ranges, names

    def refuse(self) -> NoReturn:
        """Raises InvalidArgumentError: in a recording by the caller nothing can be copied."""
        raise InvalidArgumentError(
            f"arrays[{self._names[0]!r}]: to be recorded, expected a buffer of its own, or one that none is written "
            "in, and an offset that the device binds at"
        )

    def copied_in(self, encoder: wgpu.GPUCommandEncoder, storage: Any) -> dict[str, BufferRange]:
        """Records the copies to new buffers; returns the buffers to bind."""
        memory = dict(self._ranges)
        for name in self._names:
            buffer, region = self._given[name], self._ranges[name]
            size = padded(buffer.nbytes)
            memory[name] = BufferRange(storage(size))
            self._require_copies(name, region, buffer)
            if buffer.nbytes and _is_read(buffer):
                encoder.copy_buffer_to_buffer(region.buffer, region.offset, memory[name].buffer, 0, size)
        return memory

    def copied_back(self, encoder: wgpu.GPUCommandEncoder, memory: Mapping[str, BufferRange]) -> None:
        for name in self._names:
            buffer, region = self._given[name], self._ranges[name]
            if buffer.role in _WRITTEN and buffer.nbytes:
                size = padded(buffer.nbytes)
                encoder.copy_buffer_to_buffer(memory[name].buffer, 0, region.buffer, region.offset, size)

    @staticmethod
    def _require_copies(name: str, region: BufferRange, buffer: Buffer[Any]) -> None:
        wanted = (_COPY_SRC if _is_read(buffer) else 0) | (_COPY_DST if buffer.role in _WRITTEN else 0)
        if region.offset % 4:
            raise CapabilityError(
                f"arrays[{name!r}]: WebGPU copies from offsets that are a multiple of 4 bytes, found {region.offset}"
            )
        if region.buffer.usage & wanted != wanted:
            raise InvalidArgumentError(
                f"arrays[{name!r}]: at this offset, or in a buffer that another array shares, it is copied before and "
                "after; create the buffer with usage COPY_SRC and COPY_DST"
            )


def _is_read(buffer: Buffer[Any]) -> bool:
    """Whether the buffer's old bytes matter. Copies are of whole words: so do a neighbour's bytes in the last one."""
    return buffer.role is not Role.OUTPUT or buffer.nbytes % 4 != 0
