"""The target "wgsl": kernels as WGSL on any adapter that WebGPU reaches, through wgpu."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from ...forks import require_own_process, require_running
from ...kernel.launch import Schedule
from ...machine import TargetInfo
from ...types.errors import CapabilityError, DeviceLostError, GpusortError, TargetUnavailableError, UnsupportedTypeError
from ..base import given_buffers
from ..binding import host_arrays, work_of
from ..registry import Reduced, reduce_to_name
from ..uninterrupted import import_uninterrupted, run_uninterrupted
from .commands import Clock
from .device import TIMESTAMPS, device_of_caller, open_device
from .errors import translated_errors
from .launches import PreparedLaunches
from .prepared import WgslPrepared, kernels_named
from .runtime import LIBRARY, exclusive_use, one_opening, wgpu
from .session import Session

_T = TypeVar("_T")

NAME = "wgsl"


class WgslTarget:
    """Runs schedules on one adapter. The device is opened in the constructor, and again after it was lost. Thread-safe:
    one thread at a time uses the device."""

    def __init__(self, handle: wgpu.GPUDevice | None = None) -> None:
        """`handle` is a device of the caller's to use, with its features and limits; else one is opened."""
        require_running(NAME)
        try:
            import_uninterrupted(LIBRARY)
        except (ImportError, OSError) as error:
            raise TargetUnavailableError(f"target 'wgsl' needs wgpu: pip install wgpu ({error})") from error
        self._lock = exclusive_use()
        self._handle = handle
        session = self._opened()
        self._session: Session | None = session
        self._info = session.device.info

    def __reduce__(self) -> Reduced:
        if self._handle is not None:
            raise UnsupportedTypeError(
                "target 'wgsl' on a device of yours belongs to this process and cannot be pickled or copied; hand over "
                "the name, 'wgsl', and open a device there"
            )
        return reduce_to_name(NAME)

    @property
    def info(self) -> TargetInfo:
        require_own_process(NAME)
        return self._info

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        work = work_of(schedule)
        bound = host_arrays(work, arrays)
        self.in_session(kernels_named(work.steps), lambda session: PreparedLaunches(session, work.steps).run(bound))

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule; returns the device time of its launches, without transfers. Raises CapabilityError on an
        adapter without timestamp queries."""
        require_own_process(NAME)
        work = work_of(schedule)
        bound = host_arrays(work, arrays)

        def timed(session: Session) -> float:
            if TIMESTAMPS not in session.device.handle.features:
                adapter = session.device.info.adapter
                raise CapabilityError(f"target 'wgsl': adapter {adapter!r} has no timestamp queries to time kernels by")
            clock = Clock(session.device.handle)
            PreparedLaunches(session, work.steps).run(bound, clock)
            return clock.seconds()

        return self.in_session(kernels_named(work.steps), timed)

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> WgslPrepared:
        """Prepares a schedule for host arrays, for device buffers, and for recording."""
        require_own_process(NAME)
        return WgslPrepared(self, schedule, given_buffers(schedule), keeps_scratch)

    def in_session(self, what: str, work: Callable[[Session], _T]) -> _T:
        """Calls `work` with exclusive use of the session; returns its result. Reopens the device after a loss or an
        interrupt."""
        require_own_process(NAME)  # first, as in a forked child the lock may be held by a thread that does not exist
        require_running(NAME)
        with self._lock:
            session, self._session = self._session, None
            if session is None:
                session = self._opened()
                self._info = session.device.info
            is_whole = False
            try:
                with translated_errors(f"target 'wgsl', running {what}"):
                    found = work(session)
                is_whole = True
                return found
            except GpusortError as error:
                is_whole = not isinstance(error, DeviceLostError)
                raise
            finally:
                # Given up after other exceptions: an interrupt may leave a buffer mapped, or wgpu half way. And of two
                # sessions that of a signal handler, which has run meanwhile.
                kept, given_up = (session, self._session) if is_whole else (self._session, session)
                self._session = kept
                if given_up is not None:
                    given_up.give_up()

    def _opened(self) -> Session:
        """Opens a device. Not in the main thread: wgpu's callbacks swallow what a signal handler raises in them, and
        then find no device; and a thread of wgpu's whose start is interrupted stays."""

        def open_() -> Session:
            with one_opening():
                return Session(open_device() if self._handle is None else device_of_caller(self._handle))

        return run_uninterrupted(open_)


@lru_cache(maxsize=8)
def target_on(handle: wgpu.GPUDevice) -> WgslTarget:
    """The target on a device of the caller's. The last 8 are cached, with their compiled kernels."""
    return WgslTarget(handle)
