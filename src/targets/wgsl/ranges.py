"""Arrays in WebGPU buffers as what is bound: checked, as a buffer and an offset; and copied before and after a run, on
the device, where WebGPU does not allow to bind them in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from ...kernel.launch import Buffer, Role
from ...types.errors import CapabilityError, InvalidArgumentError
from ...types.specs import padded
from .commands import BufferRange
from .device import Device
from .errors import require_unmapped, require_whole
from .memory import Lease
from .runtime import wgpu

_COPY_SRC, _COPY_DST = 4, 8  # WebGPU fixes the numbers of these flags
_WRITTEN = (Role.OUTPUT, Role.INOUT)


class OnWebGpu(Protocol):
    """A packed array in a WebGPU buffer."""

    @property
    def buffer(self) -> wgpu.GPUBuffer: ...
    @property
    def offset(self) -> int: ...  # of the first element, in bytes
    @property
    def device(self) -> wgpu.GPUDevice: ...


def buffer_ranges(device: Device, given: Sequence[Buffer[Any]], arrays: Sequence[OnWebGpu]) -> dict[str, BufferRange]:
    """Checked arrays by the name of their buffer. Raises InvalidArgumentError."""
    ranges: dict[str, BufferRange] = {}
    for buffer, array in zip(given, arrays, strict=True):
        wanted, found = padded(buffer.nbytes), BufferRange(array.buffer, array.offset)
        refusal = ""
        if array.device is not device.handle:
            refusal = f"one on {device.info.adapter!r} as this target has opened it, found one of another device"
        elif found.offset + wanted > found.buffer.size:
            refusal = f"{wanted} bytes from {found.offset} on, found a buffer of {found.buffer.size}"
        if refusal:
            raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected {refusal}")
        require_unmapped(f"arrays[{buffer.name!r}]", found.buffer)
        ranges[buffer.name] = found
    return ranges


@attrs.frozen
class Copy:
    """A copy of an array that cannot be bound in place."""

    buffer: Buffer[Any]
    given: BufferRange
    own: BufferRange

    def made(self, encoder: wgpu.GPUCommandEncoder) -> None:
        if self.buffer.nbytes and _is_read(self.buffer):
            size = padded(self.buffer.nbytes)
            encoder.copy_buffer_to_buffer(self.given.buffer, self.given.offset, self.own.buffer, 0, size)

    def put_back(self, encoder: wgpu.GPUCommandEncoder) -> None:
        if self.buffer.nbytes and self.buffer.role in _WRITTEN:
            size = padded(self.buffer.nbytes)
            encoder.copy_buffer_to_buffer(self.own.buffer, 0, self.given.buffer, self.given.offset, size)


def copies_of(
    device: Device, given: Sequence[Buffer[Any]], ranges: Mapping[str, BufferRange], lease: Lease | None
) -> list[Copy]:
    """Of the arrays at an unaligned offset, or that share a buffer with another array of which one is written; in most
    calls none. Without a lease nothing can be copied, and they raise InvalidArgumentError."""
    bound = [(buffer, ranges[buffer.name]) for buffer in given]
    sharers = Counter(id(region.buffer) for _, region in bound)
    written = {id(region.buffer) for buffer, region in bound if buffer.role in _WRITTEN}
    copies: list[Copy] = []
    for buffer, region in bound:
        if region.offset % device.alignment or (id(region.buffer) in written and sharers[id(region.buffer)] > 1):
            if lease is None:
                raise InvalidArgumentError(
                    f"arrays[{buffer.name!r}]: to be recorded, expected a buffer of its own, or one that none is "
                    f"written in, an offset that is a multiple of {device.alignment}, and a row that one binding "
                    f"holds, of {device.info.limits.storage_bytes} bytes here (max-storage-buffer-binding-size)"
                )
            _require_copies(buffer, region)
            require_whole(f"arrays[{buffer.name!r}]", region.buffer, device.handle)
            copies.append(Copy(buffer, region, BufferRange(lease.storage(padded(buffer.nbytes)))))
    return copies


def _require_copies(buffer: Buffer[Any], region: BufferRange) -> None:
    wanted = (_COPY_SRC if _is_read(buffer) else 0) | (_COPY_DST if buffer.role in _WRITTEN else 0)
    if region.offset % 4:
        raise CapabilityError(
            f"arrays[{buffer.name!r}]: WebGPU copies from offsets that are a multiple of 4 bytes, found {region.offset}"
        )
    if region.buffer.usage & wanted != wanted:
        raise InvalidArgumentError(
            f"arrays[{buffer.name!r}]: at this offset, or in a buffer that another array shares, it is copied before "
            "and after; create the buffer with usage COPY_SRC and COPY_DST"
        )


def _is_read(buffer: Buffer[Any]) -> bool:
    """Whether the buffer's old bytes matter. Copies are of whole words: so do a neighbour's bytes in the last one."""
    return buffer.role is not Role.OUTPUT or buffer.nbytes % 4 != 0
