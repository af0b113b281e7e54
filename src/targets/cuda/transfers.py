"""Arrays on their way between the host's memory and a card, piece by piece through pinned memory.

A card reaches only memory that the system does not move. For any other the driver copies by way of pinned memory of its
own, in one thread and in step with the card. Here several threads copy pieces, each while the card fetches the one it
copied before. And memory that is new to the process has no pages yet: a result's are touched by other threads, so that
the system finds them, while the source travels.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..cpu.pool import shared_pool, slices

if TYPE_CHECKING:
    from cupy.cuda import Event, PinnedMemoryPointer, Stream

Bytes: TypeAlias = npt.NDArray[np.uint8]
_Piece: TypeAlias = tuple[int, Bytes]  # an address on the card, and the host's memory

PIECE_BYTES = 4 << 20
LEAST_BYTES = 16 << 20  # less goes as fast by the driver
MOST_LANES = 16  # threads that copy: as many keep the host's memory busy
_SLOTS = 2  # of a lane: one is copied while the card fetches the other
_KEPT = 2  # rings, for as many threads at once


@attrs.define
class _Slot:
    """Pinned memory for one piece, and when the card is done with it."""

    pointer: PinnedMemoryPointer
    memory: Bytes
    done: Event | None = None
    asked: Stream | None = None  # for a copy whose end is not marked, nor will be if an interrupt strikes

    def wait(self) -> None:
        if self.asked is not None:
            self.asked.synchronize()
            self.asked = None
        elif self.done is not None:
            self.done.synchronize()

    def copy(self, target: int, source: int, nbytes: int, direction: int, stream: Stream) -> None:
        """Starts a copy to or from this memory, which is not used anew before that has ended."""
        import cupy

        self.asked = stream
        cupy.cuda.runtime.memcpyAsync(target, source, nbytes, direction, stream.ptr)
        self.done = stream.record()
        self.asked = None


class _Lane:
    """Pieces of pinned memory that one thread uses in turn. None is let go while it is copied."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []

    def upload(self, pieces: Sequence[_Piece], stream: Stream) -> None:
        import cupy

        for slot, (pointer, source) in self._turns(pieces):
            slot.wait()
            _copy(slot.memory[: source.size], source)
            slot.copy(pointer, slot.pointer.ptr, source.size, cupy.cuda.runtime.memcpyHostToDevice, stream)

    def download(self, pieces: Sequence[_Piece], stream: Stream) -> None:
        import cupy

        under_way: deque[tuple[_Slot, Bytes]] = deque()
        for slot, (pointer, target) in self._turns(pieces):
            if len(under_way) == _SLOTS:
                _arrive(*under_way.popleft())
            slot.wait()
            slot.copy(slot.pointer.ptr, pointer, target.size, cupy.cuda.runtime.memcpyDeviceToHost, stream)
            under_way.append((slot, target))
        for slot, target in under_way:
            _arrive(slot, target)

    def _turns(self, pieces: Sequence[_Piece]) -> Iterator[tuple[_Slot, _Piece]]:
        for number, piece in enumerate(pieces):
            if number == len(self._slots) < _SLOTS:
                self._slots.append(_new_slot())
            yield self._slots[number % _SLOTS], piece

    def wait(self) -> None:
        """Until no copy is under way."""
        for slot in getattr(self, "_slots", ()):  # an interrupt may come before there are any
            slot.wait()

    def __del__(self) -> None:
        self.wait()


_Ring: TypeAlias = list[_Lane]


def _pieces(pointer: int, array: npt.NDArray[np.generic]) -> Iterator[_Piece]:
    whole = bytes_of(array)
    for start in range(0, whole.size, PIECE_BYTES):
        yield pointer + start, whole[start : start + PIECE_BYTES]


@attrs.define
class Transfers:
    """Ways to a card and back. The pinned memory is kept for the next array.

    A transfer has its ring to itself: threads need no lock, which an interrupt might leave taken.
    """

    _rings: deque[_Ring] = attrs.field(factory=lambda: deque[_Ring](maxlen=_KEPT))

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
        pieces = [piece for start, part in zip(starts, parts, strict=False) for piece in _pieces(start, part)]
        self._in_lanes(pieces, lambda lane, its: lane.upload(its, stream), later)

    def download(self, pointer: int, target: npt.NDArray[np.generic], stream: Stream) -> None:
        """Copies from an address on the current card into an array. The caller waits for the stream before reading."""
        import cupy

        runtime = cupy.cuda.runtime
        if goes_directly(target):
            runtime.memcpyAsync(target.ctypes.data, pointer, target.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            return
        self._in_lanes(list(_pieces(pointer, target)), lambda lane, its: lane.download(its, stream), ())

    def _in_lanes(
        self, pieces: list[_Piece], move: Callable[[_Lane, Sequence[_Piece]], None], later: Sequence[Bytes]
    ) -> None:
        """Moves pieces in several threads, each those of a lane. If there is memory to touch, half of them do that."""
        import cupy

        pool, device = shared_pool(), cupy.cuda.runtime.getDevice()
        threads = min(pool.threads, MOST_LANES)
        lanes = max(1, min(threads // 2 if later else threads, len(pieces)))
        pages = [part[piece] for part in later for piece in slices(part.size, max(1, threads - lanes))]
        try:
            ring = self._rings.pop()
        except IndexError:
            ring = _Ring()
        ring.extend(_Lane() for _ in range(lanes - len(ring)))

        def work(number: int) -> None:
            if number < lanes:
                with cupy.cuda.Device(device):
                    move(ring[number], pieces[number::lanes])
            else:
                pages[number - lanes][:: mmap.PAGESIZE] = 0

        try:
            pool.run(work, lanes + len(pages))
        except BaseException:
            for lane in ring:  # now, and not when Python comes to collect them, where another interrupt would be lost
                lane.wait()
            raise
        self._rings.append(ring)


def _new_slot() -> _Slot:
    import cupy

    pointer = cupy.cuda.alloc_pinned_memory(PIECE_BYTES)
    return _Slot(pointer, np.frombuffer(memoryview(pointer), np.uint8, PIECE_BYTES))


def goes_directly(array: npt.NDArray[np.generic]) -> bool:
    """Whether the driver copies an array as fast: a small one, or one in memory that is pinned already."""
    return array.nbytes < LEAST_BYTES or is_pinned(array)


def is_pinned(array: npt.NDArray[np.generic]) -> bool:
    import cupy

    runtime = cupy.cuda.runtime
    return runtime.pointerGetAttributes(array.ctypes.data).type != runtime.memoryTypeUnregistered


def bytes_of(array: npt.NDArray[np.generic]) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def _arrive(slot: _Slot, piece: Bytes) -> None:
    slot.wait()
    _copy(piece, slot.memory[: piece.size])


def _copy(target: Bytes, source: Bytes) -> None:
    np.copyto(target, source)
