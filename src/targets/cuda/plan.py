"""A prepared schedule on one card: kernels are launched one by one at first, and as a CUDA graph once calls repeat.

A graph is tied to the addresses it was captured with; pooled allocators hand the same addresses out again for arrays of
the same size. Capturing costs as much as many launches, so it is done only once the launches with these addresses have
already cost as much more than a graph would have: at worst it doubles the total (as in the ski rental problem).
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

from ...arrays.kinds import places, span
from ...forks import never_released_in_children, require_own_process
from ...kernel.launch import Buffer, Role
from ...types.bounded import Bounded
from ...types.libraries import cupy
from ..base import OnStream
from .card import device_errors, enters_context

if TYPE_CHECKING:
    import numpy as np
    from cupy.cuda.function import Function
    from cupy.cuda.graph import Graph

Addresses: TypeAlias = tuple[int, ...]
# The arguments of cuLaunchKernel: function, grid, block, shared memory in bytes, stream, parameters, extra.
Call: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int]

_CELL = 8  # bytes reserved for each kernel parameter, whatever its type
_MOST_GRAPHS = 16  # cached for one schedule: each takes some kilobytes on the card
_MOST_STREAMS = 16  # for which launch arguments are cached
# Microseconds of host time, measured beside an H200: to capture a graph, and for one kernel or graph launch.
RECORDING, LAUNCH = 200, 3


@attrs.frozen
class PreparedLaunch:
    """A kernel launch without what changes from run to run: addresses and stream."""

    function: Function
    groups: int
    group_size: int
    buffers_used: tuple[int, ...]  # indices of the kernel's storage buffers in the plan's
    values: tuple[np.generic, ...]  # lengths, then parameters
    dynamic_bytes: int


class _Launches:
    """Launch arguments in the driver's own layout. Kernel parameters are read through pointers into memory held here:
    a run only writes the buffers' addresses. Not for two runs at once."""

    def __init__(self, launches: Sequence[PreparedLaunch], buffers: int) -> None:
        self._addresses = array("Q", bytes(_CELL * buffers))
        self._write = Struct(f"={buffers}Q").pack_into
        base, self._held = self._addresses.buffer_info()[0], list[object]()
        self._launches: list[tuple[PreparedLaunch, int]] = []
        for ready in launches:
            values = array("Q", b"".join(value.tobytes().ljust(_CELL, b"\0") for value in ready.values))
            first = values.buffer_info()[0]
            cells = [base + _CELL * index for index in ready.buffers_used]
            pointers = array("Q", [*cells, *range(first, first + _CELL * len(values), _CELL)])
            self._held += [values, pointers]
            self._launches.append((ready, pointers.buffer_info()[0]))
        self._calls: Bounded[int, list[Call]] = Bounded(_MOST_STREAMS)

    def launch(self, addresses: Addresses, stream: int) -> None:
        """Launches all kernels in one call into C, where no Python signal handler runs. Between two launches an array
        that is sorted in place holds encoded words. So Ctrl-C takes effect before the first launch or after the
        last."""
        self._write(self._addresses, 0, *addresses)
        calls = self._calls.get(stream)
        if calls is None:
            calls = self._calls[stream] = [
                (at.function.ptr, at.groups, 1, 1, at.group_size, 1, 1, at.dynamic_bytes, stream, pointers, 0)
                for at, pointers in self._launches
            ]
        if len(calls) == 1:
            cupy.cuda.driver.launchKernel(*calls[0])
        else:
            deque(starmap(cupy.cuda.driver.launchKernel, calls), maxlen=0)


@attrs.frozen
class _Stream:
    """All that cupy's Graph.launch needs of a stream."""

    ptr: int


_stream_at = lru_cache(maxsize=_MOST_STREAMS)(_Stream)


