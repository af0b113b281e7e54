"""Command recording: a schedule's launches as dispatches of one compute pass, with bind groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

import attrs
import numpy as np

from .kernel import Kernel
from .runtime import wgpu

_RESOLVED = 0x200 | 4  # QUERY_RESOLVE, COPY_SRC
_BYTES = 16  # two timestamps of 64 bits


class BufferRange(NamedTuple):
    """A buffer and an offset in bytes. A tuple, as many are made in every call."""

    buffer: wgpu.GPUBuffer
    offset: int = 0


@attrs.frozen
class Binding:
    """The contents of a bind group: the uniform buffer of all launches' parameters, then storage buffers."""

    kernel: Kernel
    names: tuple[str, ...]
    sizes: tuple[int, ...]  # in bytes


@attrs.frozen
class Dispatch:
    kernel: Kernel
    group: int  # index of its binding
    offset: int  # dynamic offset of its parameters in the uniform buffer
    columns: int
    rows: int


Group: TypeAlias = object  # a bind group of the Commands that made it
Recorded: TypeAlias = object  # a command buffer, which can be submitted once


class Clock:
    """Times a compute pass by the device's own clock: by timestamps at its beginning and end, in nanoseconds."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device
        self._queries = device.create_query_set(type="timestamp", count=2)
        self._ticks = device.create_buffer(size=_BYTES, usage=_RESOLVED)

    def begin(self, encoder: wgpu.GPUCommandEncoder) -> wgpu.GPUComputePassEncoder:
        return encoder.begin_compute_pass(
            timestamp_writes={
                "query_set": self._queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1
            }
        )  # fmt: skip

    def end(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """After the pass."""
        encoder.resolve_query_set(self._queries, 0, 2, self._ticks, 0)

    def seconds(self) -> float:
        """The pass's duration. Waits for the submission."""
        ticks = np.frombuffer(self._device.queue.read_buffer(self._ticks, 0, _BYTES), np.uint64)
        return float(ticks[1] - ticks[0]) / 1e9


class Commands:
    """Records all launches of a schedule in one compute pass, by wgpu's public API. WebGPU orders the accesses of its
    dispatches to memory. Raises wgpu's GPUErrors."""

    def __init__(self, handle: wgpu.GPUDevice, launches: Sequence[Dispatch], bindings: Sequence[Binding]) -> None:
        self._handle, self._launches, self._bindings = handle, launches, bindings

    def groups(self, bound: Sequence[tuple[int, Sequence[BufferRange]]]) -> Sequence[Group]:
        """Makes bind groups of (index of a binding, its buffers). They keep the buffers alive, and can be reused."""
        return [self._group(self._bindings[number], ranges) for number, ranges in bound]

    def _group(self, binding: Binding, ranges: Sequence[BufferRange]) -> wgpu.GPUBindGroup:
        bound = zip(ranges, binding.sizes, strict=True)
        return self._handle.create_bind_group(
            layout=binding.kernel.layout,
            entries=[
                {"binding": position, "resource": {"buffer": region.buffer, "offset": region.offset, "size": size}}
                for position, (region, size) in enumerate(bound)
            ],
        )

    def encode(self, encoder: wgpu.GPUCommandEncoder, groups: Sequence[Group], clock: Clock | None = None) -> None:
        """Records a pass into an encoder, timed if there is a clock."""
        compute = encoder.begin_compute_pass() if clock is None else clock.begin(encoder)
        current: Kernel | None = None
        for launch in self._launches:
            if launch.kernel is not current:
                current = launch.kernel
                compute.set_pipeline(current.pipeline)
            compute.set_bind_group(0, cast("wgpu.GPUBindGroup", groups[launch.group]), [launch.offset])
            compute.dispatch_workgroups(launch.columns, launch.rows)
        compute.end()
        if clock is not None:
            clock.end(encoder)

    def recorded(self, groups: Sequence[Group]) -> Recorded:
        encoder = self._handle.create_command_encoder()
        self.encode(encoder, groups)
        return encoder.finish()

    def submit(self, recorded: Recorded) -> None:
        self._handle.queue.submit([cast("wgpu.GPUCommandBuffer", recorded)])
