"""Out-of-core calls on many rows, in batches of whole rows; and arrays that lie on a device for a whole call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ...external.in_pieces import Piece, each_through, piece_length
from ...operations.base import Operation
from ...targets.base import HasRoom
from ...types.dtypes import native
from ...types.errors import CapabilityError
from ...types.specs import HostArray, Spec
from .desk import Desk, DType, Flat, InPieces, Task, bytes_of, fitting, specs_on_device

LEAST_BYTES = 1 << 20  # fewer are turned on the host, in as much time as it takes to find out what fits
LEAST_BYTES_OF_SEVERAL = 1 << 24  # fewer travel back and forth in as much time as it takes to make room


@attrs.frozen(eq=False)
class RowsInPieces(InPieces):
    """Batches of whole rows, which are independent."""

    target: HasRoom
    rows: int
    length: int
    tasks: dict[int, Task]  # by rows of a batch: of most of them, and of the last

    @classmethod
    def of(
        cls, operation: Operation, rows: int, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> RowsInPieces | None:
        def made(batch: int) -> RowsInPieces:
            counts = {batch, rows % batch or batch}
            tasks = {count: Task.of(operation, specs_on_device((count, length), dtypes), target) for count in counts}
            return cls(target, rows, length, tasks)

        try:
            return fitting(piece_length(rows, length * dtypes[0].itemsize), made, free)
        except CapabilityError:  # of a row longer than kernels take
            return None

    @classmethod
    def whole(cls, operation: Operation, spec: Spec, target: HasRoom) -> RowsInPieces | None:
        """All of a C-contiguous array at once, as it lies. None if it has more elements than kernels count."""
        try:
            task = Task.of(operation, specs_on_device(spec.shape, (native(spec.dtype),)), target)
        except CapabilityError:
            return None
        return cls(target, 1, spec.size, {1: task})

    def needed(self) -> Sequence[Task]:
        return list(self.tasks.values())

    def through(self, desk: Desk, arrays: Flat, outs: Flat, /) -> None:
        each_through(desk, list(self._pieces(arrays[0], outs)))

    def _pieces(self, x: HostArray, outs: Flat) -> Iterator[Piece[Task]]:
        batch, each = max(self.tasks), [out.size // self.rows for out in outs]
        for first in range(0, self.rows, batch):
            last = min(first + batch, self.rows)
            given = x[first * self.length : last * self.length]
            left = [out[first * count : last * count] for out, count in zip(outs, each, strict=True)]
            yield Piece([[given]], self.tasks[last - first], left)


def is_better_whole(operation: Operation, specs: tuple[Spec, ...], target: HasRoom) -> bool:
    """Whether a call had better run on the device from packing to unpacking, if that holds all of it.

    Rows that do not follow each other travel as they lie then, and are turned there: on the host that would be a loop
    over strides, which takes many times as long as all the rest. And what takes several schedules, as a stable sort of
    floats does, would come back to the host after each.
    """
    (spec, *others), ndim = specs, len(specs[0].shape)
    axes = operation.axes(spec)
    follow = axes == tuple(range(ndim - len(axes), ndim))
    if others or bytes_of(spec) < (LEAST_BYTES_OF_SEVERAL if follow else LEAST_BYTES):
        return False
    return not follow or len(operation.works(specs, target.info)) > 1
