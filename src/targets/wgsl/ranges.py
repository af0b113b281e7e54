"""Arrays in WebGPU buffers as what is bound: checked, as a buffer and an offset; and copied before and after a run, on
the device, where WebGPU does not allow to bind them in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import attrs

from ...kernel.launch import Buffer, Role
from ...types.errors import CapabilityError, InvalidArgumentError
from ...types.specs import padded
from .commands import BufferRange
from .device import Device
from .errors import require_unmapped, require_whole
from .session import Session

if TYPE_CHECKING:
    import wgpu

_COPY_SRC, _COPY_DST, _STORAGE = 4, 8, 128  # WebGPU fixes the numbers of these flags
_WRITTEN = (Role.OUTPUT, Role.INOUT)


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
    ranges: dict[str, BufferRange] = {}
    for buffer, array in zip(given, cast("Sequence[OnWebGpu]", memories), strict=True):
        wanted, found = padded(buffer.nbytes), BufferRange(array.buffer, array.offset)
        refusal = ""
        if array.device is not session.device.handle:
            adapter = session.device.info.adapter
            refusal = f"one on {adapter!r} as this target has opened it, found one of another device"
        elif found.offset + wanted > found.buffer.size:
            refusal = f"{wanted} bytes from {found.offset} on, found a buffer of {found.buffer.size}"
        elif not found.buffer.usage & _STORAGE:
            refusal = "a buffer with usage STORAGE"
        if refusal:
            raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected {refusal}")
        require_unmapped(f"arrays[{buffer.name!r}]", found.buffer)
        ranges[buffer.name] = found
    return ranges


@attrs.frozen
class Copies:
    """Copies of the arrays that cannot be bound in place: those at an unaligned offset, or that share a buffer with
    another array of which one is written."""

    _device: Device
    _ranges: Mapping[str, BufferRange]  # of all arrays
    _copied: Sequence[tuple[Buffer[Any], BufferRange]]

    @classmethod
    def needed(
        cls, device: Device, given: Sequence[Buffer[Any]], ranges: Mapping[str, BufferRange]
    ) -> Copies | None:  # fmt: skip
        """None, the common case, if all can be bound in place."""
        bound = [(buffer, ranges[buffer.name]) for buffer in given]
        sharers = Counter(id(region.buffer) for _, region in bound)
        written = {id(region.buffer) for buffer, region in bound if buffer.role in _WRITTEN}
        copied = [
            (buffer, region)
            for buffer, region in bound
            if region.offset % device.alignment or (id(region.buffer) in written and sharers[id(region.buffer)] > 1)
        ]
        return cls(device, ranges, copied) if copied else None

    def refuse(self) -> NoReturn:
        """Raises InvalidArgumentError: in a recording by the caller nothing can be copied."""
        device = self._device
        raise InvalidArgumentError(
            f"arrays[{self._copied[0][0].name!r}]: to be recorded, expected a buffer of its own, or one that none is "
            f"written in, an offset that is a multiple of {device.alignment}, and a row that one binding holds, of "
            f"{device.info.limits.storage_bytes} bytes here (max-storage-buffer-binding-size)"
        )

    def copied_in(
        self, encoder: wgpu.GPUCommandEncoder, storage: Callable[[int], wgpu.GPUBuffer]
    ) -> dict[str, BufferRange]:
        """Records the copies to new buffers; returns the buffers to bind."""
        memory = dict(self._ranges)
        for buffer, region in self._copied:
            _require_copies(buffer, region)
            require_whole(f"arrays[{buffer.name!r}]", region.buffer, self._device.handle)
            memory[buffer.name] = BufferRange(storage(padded(buffer.nbytes)))
            if buffer.nbytes and _is_read(buffer):
                size, to = padded(buffer.nbytes), memory[buffer.name].buffer
                encoder.copy_buffer_to_buffer(region.buffer, region.offset, to, 0, size)
        return memory

    def copied_back(self, encoder: wgpu.GPUCommandEncoder, memory: Mapping[str, BufferRange]) -> None:
        for buffer, region in self._copied:
            if buffer.role in _WRITTEN and buffer.nbytes:
                size, source = padded(buffer.nbytes), memory[buffer.name].buffer
                encoder.copy_buffer_to_buffer(source, 0, region.buffer, region.offset, size)


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
