"""A schedule made ready for one device: run on arrays of the host, on arrays that lie there, or recorded.

Where arrays lie on the device nothing is waited for or read back. What is recorded into a caller's command encoder runs
when the caller submits it, as often as he likes: its scratch and parameters are its own, and live as long as this does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import attrs
import numpy as np

from ...kernel.launch import Buffer, Role
from ...types.errors import CapabilityError, InvalidArgumentError
from ..base import arrays_by_name
from ..binding import Work
from ..recording import current_encoder
from .memory import Bytes, padded
from .session import OVERRUN, Dispatch, Place, Ready, Session, encode

if TYPE_CHECKING:
    import wgpu

    from .target import WgslTarget

_COPY_SRC, _COPY_DST, _STORAGE = 4, 8, 128  # WebGPU fixes the numbers of these flags
_WRITTEN = (Role.OUTPUT, Role.INOUT)
_Key: TypeAlias = tuple[tuple[int, int], ...]


class OnWebGpu(Protocol):
    """A packed array on a device of WebGPU."""

    @property
    def buffer(self) -> wgpu.GPUBuffer: ...
    @property
    def offset(self) -> int: ...  # of its first byte
    @property
    def device(self) -> wgpu.GPUDevice: ...


@attrs.frozen
class _Bound:
    """All launches, on buffers that are held here with them."""

    key: _Key
    dispatches: list[Dispatch]
    places: tuple[Place, ...]


@attrs.frozen
class _Own:
    """What lives as long as the prepared schedule does."""

    uniform: wgpu.GPUBuffer
    scratch: Mapping[str, Place]


class WgslPrepared:
    """Threads take turns, as in everything that the target does."""

    def __init__(self, target: WgslTarget, work: Work, given: tuple[Buffer[Any], ...], keeps_scratch: bool) -> None:
        self._target = target
        self._given = given
        self._steps = work.steps
        self.what = ", ".join(dict.fromkeys(f"{step.program.name!r} ({step.program.span})" for step in work.steps))
        self._keeps_scratch = keeps_scratch
        # Made for a session, and again for another, where the target had to begin anew.
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
            return
        encoder: Any = current_encoder()
        if encoder is not None:
            self.encode(encoder, memories)
        else:
            self._target.in_session(self.what, lambda session: self._run_there(session, memories))

    def encode(self, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], /) -> None:
        """Records all launches, in a compute pass of their own. Nothing is submitted, and no memory is allocated but
        by the first call."""
        self._target.in_session(self.what, lambda session: self._record(session, encoder, memories))

    @property
    def temporary_bytes(self) -> int:
        """Of scratch."""
        named = {buffer.name: buffer for step in self._steps for buffer in step.buffers}
        return sum(padded(buffer.nbytes) for buffer in named.values() if buffer.role is Role.SCRATCH)

    # -- within a session ---------------------------------------------------------------------------------

    def _made_ready(self, session: Session) -> Ready:
        if self._ready is None or self._session is not session:
            self._ready, self._session, self._own, self._bound = Ready(session, self._steps), session, None, None
        return self._ready

    def _run_there(self, session: Session, memories: Sequence[object]) -> None:
        ready = self._made_ready(session)
        if not ready.steps:
            return
        encoder = session.device.handle.create_command_encoder()
        if self._keeps_scratch:
            memory = self._record(session, encoder, memories)
            session.device.handle.queue.submit([encoder.finish()])
            return
        with session.pool.taken() as taken:
            places = self._places(session, memories)
            staged = _Staged(session, self._given, places)
            memory = {**staged.brought(encoder, taken.storage)}
            for name, buffer in ready.buffers.items():
                if name not in memory:
                    memory[name] = Place(taken.storage(padded(buffer.nbytes)))
            if ready.is_watched:
                memory[OVERRUN] = session.overrun(taken)
            encode(encoder, ready.dispatches(session.uniform(taken, ready), memory))
            staged.put_back(encoder, memory)
            if ready.is_watched:
                session.require_no_overrun(encoder, memory[OVERRUN])
            else:
                session.device.handle.queue.submit([encoder.finish()])

    def _record(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object]
    ) -> Mapping[str, Place]:
        """The same with memory that is kept. A loop that is cut short cannot be told of here."""
        ready = self._made_ready(session)
        places = self._places(session, memories)
        if not ready.steps:
            return places
        own = self._own = self._own or self._own_memory(session, ready)
        key = tuple((id(place.buffer), place.offset) for place in places.values())
        bound = self._bound
        if bound is None or bound.key != key:
            _Staged(session, self._given, places).require_none()
            dispatches = ready.dispatches(own.uniform, {**own.scratch, **places})
            bound = self._bound = _Bound(key, dispatches, tuple(places.values()))
        encode(encoder, bound.dispatches)
        return places

    def _own_memory(self, session: Session, ready: Ready) -> _Own:
        with session.pool.taken() as taken:
            scratch = {
                name: Place(taken.storage(padded(buffer.nbytes)))
                for name, buffer in ready.buffers.items()
                if buffer.role is Role.SCRATCH
            }
            if ready.is_watched:
                scratch[OVERRUN] = session.overrun(taken)
            own = _Own(session.uniform(taken, ready), scratch)
            taken.buffers.clear()  # they do not go back
        return own

    def _places(self, session: Session, memories: Sequence[object]) -> dict[str, Place]:
        return {
            buffer.name: self._place(session, buffer, memory)
            for buffer, memory in zip(self._given, memories, strict=True)
        }

    @staticmethod
    def _place(session: Session, buffer: Buffer[Any], memory: Any) -> Place:
        array: OnWebGpu = memory
        device = session.device
        if array.device is not device.handle:
            raise InvalidArgumentError(
                f"arrays[{buffer.name!r}]: expected one on {device.adapter!r} as this target has opened it, "
                "found one of another device"
            )
        offset = array.offset
        if offset + padded(buffer.nbytes) > array.buffer.size:
            raise InvalidArgumentError(
                f"arrays[{buffer.name!r}]: expected {padded(buffer.nbytes)} bytes from {offset} on, found a buffer of "
                f"{array.buffer.size}"
            )
        if not array.buffer.usage & _STORAGE:
            raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected a buffer with usage STORAGE")
        return Place(array.buffer, offset)


class _Staged:
    """Arrays that WebGPU does not let be bound where they lie: at an odd place, or in a buffer that another has too, of
    which one is written. They are copied to a buffer of their own for the time."""

    def __init__(self, session: Session, given: Sequence[Buffer[Any]], places: Mapping[str, Place]) -> None:
        self._given = {buffer.name: buffer for buffer in given}
        self._places = places
        written = {id(places[buffer.name].buffer) for buffer in given if buffer.role in _WRITTEN}
        sharers: dict[int, int] = {}
        for place in places.values():
            sharers[id(place.buffer)] = sharers.get(id(place.buffer), 0) + 1
        self._names = [
            name
            for name, place in places.items()
            if place.offset % session.device.alignment
            or (id(place.buffer) in written and sharers[id(place.buffer)] > 1)
        ]

    def require_none(self) -> None:
        for name in self._names:
            raise InvalidArgumentError(
                f"arrays[{name!r}]: to be recorded, expected a buffer of its own, or one that none is written in, "
                "and an offset that the device binds at"
            )

    def brought(self, encoder: wgpu.GPUCommandEncoder, storage: Any) -> dict[str, Place]:
        """Where everything lies, once what is copied is there."""
        memory = dict(self._places)
        for name in self._names:
            buffer, place = self._given[name], self._places[name]
            size = padded(buffer.nbytes)
            memory[name] = Place(storage(size))
            self._require_copies(name, place, buffer)
            if buffer.nbytes and _is_read(buffer):
                encoder.copy_buffer_to_buffer(place.buffer, place.offset, memory[name].buffer, 0, size)
        return memory

    def put_back(self, encoder: wgpu.GPUCommandEncoder, memory: Mapping[str, Place]) -> None:
        for name in self._names:
            buffer, place = self._given[name], self._places[name]
            if buffer.role in _WRITTEN and buffer.nbytes:
                size = padded(buffer.nbytes)
                encoder.copy_buffer_to_buffer(memory[name].buffer, 0, place.buffer, place.offset, size)

    @staticmethod
    def _require_copies(name: str, place: Place, buffer: Buffer[Any]) -> None:
        wanted = (_COPY_SRC if _is_read(buffer) else 0) | (_COPY_DST if buffer.role in _WRITTEN else 0)
        if place.offset % 4:
            raise CapabilityError(
                f"arrays[{name!r}]: WebGPU copies from places that are a multiple of 4 bytes, found {place.offset}"
            )
        if place.buffer.usage & wanted != wanted:
            raise InvalidArgumentError(
                f"arrays[{name!r}]: at this place of its buffer it must be copied to be worked on; create the buffer "
                "with usage COPY_SRC and COPY_DST"
            )


def _is_read(buffer: Buffer[Any]) -> bool:
    """Whether its bytes matter: those beside it in its last word do too."""
    return buffer.role is not Role.OUTPUT or buffer.nbytes % 4 != 0


def _are_on_host(memories: Sequence[object]) -> TypeGuard[Sequence[np.ndarray[Any, Any]]]:
    return all(isinstance(memory, np.ndarray) for memory in memories)


def _bytes_of(array: Any) -> Bytes:
    found: Bytes = array.view(np.uint8)
    return found
