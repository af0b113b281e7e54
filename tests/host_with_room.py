"""A target whose memory is the host's, and as little as one says: arrays travel there in pieces as they do to a card.

The simulator runs the kernels. What is handed to them must lie in memory that was asked for, and no more of that may be
asked for than there is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np

from gpusort.kernel.launch import Role, Schedule
from gpusort.machine import TargetInfo
from gpusort.targets.base import Copies, OnStream, arrays_by_name, given_buffers
from gpusort.targets.simulator.target import Simulator
from gpusort.types.errors import DeviceMemoryError
from gpusort.types.specs import HostArray

_APART = 256


class HostRoom:
    """As much memory as was asked for, of any bits."""

    alignment = _APART

    def __init__(self, nbytes: int, fails_at: int) -> None:
        self._memory = np.full(nbytes + _APART, 0xCD, np.uint8)
        self.address = -(-self._memory.ctypes.data // _APART) * _APART
        self._end = self.address + nbytes
        self.works, self._fails_at = 0, fails_at
        self.uploaded = self.downloaded = 0

    def at(self, address: int, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        assert self.address <= address <= address + nbytes <= self._end, "memory that was asked for"
        first = address - self._memory.ctypes.data
        return self._memory[first : first + nbytes]

    def upload(self, copies: Copies, later: Sequence[HostArray], /) -> None:
        for address, array in copies:
            self.at(address, array.nbytes)[:] = array.view(np.uint8)
            self.uploaded += array.nbytes
        for array in later:
            array.view(np.uint8)[...] = 0xAB

    def work(self, run: Callable[[int], object], upload: object, /) -> None:
        self.works += 1
        if self.works == self._fails_at:
            raise RuntimeError("the device stopped working")
        run(1)

    def download(self, copies: Copies, /) -> None:
        for address, array in copies:
            array.view(np.uint8)[...] = self.at(address, array.nbytes)
            self.downloaded += array.nbytes

    @contextmanager
    def host_memory(self, nbytes: int, /) -> Generator[np.ndarray[Any, np.dtype[np.uint8]]]:
        yield np.full(nbytes, 0xCD, np.uint8)


@attrs.frozen(eq=False)
class _Run:
    """A schedule at addresses in the room."""

    target: HostWithRoom
    schedule: Schedule

    own_bytes = 0

    def run(self, memories: Sequence[object], /) -> None:
        """Of arrays on the host, all at once."""
        self.target.run(self.schedule, arrays_by_name(given_buffers(self.schedule), memories))

    def on_stream(self) -> OnStream:
        return self

    @property
    def num_given(self) -> int:
        return len(given_buffers(self.schedule))

    @property
    def scratch_bytes(self) -> int:
        return sum(
            -(-buffer.nbytes // _APART) * _APART for buffer in self.schedule.buffers if buffer.role is Role.SCRATCH
        )

    def run_at(self, given: Sequence[Any], scratch: Any, stream: int, /) -> None:
        room = self.target.rooms[-1]
        if self.scratch_bytes:
            room.at(scratch, self.scratch_bytes)[:] = 0xEF
        named: dict[str, object] = {
            buffer.name: room.at(address, buffer.nbytes).view(buffer.dtype)
            for buffer, address in zip(given_buffers(self.schedule), given, strict=True)
        }
        self.target.inner.run(self.schedule, named)

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        return None


@attrs.define(eq=False)
class HostWithRoom:
    """The target."""

    free: int
    inner: Simulator = attrs.field(factory=Simulator)
    rooms: list[HostRoom] = attrs.field(factory=list[HostRoom])
    whole: int = 0  # schedules that were run on host arrays at once
    fails_at: int = -1

    @property
    def info(self) -> TargetInfo:
        return self.inner.info

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        if sum(buffer.nbytes for buffer in schedule.buffers) > self.free:
            raise DeviceMemoryError("what a card says deep inside")
        self.whole += 1
        self.inner.run(schedule, arrays)

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> _Run:
        return _Run(self, schedule)

    def free_bytes(self) -> int:
        return self.free

    @contextmanager
    def room(self, nbytes: int, /) -> Generator[HostRoom]:
        assert nbytes <= self.free, "no more than there is"
        self.free -= nbytes
        self.rooms.append(HostRoom(nbytes, self.fails_at))
        try:
            yield self.rooms[-1]
        finally:
            self.free += nbytes
