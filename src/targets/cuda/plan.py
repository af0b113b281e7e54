"""A schedule made ready for one card, and its launching: one by one at first, as a CUDA graph once it comes again.

A graph holds the addresses that it was recorded with. Arrays of one size tend to come back at the same addresses, for
cupy's pool hands them out again; a graph is recorded when addresses come a second time.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from ...kernel.launch import Buffer

if TYPE_CHECKING:
    from cupy.cuda import Stream
    from cupy.cuda.function import Function
    from cupy.cuda.graph import Graph

Addresses: TypeAlias = tuple[int, ...]

_MOST_GRAPHS = 16  # kept for one schedule: each holds some kilobytes on the card


@attrs.frozen
class Ready:
    """A launch with all that does not change from run to run."""

    function: Function
    groups: int
    group_size: int
    places: tuple[int, ...]  # of the kernel's storage among the schedule's buffers
    values: tuple[np.generic, ...]  # lengths, then parameters
    dynamic_bytes: int

    def launch(self, addresses: Addresses) -> None:
        """On the current stream."""
        arguments: tuple[int | np.generic, ...] = (*[addresses[place] for place in self.places], *self.values)
        self.function((self.groups,), (self.group_size,), arguments, self.dynamic_bytes)


class Plan:
    """All launches of a schedule."""

    def __init__(self, buffers: tuple[Buffer[object], ...], launches: tuple[Ready, ...]) -> None:
        self.buffers = buffers
        self.launches = launches
        self._lock = Lock()  # one graph cannot be launched from two threads at once
        self._graphs: OrderedDict[Addresses, Graph | None] = OrderedDict()

    def launch(self, addresses: Addresses, stream: Stream) -> None:
        """Everything, in order, on the current stream, which is `stream`."""
        with self._lock:
            graph = self._graphs.get(addresses)
            if graph is None and addresses in self._graphs and len(self.launches) > 1:
                graph = self._graphs[addresses] = self._recorded(addresses)
            elif graph is None:
                self._graphs[addresses] = None
                if len(self._graphs) > _MOST_GRAPHS:
                    self._graphs.popitem(last=False)
            if graph is not None:
                graph.launch(stream)
                return
        for ready in self.launches:
            ready.launch(addresses)

    def _recorded(self, addresses: Addresses) -> Graph:
        import cupy

        with cupy.cuda.Stream(non_blocking=True) as recording:
            recording.begin_capture()
            try:
                for ready in self.launches:
                    ready.launch(addresses)
            finally:
                graph = recording.end_capture()
        return graph
