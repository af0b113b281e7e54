"""A session on an open device: compiled kernels, pooled buffers, and the subgroup size that a probe has measured."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from ...compile_log import log_slow
from ...forks import never_released_in_children
from ...kernel import ir
from ...kernel.launch import Buffer, Role, Step
from ...kernel.span import Span
from ...types.errors import DeviceLostError, GpusortError
from ...types.layout import Type
from ...types.scalars import U32
from .device import Device
from .errors import translated_errors
from .kernel import Kernel, compile_kernel
from .launches import PreparedLaunches
from .legalize_words import WordBuilder
from .memory import Pool, Staging
from .runtime import can_wait

if TYPE_CHECKING:
    from .prepared import WgslPrepared

_PROBES = 64  # invocations of the probe


class Session:
    """What lives with an open device. Not thread-safe: the target serialises by a lock."""

    def __init__(self, device: Device) -> None:
        self.device = device
        never_released_in_children(self)
        self.pool = Pool(device.handle, device.handle.limits["max-buffer-size"])
        self.holders: WeakSet[WgslPrepared] = WeakSet()  # what was prepared in it
        self.staging = Staging(device.handle)
        # Keyed by identity: programs are memoised, so a launch of the same shape has the same one; equality is slow.
        self._kernels: dict[int, tuple[ir.Program, Kernel]] = {}
        if device.has_subgroups and can_wait():
            self.device = device.with_lanes(1)  # for the probe, which uses them
            self.device = device.with_lanes(self._measured_subgroup_size())

    def give_up(self) -> None:
        """Lets nobody keep the device, for which wgpu has a thread as long as it lives."""
        for holder in list(self.holders):
            holder.forget()

    def kernel(self, program: ir.Program) -> Kernel:
        known = self._kernels.get(id(program))
        if known is None:
            with log_slow("wgsl", f"kernel {program.name!r}"):
                known = self._kernels[id(program)] = (program, compile_kernel(program, self.device))
        return known[1]

    def _measured_subgroup_size(self) -> int:
        """The subgroup size, measured by a probe kernel; 0 if lanes do not follow the order of invocations."""
        program = _lane_probe()
        buffer: Buffer[object] = Buffer(_PROBE_MEMORY, U32, _PROBES, Role.OUTPUT)
        seen = np.zeros(_PROBES, np.uint32)
        step = Step(program, (buffer,), (), 1)
        try:
            with translated_errors("the probe for subgroups"):
                PreparedLaunches(self, [step]).run({_PROBE_MEMORY: seen.view(np.uint8)})
        except DeviceLostError:
            raise
        except GpusortError:
            return 0  # the adapter announces subgroups, and they do not work
        size = int(seen[0] >> 8)
        expected = np.arange(_PROBES, dtype=np.uint32) % max(size, 1) | size << 8
        return size if np.array_equal(seen, expected) else 0


_PROBE_MEMORY = "seen"


def _lane_probe() -> ir.Program:
    """A kernel in which every invocation stores its lane | subgroup size << 8."""
    build = WordBuilder(Span(__file__, 1))
    memory = ir.Memory(_PROBE_MEMORY, ir.Space.STORAGE, Type.U32)
    lane, size = build.builtin(ir.Builtin.LANE), build.builtin(ir.Builtin.SUBGROUP_SIZE)
    build.store(memory, build.builtin(ir.Builtin.LOCAL_ID), lane | size << 8)
    return ir.Program("lane_probe", _PROBES, (), (memory,), (), build.finish(), build.span)
