"""What a target is: something that runs schedules, and says what it can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

import attrs
import numpy as np

from ..machine import TargetInfo
from ..types.errors import CapabilityError

if TYPE_CHECKING:
    from ..algos.host_sort import HostSortPolicy
    from ..algos.rules import SortRule
    from ..kernel.launch import Buffer, Schedule, Step
    from ..operations.base import Operation
    from ..types.monoids import Monoid
    from ..types.specs import Spec

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Elements: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]


class Target(Protocol):
    """An adapter to one machine. Safe to use from several threads."""

    @property
    def info(self) -> TargetInfo: ...

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Run all launches. `arrays` holds, by buffer name, an array for each buffer that is not SCRATCH: NumPy's
        (contiguous, one-dimensional, of the element's dtype), or the target's own kind. OUTPUT and INOUT arrays hold
        the result when this returns (for arrays on a device: when the work on the current stream is done). binding.py
        checks all of that, for all targets alike.
        """
        ...

    def source(self, step: Step) -> str:
        """The text generated for a kernel, as `gpusort show` prints it."""
        ...


class Prepared(Protocol):
    """A schedule made ready: kernels loaded, scratch known, all that does not depend on where arrays lie."""

    def run(self, memories: Sequence[object], /) -> None:
        """Run all launches, on one array for each buffer that is not SCRATCH, in the schedule's order: packed, with at
        least the buffer's bytes, of any shape and dtype; NumPy's, or the target's own kind."""
        ...


class OnStream(Protocol):
    """A schedule made ready for a device whose memory has addresses and whose work goes to streams."""

    @property
    def num_given(self) -> int:
        """How many addresses it takes."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """Which the caller brings."""
        ...

    @property
    def own_bytes(self) -> int:
        """Of scratch that it brings itself."""
        ...

    def run_at(self, given: Sequence[Any], scratch: Any, stream: int, /) -> None:
        """Run all launches, without waiting, on a stream of the device, which is the current one: on memory for each
        buffer that is not SCRATCH, in the schedule's order, and on scratch that is this run's alone."""
        ...

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        """This and others of the same target and device, one after another in one run: it is given what all of them
        are given, in turn. None where they are to be run one by one."""
        ...


@runtime_checkable
class RunsOnStreams(Protocol):
    """Something prepared that takes addresses and a stream."""

    def on_stream(self) -> OnStream:
        """For the current device."""
        ...


@attrs.frozen(eq=False)
class InTurn:
    """Runs, one by one."""

    runs: Sequence[OnStream]

    @property
    def num_given(self) -> int:
        return sum(run.num_given for run in self.runs)

    @property
    def scratch_bytes(self) -> int:
        return max(run.scratch_bytes for run in self.runs)

    @property
    def own_bytes(self) -> int:
        return sum(run.own_bytes for run in self.runs)

    def run_at(self, given: Sequence[Any], scratch: Any, stream: int, /) -> None:
        first = 0
        for run in self.runs:
            run.run_at(given[first : first + run.num_given], scratch, stream)
            first += run.num_given

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        return None


def in_one_run(prepared: Sequence[Prepared]) -> OnStream:
    """What was prepared for one device, the current one, to be run in order."""
    runs = [one.on_stream() for one in prepared if isinstance(one, RunsOnStreams)]
    if len(runs) < len(prepared):
        raise CapabilityError("target: expected one that works where arrays lie")
    if len(runs) == 1:
        return runs[0]
    return runs[0].followed_by(runs[1:]) or InTurn(runs)


@runtime_checkable
class Prepares(Protocol):
    """A target that keeps what it makes of a schedule. Others are asked to run it each time."""

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> Prepared: ...


@attrs.frozen(eq=False)
class _RunEachTime:
    """What any target can do."""

    target: Target
    schedule: Schedule
    buffers: tuple[Buffer[Any], ...]

    def run(self, memories: Sequence[object], /) -> None:
        self.target.run(self.schedule, arrays_by_name(self.buffers, memories))


def arrays_by_name(buffers: Sequence[Buffer[Any]], memories: Sequence[object]) -> dict[str, object]:
    """Arrays as `run` takes them, of such as `Prepared` takes: flat, with the elements of their buffers."""
    named: dict[str, object] = {}
    for buffer, memory in zip(buffers, memories, strict=True):
        array = cast(HostArray, memory)  # or one that has the same methods
        flat = array if len(array.shape) == 1 else array.reshape(-1)
        seen = flat if flat.dtype == buffer.dtype else flat.view(buffer.dtype)
        named[buffer.name] = seen if seen.shape[0] == buffer.count else seen[: buffer.count]
    return named


def given_buffers(schedule: Schedule) -> tuple[Buffer[Any], ...]:
    """Those that the caller brings."""
    from ..kernel.launch import Role

    return tuple(buffer for buffer in schedule.buffers if buffer.role is not Role.SCRATCH)


def prepared_by(target: Target, schedule: Schedule, keeps_scratch: bool = False) -> Prepared:
    """What the target makes of a schedule. It may keep scratch for one caller alone: a run then allocates nothing."""
    if isinstance(target, Prepares):
        return target.prepare(schedule, keeps_scratch=keeps_scratch)
    return _RunEachTime(target, schedule, given_buffers(schedule))


class Native(Protocol):
    """A target's own way to do an operation on NumPy arrays of one signature, of any shape but without elements."""

    def __call__(self, x: HostArray, /, *others: HostArray) -> Any:
        """New results: an array, a scalar where NumPy gives one, or a tuple of several."""
        ...


