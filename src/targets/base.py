"""Protocols of a target (backend): running and preparing schedules, and optional capabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

import attrs
import numpy as np
import numpy.typing as npt

from ..machine import TargetInfo
from ..types import specs
from ..types.errors import CapabilityError

if TYPE_CHECKING:
    from ..algos.host_sort import HostSortPolicy, Partition
    from ..algos.rules import SortRule
    from ..kernel.launch import Buffer, Schedule
    from ..operations.base import Operation
    from ..types.indices import SortOrder
    from ..types.monoids import Monoid

HostArray: TypeAlias = specs.HostArray
Copies: TypeAlias = Sequence[tuple[int, HostArray]]  # each with an address of a device
Elements: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]


class Target(Protocol):
    """A backend for one kind of machine. Thread-safe."""

    @property
    def info(self) -> TargetInfo: ...

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Runs all launches. `arrays` holds an array for each buffer that is not SCRATCH, by name: NumPy's (contiguous,
        one-dimensional, of the element's dtype), or the target's own kind. Host arrays hold the results when this
        returns, device arrays when the work on the current stream is done. The checks are in binding.py."""
        ...


class Prepared(Protocol):
    """A prepared schedule: kernels compiled and loaded, scratch sized; all that does not depend on addresses."""

    def run(self, memories: Sequence[object], /) -> None:
        """Runs all launches on an array for each buffer that is not SCRATCH, in the schedule's order: contiguous, with
        at least the buffer's bytes, of any shape and dtype; NumPy's, or the target's own kind."""
        ...


class OnStream(Protocol):
    """A prepared schedule for a device with streams, that takes scratch and stream from its caller."""

    @property
    def num_given(self) -> int:
        """The number of memories that run_at takes."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that the caller has to pass."""
        ...

    @property
    def own_bytes(self) -> int:
        """Bytes of scratch that it allocates itself."""
        ...

    def run_at(self, given: Sequence[Any], scratch: Any, stream: int, /) -> None:
        """Queues all launches on a stream of the current device. `given` has a memory for each buffer that is not
        SCRATCH, in the schedule's order; `scratch` must not be used by others until the run is done."""
        ...

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        """Fuses this and others of the same target and device into one run, e.g. one graph or submission, which takes
        the concatenation of their memories. None if they cannot be fused."""
        ...


@runtime_checkable
class LaunchesAtOnce(Protocol):
    """A run on a stream that can be told all addresses in one call."""

    def scratch_at(self, scratch: Any, /) -> tuple[Any, ...]:
        """The addresses of its scratch buffers in the memory for these."""
        ...

    def launch(self, addresses: tuple[Any, ...], stream: int, /) -> None:
        """`run_at`, with those addresses last."""
        ...


@runtime_checkable
class RunsOnStreams(Protocol):
    """A Prepared that can run on the caller's stream."""

    def on_stream(self) -> OnStream:
        """The runnable for the current device."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A target that can prepare schedules. On others each run calls `run`."""

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> Prepared: ...


@attrs.frozen(eq=False)
class _Unprepared:
    """A Prepared for targets that cannot prepare: calls `run` each time."""

    target: Target
    schedule: Schedule
    buffers: tuple[Buffer[Any], ...]

    def run(self, memories: Sequence[object], /) -> None:
        self.target.run(self.schedule, arrays_by_name(self.buffers, memories))


def arrays_by_name(buffers: Sequence[Buffer[Any]], memories: Sequence[object]) -> dict[str, object]:
    """Converts arrays as Prepared.run takes them to those for Target.run: flat, of the buffers' dtypes and counts."""
    return {buffer.name: elements_of(buffer, memory) for buffer, memory in zip(buffers, memories, strict=True)}


def elements_of(buffer: Buffer[Any], memory: object) -> HostArray:
    """A packed array as its buffer's elements."""
    array = cast(HostArray, memory)  # or an array with the same methods
    flat = array if array.ndim == 1 else array.reshape(-1)
    seen = flat if flat.dtype is buffer.dtype else flat.view(buffer.dtype)
    return seen if seen.shape[0] == buffer.count else seen[: buffer.count]


def given_buffers(schedule: Schedule) -> tuple[Buffer[Any], ...]:
    """The buffers that the caller passes: all but SCRATCH."""
    from ..kernel.launch import Role

    return tuple(buffer for buffer in schedule.buffers if buffer.role is not Role.SCRATCH)


def prepared_by(target: Target, schedule: Schedule, keeps_scratch: bool = False) -> Prepared:
    """Prepares a schedule on any target. With `keeps_scratch` the result owns its scratch, so that a run allocates
    nothing; then runs must not overlap."""
    if isinstance(target, Prepares):
        return target.prepare(schedule, keeps_scratch=keeps_scratch)
    return _Unprepared(target, schedule, given_buffers(schedule))


