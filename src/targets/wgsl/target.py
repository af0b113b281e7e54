"""The target "wgsl": any adapter that WebGPU reaches, through wgpu."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...forks import require_own_process
from ...kernel.launch import Schedule, Step
from ...machine import TargetInfo
from ...types.errors import CapabilityError, DeviceLostError, GpusortError, TargetUnavailableError, UnsupportedTypeError
from ..apart import import_apart
from ..base import given_buffers
from ..binding import Work, host_arrays, work_of
from ..elsewhere import Remade, opened_by_name
from .clock import FEATURE, Clock
from .device import device_of_caller, open_device, translated
from .kernel import written
from .memory import Bytes
from .prepared import WgslPrepared
from .session import Ready, Session
from .where import LIBRARY, one_opening

if TYPE_CHECKING:
    import wgpu

NAME = "wgsl"


class WgslTarget:
    """Runs schedules on one adapter. Opens it at once, so that a target that exists is one that works; opens
    it anew when the device was lost. Threads take turns."""

    def __init__(self, handle: wgpu.GPUDevice | None = None) -> None:
        """With a device that the caller has opened, it is that one, and goes as far as it was asked to then."""
        try:
            import_apart(LIBRARY)
        except (ImportError, OSError) as error:
            raise TargetUnavailableError(f"target 'wgsl' needs wgpu: pip install wgpu ({error})") from error
        self._lock = threading.RLock()  # a signal handler may call again: it gets a session of its own
        self._handle = handle
        self._session: Session | None = self._opened()
        self._info = _info_of(self._session)

    def __reduce__(self) -> Remade:
        if self._handle is not None:
            raise UnsupportedTypeError(
                "target 'wgsl' on a device of yours belongs to this process and cannot be pickled or copied; hand over "
                "the name, 'wgsl', and open a device there"
            )
        return opened_by_name(NAME)

    @property
    def info(self) -> TargetInfo:
        require_own_process(NAME)
        return self._info

    def source(self, step: Step) -> str:
        """The WGSL of a kernel, as naga is given it."""
        return written(step.program)[1].text

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        work = work_of(schedule)
        self._run(work.steps, _memory(work, arrays))

    def run_steps(self, steps: Sequence[Step], arrays: Mapping[str, object]) -> None:
        """Runs kernels that are read already, in order."""
        require_own_process(NAME)
        work = Work.of_steps(steps)
        self._run(work.steps, _memory(work, arrays))

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule, and says how long the device was at its launches, without the way of the arrays."""
        require_own_process(NAME)
        work = work_of(schedule)
        bound = _memory(work, arrays)
        clocks: list[Clock] = []

        def clock_of(session: Session) -> Clock:
            if FEATURE not in session.device.handle.features:
                raise CapabilityError(
                    f"target 'wgsl': adapter {session.device.adapter!r} has no clock that kernels can be timed by"
                )
            clocks.append(Clock(session.device.handle))
            return clocks[0]

        self._run(work.steps, bound, clock_of)
        return clocks[0].seconds()

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> WgslPrepared:
        """For arrays of the host, and for such as lie on the device; the latter can be recorded too."""
        require_own_process(NAME)
        return WgslPrepared(self, schedule, given_buffers(schedule), keeps_scratch)

    def _run(
        self, steps: Sequence[Step], bound: Mapping[str, Bytes], clock_of: Callable[[Session], Clock] | None = None
    ) -> None:
        names = ", ".join(dict.fromkeys(f"{step.program.name!r} ({step.program.span})" for step in steps))
        self.in_session(
            names,
            lambda session: session.run(
                Ready(session, steps), bound, clock=None if clock_of is None else clock_of(session)
            ),
        )

    def in_session(self, what: str, work: Callable[[Session], object]) -> None:
        """Does something on the device, which is this thread's alone for the time."""
        require_own_process(NAME)  # before the lock, which a thread of the parent may have held
        with self._lock:
            session, self._session = self._session, None
            if session is None:
                session = self._opened()
                self._info = _info_of(session)
            try:
                with translated(f"target 'wgsl', running {what}"):
                    work(session)
            except DeviceLostError:
                raise
            except GpusortError:
                self._session = session
                raise
            # An interrupt leaves buffers mapped, or wgpu between two steps: the next run opens the device anew.
            self._session = session

    def _opened(self) -> Session:
        with one_opening():
            return Session(open_device() if self._handle is None else device_of_caller(self._handle))


@lru_cache(maxsize=8)
def target_on(handle: wgpu.GPUDevice) -> WgslTarget:
    """The target on a device of the caller's. The last few devices are kept with what was compiled for them."""
    return WgslTarget(handle)


def _info_of(session: Session) -> TargetInfo:
    device = session.device
    return TargetInfo(NAME, device.adapter, device.driver, device.limits, device.capabilities, device.is_software)


def _memory(work: Work, arrays: Mapping[str, object]) -> dict[str, Bytes]:
    """The memory of the arrays that are given. Scratch is the device's own."""
    return {name: array.view(np.uint8) for name, array in host_arrays(work, arrays).items()}
