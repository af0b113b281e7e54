"""Out-of-core calls on many rows, in batches of whole rows; and arrays that lie on a device for a whole call."""

from __future__ import annotations

from ...external.in_pieces import Piece, each_through, piece_length
from ...operations.base import Operation
from ...targets.base import HasRoom
from ...types.dtypes import native
from ...types.errors import CapabilityError
from ...types.specs import Spec
from .desk import Desk, DType, Flat, InPieces, Task, bytes_of, fitting, specs_on_device

LEAST_BYTES = 1 << 20  # fewer are turned on the host, in as much time as it takes to find out what fits
LEAST_BYTES_OF_SEVERAL = 1 << 24  # fewer travel back and forth in as much time as it takes to make room


def rows_in_pieces(
    operation: Operation, rows: int, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
) -> InPieces | None:
    """Batches of whole rows, which are independent. None if no row fits, or is longer than kernels take."""

    def made(batch: int) -> InPieces:
        counts = {batch, rows % batch or batch}
        tasks = {count: Task.of(operation, specs_on_device((count, length), dtypes), target) for count in counts}
        return _in_batches(rows, length, tasks, target)

    try:
        return fitting(piece_length(rows, length * dtypes[0].itemsize), made, free)
    except CapabilityError:
        return None


def whole_at_once(operation: Operation, spec: Spec, target: HasRoom) -> InPieces | None:
    """All of a C-contiguous array, as it lies. None if it has more elements than kernels count."""
    try:
        task = Task.of(operation, specs_on_device(spec.shape, (native(spec.dtype),)), target)
    except CapabilityError:
        return None
    return _in_batches(1, spec.size, {1: task}, target)


def _in_batches(rows: int, length: int, tasks: dict[int, Task], target: HasRoom) -> InPieces:
    """With tasks by the rows of a batch: of most of them, and of the last."""
    batch = max(tasks)

    def through(desk: Desk, arrays: Flat, outs: Flat) -> None:
        each, pieces = [out.size // rows for out in outs], list[Piece[Task]]()
        for first in range(0, rows, batch):
            last = min(first + batch, rows)
            left = [out[first * count : last * count] for out, count in zip(outs, each, strict=True)]
            pieces.append(Piece([[arrays[0][first * length : last * length]]], tasks[last - first], left))
        each_through(desk, pieces)

    return InPieces(target, list(tasks.values()), through)


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
