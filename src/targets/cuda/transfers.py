"""Arrays on their way between the host's memory and a card, piece by piece through pinned memory.

A card reaches only memory that the system does not move. For any other the driver copies by way of pinned memory of its
own, in one thread and in step with the card. Here several threads copy a piece while the card fetches the one before,
and while they write a new result the system finds its pages for all of them at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..cpu.pool import shared_pool, slices

if TYPE_CHECKING:
    from cupy.cuda import Event, PinnedMemoryPointer, Stream

Bytes: TypeAlias = npt.NDArray[np.uint8]

PIECE_BYTES = 32 << 20
_PIECES = 2  # on their way at a time
LEAST_BYTES = 16 << 20  # less goes as fast by the driver
_KEPT = 2  # rings, for as many threads at once
_PART_BYTES = 4 << 20  # what is worth a thread


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


class _Ring:
    """Pieces of pinned memory that one transfer uses in turn. None is let go while it is copied."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []

    def pieces(self, array: Bytes) -> Iterator[tuple[_Slot, int, Bytes]]:
        """The array's pieces: which slot each takes, where it starts, and where it lies."""
        for number, start in enumerate(range(0, array.size, PIECE_BYTES)):
            if number == len(self._slots) < _PIECES:
                self._slots.append(_new_slot())
            yield self._slots[number % _PIECES], start, array[start : start + PIECE_BYTES]

    def __del__(self) -> None:
        for slot in getattr(self, "_slots", ()):  # an interrupt may come before there are any
            slot.wait()


@attrs.define
class Transfers:
    """Ways to a card and back. The pinned memory is kept for the next array.

    A transfer has its ring to itself: threads need no lock, which an interrupt might leave taken.
    """

    _rings: deque[_Ring] = attrs.field(factory=lambda: deque[_Ring](maxlen=_KEPT))

    def upload(self, pointer: int, source: npt.NDArray[np.generic], stream: Stream) -> None:
        """Starts copying an array to an address on the card; it may be changed as soon as this returns, unless it is
        pinned itself or small."""
        import cupy

        runtime = cupy.cuda.runtime
        if _goes_directly(source):
            runtime.memcpyAsync(pointer, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            return
        ring = self._ring()
        for slot, start, piece in ring.pieces(_bytes_of(source)):
            slot.wait()
            _copy(slot.memory[: piece.size], piece)
            slot.copy(pointer + start, slot.pointer.ptr, piece.size, runtime.memcpyHostToDevice, stream)
        self._rings.append(ring)

    def download(self, pointer: int, target: npt.NDArray[np.generic], stream: Stream) -> None:
        """Copies from an address on the card into an array. The caller waits for the stream before it is read."""
        import cupy

        runtime = cupy.cuda.runtime
        if _goes_directly(target):
            runtime.memcpyAsync(target.ctypes.data, pointer, target.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            return
        ring = self._ring()
        pieces = list(ring.pieces(_bytes_of(target)))
        for number in range(len(pieces) + _PIECES):
            if number >= _PIECES:
                slot, _, piece = pieces[number - _PIECES]
                slot.wait()
                _copy(piece, slot.memory[: piece.size])
            if number < len(pieces):
                slot, start, piece = pieces[number]
                slot.wait()
                slot.copy(slot.pointer.ptr, pointer + start, piece.size, runtime.memcpyDeviceToHost, stream)
        self._rings.append(ring)

    def _ring(self) -> _Ring:
        """One that is kept, or a new one."""
        try:
            return self._rings.pop()
        except IndexError:
            return _Ring()


def _new_slot() -> _Slot:
    import cupy

    pointer = cupy.cuda.alloc_pinned_memory(PIECE_BYTES)
    return _Slot(pointer, np.frombuffer(memoryview(pointer), np.uint8, PIECE_BYTES))


def _goes_directly(array: npt.NDArray[np.generic]) -> bool:
    """Whether the driver copies an array as fast: a small one, or one in memory that is pinned already."""
    import cupy

    if array.nbytes < LEAST_BYTES:
        return True
    runtime = cupy.cuda.runtime
    return runtime.pointerGetAttributes(array.ctypes.data).type != runtime.memoryTypeUnregistered


def _bytes_of(array: npt.NDArray[np.generic]) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def _copy(target: Bytes, source: Bytes) -> None:
    """In as many threads as it is worth."""
    parts = max(1, min(shared_pool().threads, source.size // _PART_BYTES))
    pieces = slices(source.size, parts)
    shared_pool().run(lambda part: np.copyto(target[pieces[part]], source[pieces[part]]), parts)