class Plan:
    """A schedule prepared for one device; implements `OnStream` (base.py)."""

    own_bytes = 0

    def __init__(
        self, buffers: tuple[Buffer[object], ...], launches: tuple[PreparedLaunch, ...], often: int | None = None
    ) -> None:
        """Scratch buffers must come last. `often`: after how many runs with the same addresses a graph is captured."""
        self.buffers = buffers
        self.launches = launches
        scratch = [buffer.nbytes for buffer in buffers if buffer.role is Role.SCRATCH]
        self.scratch_bytes = span(scratch)
        self._scratch = places(0, scratch)  # offsets in bytes of the scratch buffers in one allocation
        self._free: list[_Launches] = []  # not in use; as many in all as there were runs at once
        self._graphs: OrderedDict[Addresses, Graph | int] = OrderedDict()  # LRU; or how often the addresses were used
        self._often = often or max(1, RECORDING // (LAUNCH * max(1, len(launches))))
        never_released_in_children(self)

    @property
    def num_given(self) -> int:
        return len(self.buffers) - len(self._scratch)

    def followed_by(self, others: Sequence[OnStream], /) -> Plan | None:
        plans = [self, *(other for other in others if isinstance(other, Plan))]
        if len(plans) < 1 + len(others):
            return None
        given_of = [plan.buffers[: plan.num_given] for plan in plans]
        scratch_of = [plan.buffers[plan.num_given :] for plan in plans]
        given, scratch, launches = 0, sum(map(len, given_of)), list[PreparedLaunch]()
        for plan, own, kept in zip(plans, given_of, scratch_of, strict=True):
            moved = (*range(given, given + len(own)), *range(scratch, scratch + len(kept)))
            launches += [
                attrs.evolve(ready, buffers_used=tuple(moved[index] for index in ready.buffers_used))
                for ready in plan.launches
            ]
            given, scratch = given + len(own), scratch + len(kept)
        buffers = [*chain.from_iterable(given_of), *chain.from_iterable(scratch_of)]
        return Plan(tuple(buffers), tuple(launches))

    def run(self, given: Sequence[int]) -> None:
        """Runs on cupy's current device and stream; `given` are addresses in the schedule's order. Scratch comes from
        cupy's pool. That is stream-ordered, so it may be freed while kernels still run."""
        require_own_process("cuda")
        memory = cupy.cuda.alloc(self.scratch_bytes) if self.scratch_bytes else None
        self.run_at(given, 0 if memory is None else memory.ptr, cupy.cuda.get_current_stream().ptr)

    def run_at(self, given: Sequence[int], scratch: int, stream: int, /) -> None:
        """Runs on a stream of the current device, with scratch that is this run's alone until it is done."""
        self.launch((*given, *self.scratch_at(scratch)), stream)

    def scratch_at(self, scratch: int, /) -> Addresses:
        return tuple([scratch + offset for offset in self._scratch])

    def launch(self, addresses: Addresses, stream: int, /) -> None:
        """Launches kernels or graph on a stream of the current device. Addresses are of all buffers, scratch last."""
        require_own_process("cuda")
        try:
            self._launch(addresses, stream)
        except Exception as error:
            with device_errors():  # entered only on failure: as a context manager it would cost more than the launch
                if not enters_context(error):
                    raise
                self._launch(addresses, stream)

    def _launch(self, addresses: Addresses, stream: int) -> None:
        # A graph must not be launched from two threads at once. So it is taken out of the cache meanwhile, and another
        # thread launches kernels one by one; unlike a lock, an interrupt can lose only the graph.
        graph = self._graphs.pop(addresses, 0)
        if stream and _is_capturing(stream):  # the caller's graph captures the kernels, not a graph
            self._launch_all(addresses, stream)
        elif isinstance(graph, int) and graph < self._often:
            self._launch_all(addresses, stream)
            graph += 1
        else:
            if isinstance(graph, int):
                graph = self._captured(addresses)
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

    def _captured(self, addresses: Addresses) -> Graph:
        with cupy.cuda.Stream(non_blocking=True) as recording:
            try:
                recording.begin_capture()
                self._launch_all(addresses, recording.ptr)
                return recording.end_capture()
            except BaseException:
                if recording.is_capturing():  # while it goes on, no memory can be allocated
                    recording.end_capture()
                raise


def _is_capturing(stream: int) -> bool:
    """Whether the caller captures this stream into a graph of its own. Not for the default stream."""
    return cupy.cuda.runtime.streamIsCapturing(stream)
