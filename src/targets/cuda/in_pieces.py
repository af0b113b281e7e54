"""Host arrays that a card cannot hold: sorted in pieces, which travel both ways at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import attrs
import numpy as np

from ...external.in_pieces import PieceSort, piece_length
from ...external.order import transform_of
from ...external.pipeline import SLOTS
from ...kernel.launch import Schedule
from ...operations.base import Operation, Work, rows_of
from ...operations.sort import Sort
from ...types.errors import CapabilityError
from ...types.specs import Memory, Spec
from .errors import device_errors
from .transfers import Transfers, bytes_of

if TYPE_CHECKING:
    import cupy

    from .target import CudaTarget

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

_COPIES = 3  # of an array: itself, its result, and what a sort works in
_PIECES = 2 * SLOTS + 1  # of a piece, likewise
_ALWAYS_FITS = 1 << 26  # bytes of an array for which it is not asked
_SPARE = 1 << 26  # bytes for what sorts count


def can_be_in_pieces(operation: Operation, given: Sequence[Spec]) -> TypeGuard[Sort]:
    """Whether this is a sort of one row that might be too long."""
    if not isinstance(operation, Sort) or operation.algorithm is not None:
        return False
    (x,) = given
    rows, length = rows_of(x, operation.axes(0, x))
    return rows == 1 and x.strides is None and x.is_plain and length * x.dtype.itemsize > _ALWAYS_FITS


def free_bytes() -> int:
    """What cupy would give on the current card: within the limit of its pool, if one is set."""
    import cupy

    pool, (free, _) = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo()
    limit = pool.get_limit()
    found = free + pool.free_bytes()
    return min(found, limit - pool.used_bytes()) if limit else found


@attrs.frozen(eq=False)
class SortInPieces:
    """The target's own way for one row of the host, if it is needed."""

    target: CudaTarget
    operation: Sort
    transfers: Transfers

    def is_needed(self, nbytes: int) -> bool:
        return _COPIES * nbytes + _SPARE > free_bytes()

    def __call__(self, x: HostArray, /) -> HostArray:
        out = np.empty_like(x)
        self.into((x,), (out,))
        return out

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray], /) -> None:
        """In place, an exception leaves the elements there in no order, and some of them twice."""
        import cupy

        source, out = arrays[0].reshape(-1), outs[0].reshape(-1)
        itemsize = source.dtype.itemsize
        most = (free_bytes() - _SPARE) // (_PIECES * itemsize)
        if most < 1:
            raise CapabilityError(
                f"x: the card has {free_bytes():,} bytes free, too little to sort {source.nbytes:,} bytes in pieces"
            )
        length = piece_length(source.size, itemsize, most)
        card = _Card(self.target, self.operation, self.transfers, cupy.cuda.runtime.getDevice(), source.dtype, length)
        asked = self.operation
        words = transform_of(source.dtype, asked.order, ranks=asked.stable, key=asked.key)
        with device_errors():
            PieceSort(card, words, length).into(source, out)


class _Card:
    """Room on a card, and a stream for each kind of work."""

    def __init__(
        self, target: CudaTarget, operation: Sort, transfers: Transfers, device: int, dtype: np.dtype[Any], length: int
    ) -> None:
        import cupy

        self._target, self._operation, self._transfers, self._device = target, operation, transfers, device
        self._dtype, bits = dtype, np.dtype(f"u{dtype.itemsize}")  # cupy has no dtype for times
        self._given = [cupy.empty(length, bits) for _ in range(SLOTS)]
        self._sorted = [cupy.empty(length, bits) for _ in range(SLOTS)]
        self._there, self._work, self._back = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))
        self._works: dict[int, list[tuple[Work, Schedule]]] = {}
        cupy.cuda.get_current_stream().synchronize()  # what had this memory before may still be at work

    def upload(self, slot: int, parts: list[HostArray], later: HostArray, /) -> None:
        import cupy

        with cupy.cuda.Device(self._device):
            self._transfers.upload_parts(self._given[slot].data.ptr, parts, self._there, [bytes_of(later)])
            self._there.synchronize()

    def sort(self, slot: int, count: int, /) -> None:
        import cupy

        arrays = (self._given[slot][:count], self._sorted[slot][:count])
        with cupy.cuda.Device(self._device), self._work:
            for work, schedule in self._schedules(count):
                for copied in work.copies:
                    cupy.copyto(arrays[copied.to], arrays[copied.source])
                named = {name: self._seen(arrays[part.array], schedule, name) for name, part in work.parts.items()}
                if schedule.launches:
                    self._target.run(schedule, named)
            self._work.synchronize()

    def download(self, slot: int, elements: HostArray, /) -> None:
        import cupy

        with cupy.cuda.Device(self._device):
            self._transfers.download(self._sorted[slot].data.ptr, elements, self._back)
            self._back.synchronize()

    def _schedules(self, count: int) -> list[tuple[Work, Schedule]]:
        if count not in self._works:
            operation = attrs.evolve(self._operation, axis=0)
            spec = Spec((count,), self._dtype, Memory.CUDA)
            works = operation.works((spec,), self._target.info, False)
            assert works is not None  # not in place
            self._works[count] = [(work, work.schedule(work.rows)) for work in works]
        return self._works[count]

    @staticmethod
    def _seen(array: cupy.ndarray, schedule: Schedule, name: str) -> cupy.ndarray:
        """As the elements of a buffer."""
        dtype = next((buffer.dtype for buffer in schedule.buffers if buffer.name == name), array.dtype)
        return array if array.dtype == dtype else array.view(dtype)
