"""A prepared schedule on a WebGPU device: runs on host arrays, on device buffers, or is recorded by the caller.

On device buffers a run is asynchronous: nothing is waited for or read back. Recording into the caller's command encoder
uses parameters and scratch of the prepared schedule's own, so the caller may submit later and more than once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

import attrs
import numpy as np

from ...forks import never_released_in_children
from ...kernel.launch import Buffer, Role, Schedule, Step
from ...types.errors import InvalidArgumentError
from ...types.specs import padded
from ..base import InTurn, OnStream, arrays_by_name
from ..binding import work_of
from ..recording import current_encoder
from .commands import BufferRange, Group, Recorded
from .memory import Bytes, Lease
from .ranges import Copies, OnWebGpu, buffer_ranges
from .session import OVERRUN, PreparedLaunches, Session

if TYPE_CHECKING:
    import wgpu

    from .target import WgslTarget

_MOST_BOUND = 6  # calls in a row write to one recycled buffer after another, of which there are five at most


class _Bound:
    """Bind groups for a call's arrays and scratch, cached for the next call on the same ones. Bind groups keep memory
    alive, also what nobody else holds any more: so they are let go of with the first array."""

    def __init__(
        self, groups: Sequence[Group], given: Sequence[BufferRange], scratch: Mapping[str, BufferRange]
    ) -> None:
        self.groups = groups
        self.is_repeated = False  # whether an earlier call was on the same ones
        self.next: Recorded | None = None  # a command buffer recorded ahead for the next run
        self._scratch = scratch
        mine = ref(self)

        def dropped(_: object) -> None:
            bound = mine()
            if bound is not None:
                bound.groups, bound.next = (), None

        self.is_cached = True
        try:
            self._given = [(ref(region.buffer, dropped), region.offset) for region in given]
        except TypeError:  # a page's own buffer, as Pyodide shows it, takes no weak reference
            self.is_cached, self._given = False, []

    def is_of(self, memories: Sequence[OnWebGpu], scratch: Mapping[str, BufferRange]) -> bool:
        """Whether these are the buffers and offsets that were checked and bound."""
        for memory, (buffer, offset) in zip(memories, self._given, strict=True):
            if memory.buffer is not buffer() or memory.offset != offset:
                return False
        return scratch is self._scratch or scratch == self._scratch


class WgslPrepared:
    """Implements `Prepared` and `OnStream` (base.py). Thread-safe by the target's lock."""

    scratch_bytes = 0  # none of the caller's

    def __init__(
        self, target: WgslTarget, schedule: Schedule, given: tuple[Buffer[Any], ...], keeps_scratch: bool
    ) -> None:
        never_released_in_children(self)
        self.target = target
        self._schedule, self._work = schedule, work_of(schedule)
        self._given, self._names = given, [buffer.name for buffer in given]
        self.what = kernels_named(self._work.steps)
        self._keeps_scratch = keeps_scratch
        # Compiled for a session; again if the device was reopened, or Python state that kernels captured has changed.
        self._session: Session | None = None
        self._ready: PreparedLaunches | None = None
        self._parameters: BufferRange | None = None
        self._scratch: Mapping[str, BufferRange] | None = None  # if it has its own, else from the pool in each run
        self._bounds: list[_Bound] = []  # the last ones

    def run(self, memories: Sequence[object], /) -> None:
        """Host arrays hold the results when this returns; device arrays when the submitted work is done."""
        if all(isinstance(memory, np.ndarray) for memory in memories):
            named = cast("dict[str, np.ndarray[Any, Any]]", arrays_by_name(self._given, memories))
            arrays: dict[str, Bytes] = {name: array.view(np.uint8) for name, array in named.items()}
            self.target.in_session(self.what, lambda session: session.run(self._prepared_in(session), arrays))
        else:
            self.run_at(memories, None, 0)

    def on_stream(self) -> OnStream:
        """Itself: a WebGPU device has one queue, and scratch comes from the session's pool."""
        return self

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        encoder: Any = current_encoder()
        if encoder is not None:
            self.encode(encoder, given)
        else:
            self.target.in_session(self.what, lambda session: self.run_on_device(session, given))

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        runs = [self, *(other for other in others if isinstance(other, WgslPrepared))]
        return _Batch(runs) if len(runs) == 1 + len(others) else None

    def encode(self, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], /) -> None:
        """Records a compute pass with all launches into the caller's encoder. Submits nothing; only the first call
        allocates. Overruns cannot be detected here."""

        def record(session: Session) -> None:
            if getattr(encoder, "_device", session.device.handle) is not session.device.handle:
                raise InvalidArgumentError("encoder: expected one of the arrays' device, found one of another device")
            ready = self._prepared_in(session)
            bound = self._bound_to(session, ready, memories, None, submits=False)
            if ready.steps and bound is not None:
                ready.commands.encode(encoder, bound.groups)

        self.target.in_session(self.what, record)

    @property
    def num_given(self) -> int:
        return len(self._given)

    @property
    def own_bytes(self) -> int:
        """Bytes of scratch, from the pool or kept."""
        named = {buffer.name: buffer for step in self._work.steps for buffer in step.buffers}
        return sum(padded(buffer.nbytes) for buffer in named.values() if buffer.role is Role.SCRATCH)

    def _prepared_in(self, session: Session) -> PreparedLaunches:
        work = work_of(self._schedule)
        if self._ready is None or self._session is not session or self._work is not work:
            self.forget()
            ready = PreparedLaunches(session, work.steps)
            session.holders.add(self)
            self._work, self._session, self._ready = work, session, ready
        return self._ready

    def forget(self) -> None:
        """Lets go of the session, and of all that was made in it."""
        self._session = self._ready = self._parameters = self._scratch = None
        self._bounds = []

    def checks_overrun(self, session: Session) -> bool:
        """Whether loops may be cut short on this device (loops.py), so that each run is checked, and waited for."""
        return self._prepared_in(session).checks_overrun and not self._keeps_scratch

    def run_on_device(self, session: Session, memories: Sequence[object]) -> None:
        ready = self._prepared_in(session)
        if not ready.steps or (self._keeps_scratch and self._submitted(session, ready, memories, None)):
            return
        with session.pool.lease() as lease:
            if not ready.checks_overrun and self._submitted(session, ready, memories, lease):
                return
            encoder = session.device.handle.create_command_encoder()
            memory = self._encode_copied(session, encoder, ready, memories, lease)
            if ready.checks_overrun:
                session.require_no_overrun(encoder, memory[OVERRUN])
            else:
                session.device.handle.queue.submit([encoder.finish()])

    def _submitted(
        self, session: Session, ready: PreparedLaunches, memories: Sequence[object], lease: Lease | None
    ) -> bool:
        """Runs on arrays that can be bound in place; False, and nothing done, if they have to be copied."""
        commands = ready.commands
        bound = self._bound_to(session, ready, memories, lease, submits=True)
        if bound is None:
            return False
        recorded, bound.next = bound.next, None
        commands.submit(commands.recorded(bound.groups) if recorded is None else recorded)
        if bound.is_repeated:  # record the next command buffer while the device works
            bound.next = commands.recorded(bound.groups)
        return True

    def encode_into(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], lease: Lease
    ) -> None:
        """Records all launches into an encoder shared with other schedules; scratch is the lease's, until it ends."""
        ready = self._prepared_in(session)
        if ready.steps:
            mine = None if self._keeps_scratch else lease
            bound = self._bound_to(session, ready, memories, mine, submits=True)
            if bound is None:
                self._encode_copied(session, encoder, ready, memories, lease)
            else:
                ready.commands.encode(encoder, bound.groups)

    def _encode_copied(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, ready: PreparedLaunches, memories: Sequence[object],
        lease: Lease,
    ) -> Mapping[str, BufferRange]:  # fmt: skip
        """Records the launches, with copies before and after of arrays that cannot be bound in place. Returns all
        buffers."""
        memory = buffer_ranges(session, self._given, memories)
        copies = Copies.needed(session.device, self._given, memory)
        if copies is not None:
            memory = copies.copied_in(encoder, lease.storage)
        memory |= session.memory(lease, ready, ready.scratch)
        ready.commands.encode(encoder, ready.groups(self._own_parameters(session, ready), memory))
        if copies is not None:
            copies.copied_back(encoder, memory)
        return memory

    def _bound_to(
        self, session: Session, ready: PreparedLaunches, memories: Sequence[object], lease: Lease | None, *,
        submits: bool,
    ) -> _Bound | None:  # fmt: skip
        """Bind groups for these arrays. Scratch is of the lease, or without one the schedule's own. If the caller of
        this `submits`, arrays that were destroyed raise GPUError, and it is None if some have to be copied; else those
        raise InvalidArgumentError."""
        arrays = cast("Sequence[OnWebGpu]", memories)
        scratch = self._own_scratch(session, ready) if lease is None else session.memory(lease, ready, ready.scratch)
        parameters = self._own_parameters(session, ready)
        for bound in self._bounds:
            if bound.is_of(arrays, scratch):
                if submits:
                    # wgpu-native aborts the process if a submission uses a destroyed buffer. Making a bind group of it
                    # is a plain error, so a few are made just to check.
                    given = zip(self._names, [BufferRange(x.buffer, x.offset) for x in arrays], strict=True)
                    ready.groups(parameters, {**scratch, **dict(given)}, self._covering)
                bound.is_repeated = True
                return bound
        ranges = buffer_ranges(session, self._given, memories)
        copies = Copies.needed(session.device, self._given, ranges)
        if copies is not None:
            return None if submits else copies.refuse()
        groups = ready.groups(parameters, {**scratch, **ranges})
        bound = _Bound(groups, [*ranges.values()], scratch)
        if bound.is_cached:
            self._bounds = [bound, *self._bounds[: _MOST_BOUND - 1]]
        return bound

    @cached_property
    def _covering(self) -> Sequence[int]:
        """A few bindings that together hold all of the caller's buffers (greedy set cover)."""
        names = [set(binding.names) for binding in self._ready.bindings] if self._ready is not None else []
        left = {buffer.name for buffer in self._given} & set[str]().union(*names)
        numbers: list[int] = []
        while left:
            numbers.append(max(range(len(names)), key=lambda number: len(names[number] & left)))
            left -= names[numbers[-1]]
        return numbers

    def _own_parameters(self, session: Session, ready: PreparedLaunches) -> BufferRange:
        """The parameters of all launches, uploaded once."""
        if self._parameters is None:
            self._parameters = session.parameters(session.pool.lease(), ready)
        return self._parameters

    def _own_scratch(self, session: Session, ready: PreparedLaunches) -> Mapping[str, BufferRange]:
        if self._scratch is None:
            self._scratch = session.memory(session.pool.lease(), ready, ready.scratch)
        return self._scratch


@attrs.frozen(eq=False)
class _Batch(InTurn):
    """Schedules recorded into one command buffer; one by one if a caller records or loops are checked for overrun."""

    runs: Sequence[WgslPrepared]

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        if current_encoder() is not None:
            super().run_at(given, scratch, stream)
            return
        parts = list(zip(self.runs, self.parts(given), strict=True))

        def submit(session: Session) -> None:
            if any(run.checks_overrun(session) for run in self.runs):
                for run, memories in parts:
                    run.run_on_device(session, memories)
                return
            with session.pool.lease() as lease:
                encoder = session.device.handle.create_command_encoder()
                for run, memories in parts:
                    run.encode_into(session, encoder, memories, lease)
                session.device.handle.queue.submit([encoder.finish()])

        self.runs[0].target.in_session(self.runs[0].what, submit)


def kernels_named(steps: Sequence[Step]) -> str:
    """The kernels of these launches, as error messages name them."""
    return ", ".join(dict.fromkeys(f"{step.program.name!r} ({step.program.span})" for step in steps))
