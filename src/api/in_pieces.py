"""Out-of-core calls: how each operation on host arrays larger than device memory is cut into pieces.

All work on arrays laid out in rows. Where a device holds several rows at once, batches of rows travel. A longer row
that is sorted is cut into runs and buckets; two that are merged are runs already. Of any other, what kernels leave of a
part for the next one, or for the end, stays on the device.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, TypeGuard

import attrs

from ..operations.argsort import Argsort
from ..operations.base import Operation, rows_of
from ..operations.merge import Merge
from ..operations.reduce import Reduction
from ..operations.scan import Scanning
from ..operations.select import TopK
from ..operations.sort import Sort
from ..targets.base import HasRoom
from ..types.dtypes import native
from ..types.specs import Spec
from .candidates_in_pieces import CandidatesInPieces
from .desk import Flat
from .merge_in_pieces import MergeInPieces
from .rows_in_pieces import RowsInPieces
from .sort_in_pieces import SortInPieces
from .works_in_pieces import WorksInPieces

ByRows: TypeAlias = Sort | Argsort | TopK | Reduction | Scanning


class InPieces(Protocol):
    """A way to run a call in pieces, sized for the memory that was free."""

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        """Runs the call. Outputs may be the inputs' memory if `can_be_in_place`."""
        ...

    @property
    def can_be_in_place(self) -> bool:
        """Whether it works in place so that an exception loses no element."""
        ...


def way_in_pieces(operation: Operation, specs: tuple[Spec, ...], target: HasRoom, free: int) -> InPieces | None:
    """The way that fits `free` bytes of device memory; None if there is none."""
    rows, length = rows_of(specs[0], operation.axes(0, specs[0]))
    dtypes = tuple(native(spec.dtype) for spec in specs)
    if isinstance(operation, Merge):
        return MergeInPieces.of(operation, operation.outputs(*specs)[0].shape[0], dtypes, target, free)
    if not _goes_by_rows(operation):
        return SortInPieces.of(operation, length, dtypes, target, free)
    turned = attrs.evolve(operation, axis=1)
    batches = None if rows == 1 else RowsInPieces.of(turned, rows, length, dtypes, target, free)
    if batches is not None:
        return batches
    if isinstance(operation, Sort | Argsort):
        return SortInPieces.of(turned, length, dtypes, target, free)
    parts = WorksInPieces.of(turned, rows, length, dtypes, target, free)
    return parts or CandidatesInPieces.of(turned, length, dtypes[0], target, free)


def _goes_by_rows(operation: Operation) -> TypeGuard[ByRows]:
    return isinstance(operation, Sort | Argsort | TopK | Reduction | Scanning)
