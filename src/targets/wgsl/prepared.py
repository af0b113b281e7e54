"""A prepared schedule on a WebGPU device: runs on host arrays, on device buffers, or is recorded by the caller.

On device buffers a run is asynchronous: nothing is waited for or read back. Recording into the caller's command encoder
uses parameters and scratch of the prepared schedule's own, so the caller may submit later and more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from ...forks import never_released_in_children
from ...kernel.launch import Buffer, Role, Schedule, Step
from ...types.errors import InvalidArgumentError
from ...types.specs import padded
from ..base import HostArray, InTurn, OnStream, arrays_by_name
from ..binding import work_of
from ..recording import current_encoder
from .launches import PreparedLaunches

if TYPE_CHECKING:
    from .session import Session
    from .target import WgslTarget


class WgslPrepared:
    """Implements `Prepared` and `OnStream` (base.py). Thread-safe by the target's lock."""

    scratch_bytes = 0  # none of the caller's

    def __init__(
        self, target: WgslTarget, schedule: Schedule, given: tuple[Buffer[Any], ...], keeps_scratch: bool
    ) -> None:
        never_released_in_children(self)
        self.target = target
        self._schedule, self._work = schedule, work_of(schedule)
        self._given, self._keeps_scratch = given, keeps_scratch
        self.what = kernels_named(self._work.steps)
        self._ready: PreparedLaunches | None = None

    def run(self, memories: Sequence[object], /) -> None:
        """Host arrays hold the results when this returns; device arrays when the submitted work is done."""
        if all(isinstance(memory, np.ndarray) for memory in memories):
            arrays = cast("dict[str, HostArray]", arrays_by_name(self._given, memories))
            self.target.in_session(self.what, lambda session: self.prepared_in(session).run(arrays))
        else:
            self.run_at(memories, None, 0)

    def on_stream(self) -> OnStream:
        """Itself: a WebGPU device has one queue, and scratch comes from the session's pool."""
        return self

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        """Where the caller records, a compute pass with all launches goes into that encoder: nothing is submitted, only
        the first call allocates, and overruns cannot be detected."""
        encoder: Any = current_encoder()

        def run(session: Session) -> None:
            if encoder is None:
                self.prepared_in(session).run_on_device(given)
                return
            if getattr(encoder, "_device", session.device.handle) is not session.device.handle:
                raise InvalidArgumentError("encoder: expected one of the arrays' device, found one of another device")
            self.prepared_in(session).record(encoder, given)

        self.target.in_session(self.what, run)

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        runs = [self, *(other for other in others if isinstance(other, WgslPrepared))]
        return _Batch(runs) if len(runs) == 1 + len(others) else None

    @property
    def num_given(self) -> int:
        return len(self._given)

    @property
    def own_bytes(self) -> int:
        """Bytes of scratch, from the pool or kept."""
        named = {buffer.name: buffer for step in self._work.steps for buffer in step.buffers.values()}
        return sum(padded(buffer.nbytes) for buffer in named.values() if buffer.role is Role.SCRATCH)

    def prepared_in(self, session: Session) -> PreparedLaunches:
        """Compiled for a session; again if the device was reopened, or Python state that kernels captured has
        changed."""
        work = work_of(self._schedule)
        if self._ready is None or self._ready.session is not session or self._work is not work:
            self.forget()
            self._work, self._ready = work, PreparedLaunches(session, work.steps, self._given, self._keeps_scratch)
            session.holders.add(self)
        return self._ready

    def forget(self) -> None:
        """Lets go of the session, and of all that was made in it."""
        self._ready = None


@attrs.frozen(eq=False)
class _Batch(InTurn):
    """Schedules recorded into one command buffer; one by one if a caller records or loops are checked for overrun."""

    runs: Sequence[WgslPrepared]

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        if current_encoder() is not None:
            super().run_at(given, scratch, stream)
            return

        def submit(session: Session) -> None:
            ready = [run.prepared_in(session) for run in self.runs]
            parts = list(zip(ready, self.parts(given), strict=True))
            if any(launches.checks_overrun for launches in ready):
                for launches, memories in parts:
                    launches.run_on_device(memories)
                return
            with session.pool.lease() as lease:
                encoder = session.device.handle.create_command_encoder()
                for launches, memories in parts:
                    launches.record(encoder, memories, lease)
                session.device.handle.queue.submit([encoder.finish()])

        self.runs[0].target.in_session(self.runs[0].what, submit)


def kernels_named(steps: Sequence[Step]) -> str:
    """The kernels of these launches, as error messages name them."""
    return ", ".join(dict.fromkeys(f"{step.program.name!r} ({step.program.span})" for step in steps))
