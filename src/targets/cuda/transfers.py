"""Host to device copies and back for pageable memory: several threads, double-buffered through pinned staging memory.

DMA needs pinned (page-locked) memory. For pageable memory the driver stages copies itself, in one thread that waits for
the card. Here each thread fills one staging buffer while the card reads its other one; the loops are compiled and run
without the GIL (pinned_copies.py). Page faults are hidden too (pinned.py): while the input is uploaded, other threads
touch the pages of a newly allocated result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from ...types.libraries import cupy
from ..addresses import address_of
from ..base import Copies, HostArray
from ..cpu.pool import shared_pool, slices
from .pinned import Bytes, is_mapped, touch, touch_by_threads

if TYPE_CHECKING:
    from cupy.cuda import Stream

    from .pinned_copies import Numbers, Way

PIECE_BYTES = 4 << 20
LEAST_BYTES = 16 << 20  # below, the driver's own copy is as fast
_MOST_LANES = {"send": 12, "fetch": 6}  # copying threads: more take memory bandwidth from copies the other way
_ALIGNMENT = 1 << 12  # bytes: pieces are a multiple of this
_SLOTS = 2  # staging buffers of a lane (double buffering)
_KEPT = 2  # idle rings kept for each device: transfers that may run at once without allocating


class _Lane:
    """The staging buffers of one copying thread, with an event each. Freed only when no copy uses them."""

    def __init__(self) -> None:
        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(_SLOTS)]
        self._of_slots = np.array([event.ptr for event in self._events], np.int64)
        self._held = np.zeros_like(self._of_slots)
        self._memory = cupy.cuda.alloc_pinned_memory(_SLOTS * PIECE_BYTES)

    @property
    def staging(self) -> tuple[int, Numbers, Numbers]:
        """The address of the first buffer; the events; the pieces that are in the buffers."""
        return self._memory.ptr, self._of_slots, self._held

    def wait(self) -> None:
        """Waits until no copy is in flight."""
        for event in getattr(self, "_events", ()):  # absent if __init__ was interrupted
            event.synchronize()

    def __del__(self) -> None:
        self.wait()


_Ring: TypeAlias = list[_Lane]


def _bytes(copies: Copies) -> int:
    return sum(array.nbytes for _, array in copies)


def _pieces(address: int, array: HostArray, nbytes: int) -> Numbers:
    """An array cut into pieces of up to `nbytes`: rows of device address, host address and bytes."""
    starts = np.arange(0, array.nbytes, nbytes, dtype=np.int64)
    sizes = np.minimum(np.int64(array.nbytes) - starts, np.int64(nbytes))
    return np.stack([starts + np.int64(address), starts + np.int64(address_of(array)), sizes], axis=1)


@attrs.define
class Transfers:
    """Copies to and from cards. Staging memory is reused between arrays. A transfer takes a ring (lanes of all its
    threads) for itself, so no lock is needed, which an interrupt could leave held."""

    _rings: dict[int, deque[_Ring]] = attrs.field(factory=dict[int, deque[_Ring]])  # idle ones by device (events' own)

    def upload(self, copies: Copies, stream: Stream, later: Sequence[Bytes] = ()) -> None:
        """Queues copies of arrays to addresses on the current card. The arrays may be changed as soon as this returns,
        unless they are pinned or small (then after the stream). `later` is host memory to be written afterwards: pages
        of it that are not there yet are touched meanwhile, which overwrites them."""
        runtime = cupy.cuda.runtime
        if _bytes(copies) < LEAST_BYTES or is_pinned(copies[0][1]):
            for address, array in copies:
                runtime.memcpyAsync(address, address_of(array), array.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            for part in _absent(later):
                touch_by_threads(part)
            return
        self._in_lanes("send", copies, stream, later)

    def download(self, copies: Copies, stream: Stream) -> None:
        """Copies from addresses on the current card into arrays, which are complete once the stream is."""
        runtime = cupy.cuda.runtime
        staged: list[tuple[int, HostArray]] = []
        for address, array in copies:
            if is_copied_directly(array):
                runtime.memcpyAsync(address_of(array), address, array.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            else:
                staged.append((address, array))
        if staged:
            self._in_lanes("fetch", staged, stream, ())

    def _in_lanes(self, way: Way, copies: Copies, stream: Stream, later: Sequence[Bytes]) -> None:
        """Lets threads take pieces of arrays in turn, each with a lane. With pages to touch, at least half of all
        threads do that."""
        from .pinned_copies import moving

        pool, device = shared_pool(), cupy.cuda.runtime.getDevice()
        absent = _absent(later)
        threads = max(1, pool.threads // 2) if absent else pool.threads
        nbytes, lanes = _bytes(copies), min(threads, _MOST_LANES[way])
        turns = -(-nbytes // (lanes * PIECE_BYTES))
        each = -(-nbytes // (lanes * turns) // _ALIGNMENT) * _ALIGNMENT  # as many for each lane, if there is one array
        pieces = np.concatenate([_pieces(address, array, each) for address, array in copies])
        pages = [part[piece] for part in absent for piece in slices(part.size, max(1, pool.threads - lanes))]
        rings = self._rings.setdefault(device, deque(maxlen=_KEPT))
        try:
            ring = rings.pop()
        except IndexError:
            ring = _Ring()
        ring.extend(_Lane() for _ in range(lanes - len(ring)))
        cupy.cuda.runtime.setDevice(device)  # a new thread has no CUDA context, and cupy sets none for device 0
        said = np.zeros(lanes, np.int64)
        move = moving(way, said, pieces, cupy.cuda.driver.ctxGetCurrent(), stream.ptr, PIECE_BYTES)

        def work(number: int) -> None:
            if number < lanes:
                move(number, *ring[number].staging)
            else:
                touch(pages[number - lanes])

        try:
            pool.run(work, lanes + len(pages))
        except BaseException:
            for lane in ring:  # now rather than in __del__, which would swallow a second interrupt
                lane.wait()
            raise
        if said.any():
            raise cupy.cuda.driver.CUDADriverError(int(said[said != 0][0]))
        rings.append(ring)


def _absent(arrays: Sequence[Bytes]) -> list[Bytes]:
    """Those whose pages are to be touched."""
    return [array for array in arrays if not is_mapped(array)]


def is_copied_directly(array: HostArray) -> bool:
    """Whether the driver's own copy is as fast: the array is small or already pinned."""
    return array.nbytes < LEAST_BYTES or is_pinned(array)


def is_pinned(array: HostArray) -> bool:
    runtime = cupy.cuda.runtime
    return runtime.pointerGetAttributes(address_of(array)).type != runtime.memoryTypeUnregistered


def bytes_of(array: HostArray) -> Bytes:
    return array.reshape(-1).view(np.uint8)