@runtime_checkable
class WritesInto(Protocol):
    """A native way that needs no new results to write into arrays that are there."""

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray], /) -> None:
        """They lie apart from the inputs, or where an input lies. In place, an exception leaves its elements there, in
        some order."""
        ...


@runtime_checkable
class WritesShort(Protocol):
    """A native way that looks itself whether a short array can be written to one that is there: nothing else is asked
    in front of it."""

    @property
    def into_short(self) -> Callable[[HostArray, HostArray], bool] | None:
        """From an array into itself or another. False, and nothing done, where all ought to be looked at."""
        ...


@runtime_checkable
class IsFunction(Protocol):
    """A native way to which a warm call goes straight: it takes arrays of all shapes that its signature allows, those
    without elements too."""

    @property
    def function(self) -> Callable[..., object]: ...


@runtime_checkable
class IsForFew(Protocol):
    """A native way for short arrays: kernels are as fast for longer ones."""

    @property
    def most(self) -> int:
        """Elements of all its arrays."""
        ...


@runtime_checkable
class HasNative(Protocol):
    """A target with ways of its own on host arrays, faster than a schedule of kernels."""

    def native(self, operation: Operation, given: Sequence[Spec], /) -> Native | None:
        """Its way for arrays of these dtypes and numbers of dimensions; None where kernels are to run."""
        ...


@runtime_checkable
class DeviceTimer(Protocol):
    """A target with a clock on its device."""

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule on arrays of the host, and says how long the device was at its launches alone."""
        ...


@runtime_checkable
class TunesItself(Protocol):
    """A target with sizes of its own to measure, from which on it takes one way and not another."""

    def tune(self, largest: int, tell: Callable[[str], object], /) -> Sequence[SortRule]:
        """Measures on arrays no longer than that, goes by it, and gives back what is to be kept."""
        ...

    def read_tuning(self) -> None:
        """Goes by what is kept now."""
        ...


@runtime_checkable
class SortsOnTheHost(Protocol):
    """A target whose own way of sorting goes by sizes that may be others."""

    policy: HostSortPolicy

    def with_policy(self, policy: HostSortPolicy, /) -> Target:
        """The same going by these."""
        ...


@runtime_checkable
class ChecksMonoids(Protocol):
    """A target that looks for what other machines would leave to chance."""

    def check_monoid(
        self, monoid: Monoid[Any, Any], elements: Elements, places: Sequence[int], commutes: bool, /
    ) -> None:
        """Raises MonoidError where a monoid is none on some elements, which stand at these places of their rows."""
        ...


class Room(Protocol):
    """Memory of a device for what travels there in pieces. Every call waits for what it started; those of different
    kinds may come from different threads, and then go on side by side."""

    @property
    def alignment(self) -> int:
        """In bytes, of its address, and of where in it a kernel's memory should begin."""
        ...

    @property
    def address(self) -> int: ...

    def upload(self, address: int, parts: Sequence[HostArray], later: Sequence[HostArray], /) -> None:
        """Arrays of one memory, which are to lie one behind the other there. `later` will be written: it may be
        touched meanwhile."""
        ...

    def work(self, run: Callable[[int], object], /) -> None:
        """Calls `run` with the device current and the number of a stream, to which it sends its work."""
        ...

    def download(self, address: int, elements: HostArray, /) -> None: ...


@runtime_checkable
class HasRoom(Target, Protocol):
    """A target with memory of its own, to which host arrays travel."""

    def free_bytes(self) -> int:
        """How much of it can be had now."""
        ...

    def room(self, nbytes: int, /) -> AbstractContextManager[Room]:
        """So much of it, for a while."""
        ...
