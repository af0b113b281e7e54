"""A schedule made ready for one device: run on arrays of the host, on arrays that lie there, or recorded.

Where arrays lie on the device nothing is waited for or read back. What is recorded into a caller's command encoder runs
when the caller submits it, as often as he likes: its scratch and parameters are its own, and live as long as this does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs
import numpy as np

from ...forks import never_released_in_children
from ...kernel.launch import Buffer, Role, Schedule
from ..base import OnStream, arrays_by_name
from ..binding import work_of
from ..recording import current_encoder
from .commands import Group, Place, Recorded
from .memory import Bytes, Taken, padded
from .places import are_at, places_of
from .session import OVERRUN, Ready, Session
from .staged import staged
from .together import Together

if TYPE_CHECKING:
    import wgpu

    from .target import WgslTarget


@attrs.define
class _Bound:
    """All launches, on buffers that are held here with them."""

    groups: Sequence[Group]
    places: tuple[Place, ...]  # of the caller's arrays
    memory: Mapping[str, Place]  # everything
    next: Recorded | None = None  # the commands of the next run on them


@attrs.define
class _Own:
    """What lives as long as the prepared schedule does."""

    parameters: Place
    scratch: Mapping[str, Place] | None = None  # where no other run has it meanwhile
    # What the last run was lent, and the bindings of that alone, by their numbers.
    lent: list[wgpu.GPUBuffer] = attrs.field(factory=list["wgpu.GPUBuffer"])
    shared: dict[int, Group] = attrs.field(factory=dict[int, Group])


class WgslPrepared:
    """Threads take turns, as in everything that the target does."""

    scratch_bytes = 0  # of the caller's

    def __init__(
        self, target: WgslTarget, schedule: Schedule, given: tuple[Buffer[Any], ...], keeps_scratch: bool
    ) -> None:
        never_released_in_children(self)
        self._target = target
        self._schedule, self._work = schedule, work_of(schedule)
        self._given = given
        programs = [step.program for step in self._work.steps]
        self.what = ", ".join(dict.fromkeys(f"{program.name!r} ({program.span})" for program in programs))
        self._keeps_scratch = keeps_scratch
        # Made for a session, and again for another, where the target had to begin anew; and where what kernels took
        # from outside has changed.
        self._session: Session | None = None
        self._ready: Ready | None = None
        self._own: _Own | None = None
        self._bound: _Bound | None = None

    def run(self, memories: Sequence[object], /) -> None:
        """Arrays of the host hold the results when this returns; those on the device when what is submitted is done."""
        if _are_on_host(memories):
            named = arrays_by_name(self._given, memories)
            arrays: dict[str, Bytes] = {name: _bytes_of(array) for name, array in named.items()}
            self._target.in_session(self.what, lambda session: session.run(self._made_ready(session), arrays))
        else:
            self.run_at(memories, None, 0)

    def on_stream(self) -> OnStream:
        """Itself: a device has one queue, and scratch is the session's."""
        return self

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        encoder: Any = current_encoder()
        if encoder is not None:
            self.encode(encoder, given)
        else:
            self._target.in_session(self.what, lambda session: self.run_there(session, given))

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        runs = [self, *(other for other in others if isinstance(other, WgslPrepared))]
        return Together(runs) if len(runs) == 1 + len(others) else None

    def encode(self, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], /) -> None:
        """Records all launches, in a compute pass of their own. Nothing is submitted, and no memory is allocated but
        by the first call."""
        self._target.in_session(self.what, lambda session: self._record(session, encoder, memories))

    @property
    def num_given(self) -> int:
        return len(self._given)

    @property
    def own_bytes(self) -> int:
        """Of scratch."""
        named = {buffer.name: buffer for step in self._work.steps for buffer in step.buffers}
        return sum(padded(buffer.nbytes) for buffer in named.values() if buffer.role is Role.SCRATCH)

    # -- within a session ---------------------------------------------------------------------------------

    def _made_ready(self, session: Session) -> Ready:
        work = work_of(self._schedule)
        if self._ready is None or self._session is not session or self._work is not work:
            self._work, self._session, self._own, self._bound = work, session, None, None
            self._ready = Ready(session, work.steps)
        return self._ready

    def run_there(self, session: Session, memories: Sequence[object]) -> None:
        ready = self._made_ready(session)
        if not ready.steps:
            return
        commands = ready.commands
        if self._keeps_scratch:
            bound, is_known = self._bound_alive(session, ready, memories)
            recorded, bound.next = bound.next, None
            commands.submit(commands.recorded(bound.groups) if recorded is None else recorded)
            if is_known:  # they come again: while the device works, the host records what it can submit once only
                bound.next = commands.recorded(bound.groups)
            return
        places = places_of(session, self._given, memories)
        with session.pool.taken() as taken:
            if not ready.is_watched and staged(self._given, places, session.device.alignment) is None:
                commands.submit(commands.recorded(self._groups(session, ready, places, taken)))
                return
            encoder = session.device.handle.create_command_encoder()
            memory = self._encode_with(session, encoder, ready, places, taken)
            if ready.is_watched:
                session.require_no_overrun(encoder, memory[OVERRUN])
            else:
                session.device.handle.queue.submit([encoder.finish()])

    def encode_among(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], taken: Taken
    ) -> None:
        """Records all launches among those of others, with scratch that is there until all of them are submitted."""
        ready = self._made_ready(session)
        if ready.steps and self._keeps_scratch:
            ready.commands.encode(encoder, self._bound_alive(session, ready, memories)[0].groups)
        elif ready.steps:
            self._encode_with(session, encoder, ready, places_of(session, self._given, memories), taken)

    def is_watched(self, session: Session) -> bool:
        """Whether loops may be cut short on this device, so that each run is waited for."""
        return self._made_ready(session).is_watched

    def _encode_with(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, ready: Ready, places: dict[str, Place], taken: Taken
    ) -> dict[str, Place]:
        """What cannot be bound where it lies is copied before and after. Gives where everything lies."""
        copies = staged(self._given, places, session.device.alignment)
        memory = places if copies is None else copies.brought(encoder, taken.storage)
        if ready.is_watched:
            memory[OVERRUN] = session.overrun(taken)
        ready.commands.encode(encoder, self._groups(session, ready, memory, taken))
        if copies is not None:
            copies.put_back(encoder, memory)
        return memory

    def in_session(self, work: Callable[[Session], None]) -> None:
        self._target.in_session(self.what, work)

    def _groups(self, session: Session, ready: Ready, memory: dict[str, Place], taken: Taken) -> Sequence[Group]:
        """Every binding, with scratch that is there for this run. Parameters are kept, and so are bindings of scratch
        alone, which mostly is what it was the last time; others would keep the caller's memory."""
        own = self._own_parameters(session, ready)
        lent: list[wgpu.GPUBuffer] = []
        for name, size in ready.sizes.items():
            if name not in memory:
                buffer = taken.storage(size)
                memory[name] = Place(buffer)
                lent.append(buffer)
        if own.lent != lent:
            numbers = self._of_scratch_alone(ready)
            made = ready.groups(own.parameters, memory, numbers)
            own.lent, own.shared = lent, dict(zip(numbers, made, strict=True))
        groups: list[Group | None] = [own.shared.get(number) for number in range(len(ready.bindings))]
        others = [number for number, group in enumerate(groups) if group is None]
        for number, group in zip(others, ready.groups(own.parameters, memory, others), strict=True):
            groups[number] = group
        return groups

    def _of_scratch_alone(self, ready: Ready) -> list[int]:
        """The bindings that hold nothing of the caller's."""
        scratch = {name for name, buffer in ready.buffers.items() if buffer.role is Role.SCRATCH}
        return [number for number, binding in enumerate(ready.bindings) if scratch.issuperset(binding.names)]

    def _record(self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object]) -> None:
        """With memory that is kept. A loop that is cut short cannot be told of here."""
        ready = self._made_ready(session)
        if ready.steps:
            ready.commands.encode(encoder, self._bound_to(session, ready, memories)[0].groups)
        else:
            places_of(session, self._given, memories)

    def _bound_to(self, session: Session, ready: Ready, memories: Sequence[object]) -> tuple[_Bound, bool]:
        """All launches on these arrays and memory that is kept, and whether they were so bound the last time."""
        bound = self._bound
        if bound is not None and are_at(memories, bound.places):
            return bound, True
        places = places_of(session, self._given, memories)
        copies = staged(self._given, places, session.device.alignment)
        if copies is not None:
            copies.refuse()
        own = self._own_parameters(session, ready)
        memory = {**self._own_scratch(session, ready, own), **places}
        groups = ready.groups(own.parameters, memory)
        bound = self._bound = _Bound(groups, tuple(places.values()), memory)
        return bound, False

    def _bound_alive(self, session: Session, ready: Ready, memories: Sequence[object]) -> tuple[_Bound, bool]:
        """The same for what is submitted here. Raises where a buffer was destroyed since it was bound: wgpu's library
        ends the process if it finds one in what is submitted; in a new binding it says so."""
        bound, is_known = self._bound_to(session, ready, memories)
        if is_known:
            ready.groups(self._own_parameters(session, ready).parameters, bound.memory, self._covering)
        return bound, is_known

    @cached_property
    def _covering(self) -> Sequence[int]:
        """Bindings in which all of the caller's arrays are that kernels use, few."""
        names = [set(binding.names) for binding in self._ready.bindings] if self._ready is not None else []
        left = {buffer.name for buffer in self._given} & set[str]().union(*names)
        numbers: list[int] = []
        while left:
            numbers.append(max(range(len(names)), key=lambda number: len(names[number] & left)))
            left -= names[numbers[-1]]
        return numbers

    def _own_parameters(self, session: Session, ready: Ready) -> _Own:
        own = self._own
        if own is None:
            with session.pool.taken() as taken:
                own = self._own = _Own(session.parameters(taken, ready))
                taken.keep()
        return own

    def _own_scratch(self, session: Session, ready: Ready, own: _Own) -> Mapping[str, Place]:
        if own.scratch is None:
            with session.pool.taken() as taken:
                scratch = {
                    name: Place(taken.storage(ready.sizes[name]))
                    for name, buffer in ready.buffers.items()
                    if buffer.role is Role.SCRATCH
                }
                if ready.is_watched:
                    scratch[OVERRUN] = session.overrun(taken)
                own.scratch = scratch
                taken.keep()
        return own.scratch


def _are_on_host(memories: Sequence[object]) -> TypeGuard[Sequence[np.ndarray[Any, Any]]]:
    return all(isinstance(memory, np.ndarray) for memory in memories)


def _bytes_of(array: Any) -> Bytes:
    found: Bytes = array.view(np.uint8)
    return found
