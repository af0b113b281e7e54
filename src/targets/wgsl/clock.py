"""Timestamp queries: measures a compute pass by the device's own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import wgpu

FEATURE = "timestamp-query"
_RESOLVED = 0x200 | 4  # QUERY_RESOLVE, COPY_SRC
_READ_BACK, _READ = 1 | 8, 1  # MAP_READ and COPY_DST; MapMode.READ
_BYTES = 16  # two timestamps of 64 bits


class Clock:
    """Writes timestamps at a pass's beginning and end, in WebGPU's nanoseconds."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device
        self._queries = device.create_query_set(type="timestamp", count=2)
        self._ticks = device.create_buffer(size=_BYTES, usage=_RESOLVED)
        self._fetched = device.create_buffer(size=_BYTES, usage=_READ_BACK)

    def begin(self, encoder: wgpu.GPUCommandEncoder) -> wgpu.GPUComputePassEncoder:
        """Begins a timed compute pass."""
        return encoder.begin_compute_pass(
            timestamp_writes={
                "query_set": self._queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1
            }
        )  # fmt: skip

    def end(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """After the pass: resolves the queries and copies them to a mappable buffer."""
        encoder.resolve_query_set(self._queries, 0, 2, self._ticks, 0)
        encoder.copy_buffer_to_buffer(self._ticks, 0, self._fetched, 0, _BYTES)

    def seconds(self) -> float:
        """The pass's duration. Maps the buffer, so it waits for the submission."""
        self._fetched.map_sync(_READ, 0, _BYTES)
        try:
            ticks = np.frombuffer(self._fetched.read_mapped(0, _BYTES), np.uint64)
        finally:
            self._fetched.unmap()
        return float(ticks[1] - ticks[0]) / 1e9