@attrs.frozen(eq=False)
class InTurn:
    """A sequence of runs as one, executed one by one."""

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

    def parts(self, given: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """The memories of each run."""
        first = 0
        for run in self.runs:
            yield given[first : first + run.num_given]
            first += run.num_given

    def run_at(self, given: Sequence[Any], scratch: Any, stream: int, /) -> None:
        for run, memories in zip(self.runs, self.parts(given), strict=True):
            run.run_at(memories, scratch, stream)

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        return None


def in_one_run(prepared: Sequence[Prepared]) -> OnStream:
    """Combines what was prepared for the current device into one run, fused where possible. Raises CapabilityError."""
    runs = [one.on_stream() for one in prepared if isinstance(one, RunsOnStreams)]
    if len(runs) < len(prepared):
        raise CapabilityError("target: expected one that works where arrays lie")
    if len(runs) == 1:
        return runs[0]
    return runs[0].followed_by(runs[1:]) or InTurn(runs)


@attrs.frozen(eq=False)
class Native:
    """A fast path: a target's implementation of an operation without kernels, for NumPy arrays of given dtypes and
    numbers of dimensions."""

    function: Callable[..., Any]  # returns new results: an array, a scalar where NumPy returns one, or a tuple
    # whether an array goes straight there, with nothing left to refuse; None: all do, those without elements too
    takes: Callable[[HostArray], bool] | None = None
    most: int | None = None  # the most elements of all its arrays together, where kernels are as fast for more
    suits: Callable[[Sequence[HostArray]], bool] = lambda _: False  # whether it takes these of more all the same
    # Writes results to given arrays, each of which is an input itself, or does not overlap any. In place, after an
    # exception the array holds its elements in some order.
    into: Callable[[Sequence[HostArray], Sequence[HostArray]], None] | None = None
    # Writes a short array's result into itself or another without any checks before it; False, and nothing done, where
    # all ought to be looked at.
    into_short: Callable[[HostArray, HostArray], bool] | None = None


@runtime_checkable
class DeviceTimer(Protocol):
    """A target that can time kernels on its device."""

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule on host arrays; returns the device time of its launches, without transfers, in seconds."""
        ...


@runtime_checkable
class HostTarget(Protocol):
    """A target with fast paths for host arrays, and a host sort whose policy it can tune."""

    policy: HostSortPolicy

    def with_policy(self, policy: HostSortPolicy, /) -> Target:
        """The same target with another policy."""
        ...

    def native(self, operation: Operation, given: Sequence[specs.Spec], /) -> Native | None:
        """The fast path for arrays of these dtypes and numbers of dimensions; None if kernels should run."""
        ...

    def partition_for(self, dtype: np.dtype[np.generic], /) -> Partition | None:
        """A partition of rows of a dtype; None where there is none."""
        ...

    def foresee_sorts(self, dtype: np.dtype[np.generic], order: SortOrder, length: int, /) -> None:
        """Loads meanwhile what sorts of rows of about a length will need."""
        ...

    def tune(self, largest: int, tell: Callable[[str], object], /) -> Sequence[SortRule]:
        """Measures on arrays of up to `largest` elements, applies the result, and returns the rules to store. `tell`
        gets a line of progress."""
        ...

    def read_tuning(self) -> None:
        """Applies the stored rules again."""
        ...


@runtime_checkable
class ChecksMonoids(Protocol):
    """A target that checks monoid laws, whose violation gives results that depend on the machine."""

    def check_monoid(
        self, monoid: Monoid[Any, Any], elements: Elements, indices: Sequence[int], commutes: bool, /
    ) -> None:
        """Raises MonoidError if a law fails for some elements. `indices` are their indices in their rows; `commutes`
        says whether commutativity is required."""
        ...


class Room(Protocol):
    """An allocation of device memory for out-of-core work. Calls are synchronous, but for uploads; upload, work and
    download may be called from different threads, and then overlap."""

    @property
    def alignment(self) -> int:
        """Bytes to which its address is aligned, and buffers in it should be."""
        ...

    @property
    def address(self) -> int: ...

    def upload(self, copies: Copies, later: Sequence[HostArray], /) -> object:
        """Uploads arrays, each to an address. `later` are arrays that will be overwritten: their pages may be touched
        meanwhile. Returns what `work` is to wait for: the copies may be under way until then, so that the next ones
        follow without a pause."""
        ...

    def work(self, run: Callable[[int], object], upload: object, /) -> None:
        """Calls `run` with a stream, on which it queues its work behind an upload, with the device current."""
        ...

    def download(self, copies: Copies, /) -> None: ...

    def host_memory(self, nbytes: int, /) -> AbstractContextManager[npt.NDArray[np.uint8]]:
        """Uninitialised host memory for a with block: of a kind that is transferred fast, if there is one."""
        ...


@runtime_checkable
class HasRoom(Target, Protocol):
    """A target with device memory, for out-of-core work on host arrays."""

    def free_bytes(self) -> int:
        """Bytes of device memory that can be allocated now."""
        ...

    def room(self, nbytes: int, /) -> AbstractContextManager[Room]:
        """Allocates device memory for a with block."""
        ...
