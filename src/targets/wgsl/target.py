"""The target "wgsl": any adapter that WebGPU reaches, through wgpu."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from ...forks import require_own_process
from ...kernel.launch import Buffer, Role, Schedule, Step
from ...kernel.specialise import specialise
from ...types.errors import (
    CapabilityError,
    DeviceLostError,
    GpusortError,
    InvalidArgumentError,
    TargetUnavailableError,
)
from ..apart import import_apart
from ..base import TargetInfo
from .clock import FEATURE, Clock
from .device import open_device, translated
from .kernel import written
from .memory import Bytes
from .session import Session

NAME = "wgsl"


class WgslTarget:
    """Runs schedules on one adapter. Opens it at once, so that a target that exists is one that works; opens
    it anew when the device was lost. Threads take turns."""

    def __init__(self) -> None:
        try:
            import_apart("wgpu")
        except (ImportError, OSError) as error:
            raise TargetUnavailableError(f"target 'wgsl' needs wgpu: pip install wgpu ({error})") from error
        self._lock = threading.RLock()  # a signal handler may call again: it gets a session of its own
        self._session: Session | None = Session(open_device())
        self._info = _info_of(self._session)

    @property
    def info(self) -> TargetInfo:
        require_own_process(NAME)
        return self._info

    def source(self, step: Step) -> str:
        """The WGSL of a kernel, as naga is given it."""
        return written(step.program)[1].text

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        self.run_steps([specialise(launch) for launch in schedule.launches], arrays)

    def run_steps(self, steps: Sequence[Step], arrays: Mapping[str, object]) -> None:
        """Runs kernels that are read already, in order."""
        require_own_process(NAME)
        buffers = {buffer.name: buffer for step in steps for buffer in step.buffers}
        bound = {b.name: _bytes_of(b, arrays) for b in buffers.values() if b.role is not Role.SCRATCH}
        self._run(steps, bound)

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule, and says how long the device was at its launches, without the way of the arrays."""
        require_own_process(NAME)
        steps = [specialise(launch) for launch in schedule.launches]
        bound = {b.name: _bytes_of(b, arrays) for b in schedule.buffers if b.role is not Role.SCRATCH}
        clocks: list[Clock] = []

        def clock_of(session: Session) -> Clock:
            if FEATURE not in session.device.handle.features:
                raise CapabilityError(
                    f"target 'wgsl': adapter {session.device.adapter!r} has no clock that kernels can be timed by"
                )
            clocks.append(Clock(session.device.handle))
            return clocks[0]

        self._run(steps, bound, clock_of)
        return clocks[0].seconds()

    def _run(
        self, steps: Sequence[Step], bound: Mapping[str, Bytes], clock_of: Callable[[Session], Clock] | None = None
    ) -> None:
        require_own_process(NAME)  # before the lock, which a thread of the parent may have held
        names = ", ".join(dict.fromkeys(f"{step.program.name!r} ({step.program.span})" for step in steps))
        with self._lock:
            session, self._session = self._session, None
            if session is None:
                session = Session(open_device())
                self._info = _info_of(session)
            try:
                with translated(f"target 'wgsl', running {names}"):
                    session.run(steps, bound, clock=None if clock_of is None else clock_of(session))
            except DeviceLostError:
                raise
            except GpusortError:
                self._session = session
                raise
            # An interrupt leaves buffers mapped, or wgpu between two steps: the next run opens the device anew.
            self._session = session


def _info_of(session: Session) -> TargetInfo:
    device = session.device
    return TargetInfo(NAME, device.adapter, device.driver, device.limits, device.capabilities, device.is_software)


def _bytes_of(buffer: Buffer[object], arrays: Mapping[str, object]) -> Bytes:
    """The memory of the array that is given for a buffer."""
    array = arrays.get(buffer.name)
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected a NumPy array, found {type(array).__name__}")
    data = cast("npt.NDArray[np.generic]", array)
    if data.ndim != 1 or not data.flags.c_contiguous or data.nbytes != buffer.nbytes:
        raise InvalidArgumentError(
            f"arrays[{buffer.name!r}]: expected a contiguous array of one dimension and {buffer.nbytes} "
            f"bytes, found shape {data.shape} of {data.dtype}"
        )
    if buffer.role is not Role.INPUT and not data.flags.writeable:
        raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected a writable array, as {buffer.role} is")
    return data.view(np.uint8)
