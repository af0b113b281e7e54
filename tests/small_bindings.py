"""Targets whose bindings hold little, so that short rows are cut as very long ones are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from gpusort.kernel.launch import Schedule
from gpusort.machine import Limits, TargetInfo
from gpusort.targets.simulator.target import Simulator
from gpusort.targets.wgsl.defaults import DEFAULT_LIMITS
from gpusort.targets.wgsl.target import WgslTarget
from tests.opened import or_skip


@attrs.define
class Small:
    """The simulator with bindings of so many bytes."""

    nbytes: int
    inner: Simulator = attrs.field(factory=Simulator)
    schedules: list[Schedule] = attrs.field(factory=list[Schedule])

    @property
    def info(self) -> TargetInfo:
        limits: Limits = attrs.evolve(self.inner.info.limits, storage_bytes=self.nbytes)
        return attrs.evolve(self.inner.info, limits=limits)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        assert all(buffer.nbytes <= self.nbytes for buffer in schedule.buffers)
        self.schedules.append(schedule)
        self.inner.run(schedule, arrays)


def device_with_bindings_of(nbytes: int) -> Any:
    """A device of WebGPU with no more than the default limits, and bindings of so many bytes."""
    wgpu = pytest.importorskip("wgpu")
    or_skip(WgslTarget)
    limits = {**DEFAULT_LIMITS, "max-storage-buffer-binding-size": nbytes}
    return wgpu.gpu.request_adapter_sync().request_device_sync(required_limits=limits)
