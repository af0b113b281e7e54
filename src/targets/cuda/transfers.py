"""Arrays on their way between the host's memory and a card, piece by piece through pinned memory.

A card reaches only memory that the system does not move. For any other the driver copies by way of pinned memory of its
own, in one thread and in step with the card. Here several threads copy pieces, each while the card fetches the one it
copied before; no Python runs between two pieces, for which threads would wait by turns. And memory that is new to the
process has no pages yet: a result's are touched by other threads, so that the system finds them, while the source
travels.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..apart import import_apart
from ..cpu.pool import shared_pool, slices

if TYPE_CHECKING:
    from cupy.cuda import Stream

    from .pinned_copies import Numbers

    Way: TypeAlias = Callable[[Numbers, Numbers, int, int, int, int, Numbers, int], int]

Bytes: TypeAlias = npt.NDArray[np.uint8]

PIECE_BYTES = 2 << 20
LEAST_BYTES = 16 << 20  # less goes as fast by the driver
MOST_LANES = 8  # threads that copy: more take memory from those that copy the other way
_SLOTS = 2  # of a lane: one is copied while the card fetches the other
_KEPT = 2  # rings, for as many threads at once


class _Lane:
    """Pinned memory for a few pieces, which one thread uses in turn. None is let go while it is copied."""

    def __init__(self) -> None:
        import cupy

        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(_SLOTS)]
        self._of_slots = np.array([event.ptr for event in self._events], np.uint64)
        self._memory = cupy.cuda.alloc_pinned_memory(_SLOTS * PIECE_BYTES)

    def move(self, way: Way, pieces: Numbers, first: int, step: int, stream: Stream) -> None:
        """Every step-th piece."""
        import cupy

        from .pinned_copies import driver_functions

        functions = driver_functions()
        status = way(functions, pieces, first, step, self._memory.ptr, PIECE_BYTES, self._of_slots, stream.ptr)
        if status:
            raise cupy.cuda.driver.CUDADriverError(status)

    def wait(self) -> None:
        """Until no copy is under way."""
        for event in getattr(self, "_events", ()):  # an interrupt may come before there are any
            event.synchronize()

    def __del__(self) -> None:
        self.wait()


_Ring: TypeAlias = list[_Lane]


def _pieces(pointer: int, array: npt.NDArray[np.generic]) -> Numbers:
    """Of an array: addresses on the card and on the host, and bytes."""
    starts = np.arange(0, array.nbytes, PIECE_BYTES, dtype=np.uint64)
    sizes = np.minimum(np.uint64(array.nbytes) - starts, np.uint64(PIECE_BYTES))
    return np.stack([starts + np.uint64(pointer), starts + np.uint64(array.ctypes.data), sizes], axis=1)


@attrs.define
class Transfers:
    """Ways to a card and back. The pinned memory is kept for the next array.

    A transfer has its ring to itself: threads need no lock, which an interrupt might leave taken.
    """

    _rings: dict[int, deque[_Ring]] = attrs.field(factory=dict[int, deque[_Ring]])  # by device, whose events they hold

    def upload(
        self, pointer: int, source: npt.NDArray[np.generic], stream: Stream, later: Sequence[Bytes] = ()
    ) -> None:
        """Starts copying an array to an address on the current card; it may be changed as soon as this returns, unless
        it is pinned itself or small. `later` is memory of the host that will be written: it is touched meanwhile."""
        self.upload_parts(pointer, [source], stream, later)

    def upload_parts(
        self, pointer: int, parts: Sequence[npt.NDArray[np.generic]], stream: Stream, later: Sequence[Bytes] = ()
    ) -> None:
        """The same of several arrays of one memory, which are to lie one behind the other."""
        import cupy

        runtime = cupy.cuda.runtime
        starts = list(accumulate((part.nbytes for part in parts), initial=pointer))
        if starts[-1] - pointer < LEAST_BYTES or is_pinned(parts[0]):
            for start, part in zip(starts, parts, strict=False):
                runtime.memcpyAsync(start, part.ctypes.data, part.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            return
        import_apart("numba")
        from .pinned_copies import send

        pieces = np.concatenate([_pieces(start, part) for start, part in zip(starts, parts, strict=False)])
        self._in_lanes(send, pieces, stream, later)

    def download(self, pointer: int, target: npt.NDArray[np.generic], stream: Stream) -> None:
        """Copies from an address on the current card into an array. The caller waits for the stream before reading."""
        import cupy

        runtime = cupy.cuda.runtime
        if goes_directly(target):
            runtime.memcpyAsync(target.ctypes.data, pointer, target.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            return
        import_apart("numba")
        from .pinned_copies import fetch

        self._in_lanes(fetch, _pieces(pointer, target), stream, ())

    def _in_lanes(self, way: Way, pieces: Numbers, stream: Stream, later: Sequence[Bytes]) -> None:
        """Moves pieces in several threads, each those of a lane. If there is memory to touch, half of them do that."""
        import cupy

        pool, device = shared_pool(), cupy.cuda.runtime.getDevice()
        threads = min(pool.threads, MOST_LANES)
        lanes = max(1, min(threads // 2 if later else threads, len(pieces)))
        pages = [part[piece] for part in later for piece in slices(part.size, max(1, threads - lanes))]
        rings = self._rings.setdefault(device, deque(maxlen=_KEPT))
        try:
            ring = rings.pop()
        except IndexError:
            ring = _Ring()
        ring.extend(_Lane() for _ in range(lanes - len(ring)))

        def work(number: int) -> None:
            if number < lanes:
                with cupy.cuda.Device(device):
                    # A new thread has no context of the driver's yet; cupy leaves device 0 to the first call that asks.
                    cupy.cuda.runtime.setDevice(device)
                    ring[number].move(way, pieces, number, lanes, stream)
            else:
                pages[number - lanes][:: mmap.PAGESIZE] = 0

        try:
            pool.run(work, lanes + len(pages))
        except BaseException:
            for lane in ring:  # now, and not when Python comes to collect them, where another interrupt would be lost
                lane.wait()
            raise
        rings.append(ring)


def goes_directly(array: npt.NDArray[np.generic]) -> bool:
    """Whether the driver copies an array as fast: a small one, or one in memory that is pinned already."""
    return array.nbytes < LEAST_BYTES or is_pinned(array)


def is_pinned(array: npt.NDArray[np.generic]) -> bool:
    import cupy

    runtime = cupy.cuda.runtime
    return runtime.pointerGetAttributes(array.ctypes.data).type != runtime.memoryTypeUnregistered


def bytes_of(array: npt.NDArray[np.generic]) -> Bytes:
    return array.reshape(-1).view(np.uint8)
