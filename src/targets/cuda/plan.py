"""A schedule made ready for one card, and its launching: one by one at first, as a CUDA graph once it comes again.

A graph holds the addresses that it was recorded with. Arrays of one size tend to come back at the same addresses, for
libraries' pools hand them out again. To record one takes as long as many launches: it is done once addresses have come
so often that launches one by one have cost as much more, so that it can at most double what they take.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, starmap
from struct import Struct
from typing import TYPE_CHECKING, TypeAlias

import attrs

from ...forks import never_released_in_children, require_own_process
from ...kernel.launch import Buffer, Role
from ...types.bounded import Bounded
from ..base import OnStream
from .errors import device_errors

if TYPE_CHECKING:
    import numpy as np
    from cupy.cuda import MemoryPointer, Stream
    from cupy.cuda.function import Function
    from cupy.cuda.graph import Graph

Addresses: TypeAlias = tuple[int, ...]
# As cuLaunchKernel takes it: function, workgroups, invocations, workgroup memory, stream, pointers to parameters.
Call: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int]

_ALIGNMENT = 256  # as cupy's own memory has it
_CELL = 8  # bytes that a parameter takes, which is no more than it is aligned to
_MOST_GRAPHS = 16  # kept for one schedule: each holds some kilobytes on the card
_MOST_STREAMS = 16  # whose launches are kept
# Microseconds, measured on a host of an H200: a graph is recorded in one, and saves the others, of which it costs one.
RECORDING, LAUNCH = 200, 3


@attrs.frozen
class Ready:
    """A launch with all that does not change from run to run."""

    function: Function
    groups: int
    group_size: int
    places: tuple[int, ...]  # of the kernel's storage among the plan's buffers
    values: tuple[np.generic, ...]  # lengths, then parameters
    dynamic_bytes: int


class _Launches:
    """All launches as the driver takes them. It reads their parameters from memory here: a run writes no more than the
    addresses of buffers. One run uses it at a time."""

    def __init__(self, launches: Sequence[Ready], buffers: int) -> None:
        self._addresses = array("Q", bytes(_CELL * buffers))
        self._write = Struct(f"={buffers}Q").pack_into
        base, self._held = self._addresses.buffer_info()[0], list[object]()
        self._launches: list[tuple[Ready, int]] = []
        for ready in launches:
            values = array("Q", b"".join(value.tobytes().ljust(_CELL, b"\0") for value in ready.values))
            first = values.buffer_info()[0]
            cells = [base + _CELL * place for place in ready.places]
            pointers = array("Q", [*cells, *range(first, first + _CELL * len(values), _CELL)])
            self._held += [values, pointers]
            self._launches.append((ready, pointers.buffer_info()[0]))
        self._calls: Bounded[int, list[Call]] = Bounded(_MOST_STREAMS)

    def launch(self, addresses: Addresses, stream: int) -> None:
        """In order, in one call into C, in which no signal handler runs.

        Between two of them an array that is sorted in place holds other words than it was given; an interrupt finds it
        as it was, or with all launches under way that put it in order.
        """
        import cupy

        self._write(self._addresses, 0, *addresses)
        calls = self._calls.get(stream)
        if calls is None:
            calls = self._calls_on(stream)
        if len(calls) == 1:
            cupy.cuda.driver.launchKernel(*calls[0])
        else:
            deque(starmap(cupy.cuda.driver.launchKernel, calls), maxlen=0)

    def _calls_on(self, stream: int) -> list[Call]:
        calls = self._calls[stream] = [
            (ready.function.ptr, ready.groups, 1, 1, ready.group_size, 1, 1, ready.dynamic_bytes, stream, pointers, 0)
            for ready, pointers in self._launches
        ]
        return calls


@attrs.frozen
class _Stream:
    """As cupy takes one."""

    ptr: int


_stream_at = lru_cache(maxsize=_MOST_STREAMS)(_Stream)


class Plan:
    """All launches of a schedule, for one device."""

    own_bytes = 0

    def __init__(self, buffers: tuple[Buffer[object], ...], launches: tuple[Ready, ...]) -> None:
        """Scratch comes last among the buffers."""
        self.buffers = buffers
        self.launches = launches
        self.scratch_bytes = 0
        self._scratch: list[int] = []  # where in one piece of memory each scratch buffer starts
        for buffer in buffers:
            if buffer.role is Role.SCRATCH:
                self._scratch.append(self.scratch_bytes)
                self.scratch_bytes += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
        self._kept: MemoryPointer | None = None
        self._free: list[_Launches] = []  # one a run that was under way at the same time
        self._graphs: OrderedDict[Addresses, Graph | int] = OrderedDict()  # or how often they have come
        self._often = max(1, RECORDING // (LAUNCH * max(1, len(launches))))
        never_released_in_children(self)

    def with_scratch(self) -> Plan:
        """The same with scratch of its own, for runs that come one after the other: they allocate nothing, so a graph
        of the caller's can be recorded with them in it. They have the same addresses time and again."""
        import cupy

        plan = Plan(self.buffers, self.launches)
        plan._kept, plan._often = cupy.cuda.alloc(plan.scratch_bytes), 1
        return plan

    @property
    def num_given(self) -> int:
        return len(self.buffers) - len(self._scratch)

    def followed_by(self, others: Sequence[OnStream], /) -> Plan | None:
        plans = [self, *(other for other in others if isinstance(other, Plan))]
        if len(plans) < 1 + len(others):
            return None
        scratch_of = [[b for b in plan.buffers if b.role is Role.SCRATCH] for plan in plans]
        given_of = [[b for b in plan.buffers if b.role is not Role.SCRATCH] for plan in plans]
        given, scratch, launches = 0, sum(map(len, given_of)), list[Ready]()
        for plan, own, kept in zip(plans, given_of, scratch_of, strict=True):
            moved = (*range(given, given + len(own)), *range(scratch, scratch + len(kept)))
            launches += [
                attrs.evolve(ready, places=tuple(moved[place] for place in ready.places)) for ready in plan.launches
            ]
            given, scratch = given + len(own), scratch + len(kept)
        buffers = [*chain.from_iterable(given_of), *chain.from_iterable(scratch_of)]
        return Plan(tuple(buffers), tuple(launches))

    def run(self, given: Sequence[int]) -> None:
        """Everything, on the current device and cupy's current stream, on arrays that lie there: their addresses in the
        schedule's order. Scratch comes from cupy's pool, which reuses it in the stream's order: so it may be let go
        here."""
        require_own_process("cuda")
        import cupy

        memory = self._kept
        if memory is None and self.scratch_bytes:
            memory = cupy.cuda.alloc(self.scratch_bytes)
        self.run_at(given, 0 if memory is None else memory.ptr, cupy.cuda.get_current_stream().ptr)

    def run_at(self, given: Sequence[int], scratch: int, stream: int, /) -> None:
        """The same on any stream of the current device, with scratch that is the run's until it is done."""
        self.launch((*given, *[scratch + offset for offset in self._scratch]), stream)

    def launch(self, addresses: Addresses, stream: int, /) -> None:
        """Everything, in order, on a stream of the current device: at the addresses of all buffers, scratch last."""
        require_own_process("cuda")
        try:
            self._launch(addresses, stream)
        except Exception:
            with device_errors():  # entered only now: it takes longer than all that is done here
                raise

    def _launch(self, addresses: Addresses, stream: int) -> None:
        # Who launches a graph has it alone: one cannot be launched from two threads at once. Whoever comes meanwhile
        # launches one by one. An interrupt loses no more than the graph, where a lock might stay taken.
        graph = self._graphs.pop(addresses, 0)
        if stream and _is_recorded(stream):  # the caller's graph takes the launches themselves
            self._launch_all(addresses, stream)
        elif isinstance(graph, int) and graph < self._often:
            self._launch_all(addresses, stream)
            graph += 1
        else:
            if isinstance(graph, int):
                graph = self._recorded(addresses)
            graph.launch(_stream_at(stream))
        self._graphs[addresses] = graph
        if len(self._graphs) > _MOST_GRAPHS:
            self._graphs.popitem(last=False)

    def _launch_all(self, addresses: Addresses, stream: int) -> None:
        try:
            launches = self._free.pop()
        except IndexError:
            launches = _Launches(self.launches, len(self.buffers))
        launches.launch(addresses, stream)
        self._free.append(launches)

    def _recorded(self, addresses: Addresses) -> Graph:
        import cupy

        with cupy.cuda.Stream(non_blocking=True) as recording:
            try:
                recording.begin_capture()
                self._launch_all(addresses, recording.ptr)
                return recording.end_capture()
            except BaseException:
                _end_capture(recording)
                raise


def _is_recorded(stream: int) -> bool:
    """Whether the caller records into a graph of its own what is sent to a stream, which is not the default one."""
    import cupy

    return cupy.cuda.runtime.streamIsCapturing(stream)


def _end_capture(recording: Stream) -> None:
    """What was recorded is let go: on a stream that goes on recording, memory could not be had."""
    if recording.is_capturing():
        recording.end_capture()
