"""A session on an open device: compiled kernels, pooled buffers, and the subgroup size that a probe has measured."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from ...compile_log import log_slow
from ...forks import never_released_in_children
from ...kernel import ir
from ...kernel.kernel import kernel
from ...kernel.launch import Buffer, Grid, Role
from ...kernel.specialise import specialise
from ...types.errors import DeviceLostError, GpusortError
from ...types.invocation import Invocation
from ...types.memory import Storage
from ...types.scalars import U32
from .device import Device
from .errors import translated_errors
from .kernel import Kernel, compile_kernel
from .launches import PreparedLaunches
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
        self._kernels: WeakKeyDictionary[ir.Program, Kernel] = WeakKeyDictionary()
        if device.has_subgroups and can_wait():
            self.device = device.with_lanes(1)  # for the probe, which uses them
            self.device = device.with_lanes(self._measured_subgroup_size())

    def give_up(self) -> None:
        """Lets nobody keep the device, for which wgpu has a thread as long as it lives."""
        for holder in list(self.holders):
            holder.forget()

    def kernel(self, program: ir.Program) -> Kernel:
        known = self._kernels.get(program)
        if known is None:
            with log_slow("wgsl", f"kernel {program.name!r}"):
                known = self._kernels[program] = compile_kernel(program, self.device)
        return known

    def _measured_subgroup_size(self) -> int:
        """The subgroup size, measured by a probe kernel; 0 if lanes do not follow the order of invocations."""
        buffer, seen = Buffer("seen", U32, _PROBES, Role.OUTPUT), np.zeros(_PROBES, np.uint32)
        step = specialise(probe_lanes.launch(Grid(1, _PROBES), buffer))
        try:
            with translated_errors("the probe for subgroups"):
                PreparedLaunches(self, [step]).run({buffer.name: seen})
        except DeviceLostError:
            raise
        except GpusortError:
            return 0  # the adapter announces subgroups, and they do not work
        size = int(seen[0] >> 8)
        expected = np.arange(_PROBES, dtype=np.uint32) % max(size, 1) | size << 8
        return size if np.array_equal(seen, expected) else 0


@kernel
def probe_lanes(cx: Invocation, seen: Storage[U32]) -> None:
    """Every invocation stores its lane, and above it the subgroup size."""
    seen[cx.local_id] = cx.lane | cx.subgroup_size << 8
