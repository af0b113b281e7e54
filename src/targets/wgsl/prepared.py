"""A prepared schedule on a WebGPU device: runs on host arrays, on device buffers, or is recorded by the caller.

On device buffers a run is asynchronous: nothing is waited for or read back. Recording into the caller's command encoder
uses parameters and scratch of the prepared schedule's own, so the caller may submit later and more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs
import numpy as np

from ...forks import never_released_in_children
from ...kernel.launch import Buffer, Role, Schedule, Step
from ..base import OnStream, arrays_by_name
from ..binding import work_of
from ..recording import current_encoder
from .batch import Batch
from .buffer_ranges import are_same, buffer_ranges
from .commands import BufferRange, Group, Recorded
from .memory import Bytes, Lease, padded
from .session import OVERRUN, PreparedLaunches, Session
from .staged import staged

if TYPE_CHECKING:
    import wgpu

    from .target import WgslTarget


@attrs.define
class _Bound:
    """Bind groups for a call's arrays, cached for the next call on the same ones."""

    groups: Sequence[Group]
    ranges: tuple[BufferRange, ...]  # the caller's arrays
    memory: Mapping[str, BufferRange]  # all buffers
    next: Recorded | None = None  # a command buffer recorded ahead for the next run


class WgslPrepared:
    """Implements `Prepared` and `OnStream` (base.py). Thread-safe by the target's lock."""

    scratch_bytes = 0  # none of the caller's

    def __init__(
        self, target: WgslTarget, schedule: Schedule, given: tuple[Buffer[Any], ...], keeps_scratch: bool
    ) -> None:
        never_released_in_children(self)
        self._target = target
        self._schedule, self._work = schedule, work_of(schedule)
        self._given = given
        self.what = kernels_named(self._work.steps)
        self._keeps_scratch = keeps_scratch
        # Compiled for a session; again if the device was reopened, or Python state that kernels captured has changed.
        self._session: Session | None = None
        self._ready: PreparedLaunches | None = None
        self._parameters: BufferRange | None = None
        self._scratch: Mapping[str, BufferRange] | None = None  # if it has its own, else from the pool in each run
        self._bound: _Bound | None = None

    def run(self, memories: Sequence[object], /) -> None:
        """Host arrays hold the results when this returns; device arrays when the submitted work is done."""
        if _are_on_host(memories):
            named = arrays_by_name(self._given, memories)
            arrays: dict[str, Bytes] = {name: _bytes_of(array) for name, array in named.items()}
            self._target.in_session(self.what, lambda session: session.run(self._prepared_in(session), arrays))
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
            self._target.in_session(self.what, lambda session: self.run_on_device(session, given))

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        runs = [self, *(other for other in others if isinstance(other, WgslPrepared))]
        return Batch(runs) if len(runs) == 1 + len(others) else None

    def encode(self, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], /) -> None:
        """Records a compute pass with all launches into the caller's encoder. Submits nothing; only the first call
        allocates."""
        self._target.in_session(self.what, lambda session: self._record(session, encoder, memories))

    @property
    def num_given(self) -> int:
        return len(self._given)

    @property
    def own_bytes(self) -> int:
        """Bytes of scratch, from the pool or kept."""
        named = {buffer.name: buffer for step in self._work.steps for buffer in step.buffers}
        return sum(padded(buffer.nbytes) for buffer in named.values() if buffer.role is Role.SCRATCH)

    # -- within a session ---------------------------------------------------------------------------------

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
        self._session = self._ready = self._parameters = self._scratch = self._bound = None

    def run_on_device(self, session: Session, memories: Sequence[object]) -> None:
        ready = self._prepared_in(session)
        if not ready.steps:
            return
        commands = ready.commands
        if self._keeps_scratch:
            bound, is_known = self._bound_alive(session, ready, memories)
            recorded, bound.next = bound.next, None
            commands.submit(commands.recorded(bound.groups) if recorded is None else recorded)
            if is_known:  # a repeated call: record the next command buffer while the device works
                bound.next = commands.recorded(bound.groups)
            return
        ranges = buffer_ranges(session, self._given, memories)
        with session.pool.lease() as lease:
            if not ready.checks_overrun and staged(self._given, ranges, session.device.alignment) is None:
                commands.submit(commands.recorded(self._groups(session, ready, ranges, lease)))
                return
            encoder = session.device.handle.create_command_encoder()
            memory = self._encode_with(session, encoder, ready, ranges, lease)
            if ready.checks_overrun:
                session.require_no_overrun(encoder, memory[OVERRUN])
            else:
                session.device.handle.queue.submit([encoder.finish()])

    def encode_into(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], lease: Lease
    ) -> None:
        """Records all launches into an encoder shared with other schedules; scratch is the lease's, until it ends."""
        ready = self._prepared_in(session)
        if ready.steps and self._keeps_scratch:
            ready.commands.encode(encoder, self._bound_alive(session, ready, memories)[0].groups)
        elif ready.steps:
            self._encode_with(session, encoder, ready, buffer_ranges(session, self._given, memories), lease)

    def checks_overrun(self, session: Session) -> bool:
        """Whether loops may be cut short on this device (overrun.py), so that each run is checked, and waited for."""
        return self._prepared_in(session).checks_overrun

    def _encode_with(
        self,
        session: Session,
        encoder: wgpu.GPUCommandEncoder,
        ready: PreparedLaunches,
        ranges: dict[str, BufferRange],
        lease: Lease,
    ) -> dict[str, BufferRange]:
        """Records the launches, with copies before and after of arrays that cannot be bound in place. Returns all
        buffers."""
        copies = staged(self._given, ranges, session.device.alignment)
        memory = ranges if copies is None else copies.copied_in(encoder, lease.storage)
        if ready.checks_overrun:
            memory[OVERRUN] = session.overrun(lease)
        ready.commands.encode(encoder, self._groups(session, ready, memory, lease))
        if copies is not None:
            copies.copied_back(encoder, memory)
        return memory

    def in_session(self, work: Callable[[Session], None]) -> None:
        self._target.in_session(self.what, work)

    def _groups(
        self, session: Session, ready: PreparedLaunches, memory: dict[str, BufferRange], lease: Lease
    ) -> Sequence[Group]:
        """All bind groups, with scratch from the pool, which is added to `memory`. Not kept: they would keep
        the caller's buffers alive."""
        for name, size in ready.sizes.items():
            if name not in memory:
                memory[name] = BufferRange(lease.storage(size))
        return ready.groups(self._own_parameters(session, ready), memory)

    def _record(self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object]) -> None:
        """Records with scratch of its own. Overruns cannot be detected here: the caller submits."""
        ready = self._prepared_in(session)
        if ready.steps:
            ready.commands.encode(encoder, self._bound_to(session, ready, memories)[0].groups)
        else:
            buffer_ranges(session, self._given, memories)

    def _bound_to(self, session: Session, ready: PreparedLaunches, memories: Sequence[object]) -> tuple[_Bound, bool]:
        """Bind groups for these arrays and kept scratch, and whether they are those of the last call (a cache hit)."""
        bound = self._bound
        if bound is not None and are_same(memories, bound.ranges):
            return bound, True
        ranges = buffer_ranges(session, self._given, memories)
        copies = staged(self._given, ranges, session.device.alignment)
        if copies is not None:
            copies.refuse()
        memory = {**self._own_scratch(session, ready), **ranges}
        groups = ready.groups(self._own_parameters(session, ready), memory)
        bound = self._bound = _Bound(groups, tuple(ranges.values()), memory)
        return bound, False

    def _bound_alive(
        self, session: Session, ready: PreparedLaunches, memories: Sequence[object]
    ) -> tuple[_Bound, bool]:
        """The same for what is submitted here. Raises GPUError if a buffer was destroyed since it was bound.

        wgpu-native aborts the process if a submission uses a destroyed buffer. Making a bind group of it is a plain
        error, so on a cache hit a few are made just to check.
        """
        bound, is_known = self._bound_to(session, ready, memories)
        if is_known:
            ready.groups(self._own_parameters(session, ready), bound.memory, self._covering)
        return bound, is_known

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
            with session.pool.lease() as lease:
                self._parameters = session.parameters(lease, ready)
                lease.keep()
        return self._parameters

    def _own_scratch(self, session: Session, ready: PreparedLaunches) -> Mapping[str, BufferRange]:
        if self._scratch is None:
            with session.pool.lease() as lease:
                scratch = {
                    name: BufferRange(lease.storage(ready.sizes[name]))
                    for name, buffer in ready.buffers.items()
                    if buffer.role is Role.SCRATCH
                }
                if ready.checks_overrun:
                    scratch[OVERRUN] = session.overrun(lease)
                self._scratch = scratch
                lease.keep()
        return self._scratch


def kernels_named(steps: Sequence[Step]) -> str:
    """The kernels of these launches, as error messages name them."""
    return ", ".join(dict.fromkeys(f"{step.program.name!r} ({step.program.span})" for step in steps))


def _are_on_host(memories: Sequence[object]) -> TypeGuard[Sequence[np.ndarray[Any, Any]]]:
    return all(isinstance(memory, np.ndarray) for memory in memories)


def _bytes_of(array: Any) -> Bytes:
    found: Bytes = array.view(np.uint8)
    return found
