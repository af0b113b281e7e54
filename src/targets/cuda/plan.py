"""A schedule made ready for one card, and its launching: one by one at first, as a CUDA graph once it comes again.

A graph holds the addresses that it was recorded with. Arrays of one size tend to come back at the same addresses, for
cupy's pool hands them out again; a graph is recorded when addresses come a second time.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import starmap
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from ...forks import never_released_in_children, require_own_process
from ...kernel.launch import Buffer, Role

if TYPE_CHECKING:
    from cupy.cuda import MemoryPointer, Stream
    from cupy.cuda.function import Function
    from cupy.cuda.graph import Graph

Addresses: TypeAlias = tuple[int, ...]
Call: TypeAlias = "tuple[Function, tuple[int], tuple[int], tuple[int | np.generic, ...], int]"

_ALIGNMENT = 256  # as cupy's own memory has it
_MOST_GRAPHS = 16  # kept for one schedule: each holds some kilobytes on the card


def launch_all(launches: Sequence[Ready], addresses: Addresses) -> None:
    """On the current stream, in order: all launches in one call into C, in which no signal handler runs.

    Between two of them an array that is sorted in place holds other words than it was given; an interrupt finds it as
    it was, or with all launches under way that put it in order.
    """
    deque(starmap(operator.call, [ready.call(addresses) for ready in launches]), maxlen=0)


@attrs.frozen
class Ready:
    """A launch with all that does not change from run to run."""

    function: Function
    groups: int
    group_size: int
    places: tuple[int, ...]  # of the kernel's storage among the schedule's buffers
    values: tuple[np.generic, ...]  # lengths, then parameters
    dynamic_bytes: int

    def call(self, addresses: Addresses) -> Call:
        """The function, and what it is to be called with."""
        arguments: tuple[int | np.generic, ...] = (*[addresses[place] for place in self.places], *self.values)
        return self.function, (self.groups,), (self.group_size,), arguments, self.dynamic_bytes


class Plan:
    """All launches of a schedule."""

    def __init__(self, buffers: tuple[Buffer[object], ...], launches: tuple[Ready, ...]) -> None:
        self.buffers = buffers
        self.launches = launches
        self._scratch: list[int | None] = []  # where in one piece of memory each scratch buffer starts
        self._scratch_bytes = 0
        for buffer in buffers:
            if buffer.role is Role.SCRATCH:
                self._scratch.append(self._scratch_bytes)
                self._scratch_bytes += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
            else:
                self._scratch.append(None)
        self._kept: MemoryPointer | None = None
        self._graphs: OrderedDict[Addresses, Graph | None] = OrderedDict()
        never_released_in_children(self)

    def with_scratch(self) -> Plan:
        """The same with scratch of its own, for runs that come one after the other: they allocate nothing, so a graph
        of the caller's can be recorded with them in it."""
        import cupy

        plan = Plan(self.buffers, self.launches)
        plan._kept = cupy.cuda.alloc(plan._scratch_bytes)
        return plan

    def run(self, given: Sequence[int]) -> None:
        """Everything, on the current device and stream, on arrays that lie there: their addresses in the schedule's
        order. Scratch comes from cupy's pool, which reuses it in the stream's order: so it may be let go here."""
        require_own_process("cuda")
        import cupy

        memory = self._kept or cupy.cuda.alloc(self._scratch_bytes)
        base, next_given = memory.ptr, iter(given)
        addresses = tuple([next(next_given) if offset is None else base + offset for offset in self._scratch])
        self.launch(addresses, cupy.cuda.get_current_stream())

    def launch(self, addresses: Addresses, stream: Stream) -> None:
        """Everything, in order, on the current stream, which is `stream`."""
        require_own_process("cuda")
        # Who launches a graph has it alone: one cannot be launched from two threads at once. Whoever comes meanwhile
        # launches one by one. An interrupt loses no more than the graph, where a lock might stay taken.
        if self._kept is not None and stream.is_capturing():
            launch_all(self.launches, addresses)
            return
        is_known = addresses in self._graphs
        graph = self._graphs.pop(addresses, None)
        if graph is None and is_known and len(self.launches) > 1:
            graph = self._recorded(addresses)
        if graph is None:
            launch_all(self.launches, addresses)
            self._graphs.setdefault(addresses, None)
        else:
            graph.launch(stream)
            self._graphs[addresses] = graph
        while len(self._graphs) > _MOST_GRAPHS:
            self._graphs.popitem(last=False)

    def _recorded(self, addresses: Addresses) -> Graph:
        import cupy

        with cupy.cuda.Stream(non_blocking=True) as recording:
            try:
                recording.begin_capture()
                launch_all(self.launches, addresses)
                return recording.end_capture()
            except BaseException:
                _end_capture(recording)
                raise


def _end_capture(recording: Stream) -> None:
    """What was recorded is let go: on a stream that goes on recording, memory could not be had."""
    if recording.is_capturing():
        recording.end_capture()
