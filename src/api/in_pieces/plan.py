"""The plan for host arrays that may exceed device memory, or are transposed there: each call asks how much is free.

All ways to do a call in pieces work on arrays laid out in rows. Where a device holds several rows at once, batches of
rows travel. A longer row that is sorted is cut into runs and buckets; two that are merged are runs already. Of any
other, what kernels leave of a part for the next one, or for the end, stays on the device.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ...arrays.host import copy_elements, is_packed
from ...arrays.kinds import Located
from ...operations.argsort import Argsort, SortPairs
from ...operations.base import Operation
from ...operations.merge import Merge
from ...operations.reduce import Fold, Reduce, Reduction
from ...operations.scan import Scanning
from ...operations.select import TopK
from ...operations.sort import Sort
from ...targets.base import HasRoom
from ...types.dtypes import native
from ...types.errors import CapabilityError, DeviceMemoryError
from ...types.specs import HostArray, Spec
from ..kernel_plan import KernelPlan
from ..plan import Arrays, Cost, Plan, require_fitting, results_of
from ..planning import new_host_arrays
from .candidates import CandidatesInPieces
from .desk import InPieces, bytes_of
from .rows import RowsInPieces, is_better_whole
from .sort import MergeInPieces, SortInPieces
from .works import WorksInPieces

ALWAYS_FIT = 1 << 26  # bytes of arrays for which it is not asked


@attrs.frozen(eq=False)
class PiecesPlan(Plan):
    """Runs a call at once if device memory suffices, or else in pieces."""

    kind: Located[HostArray]
    operation: Operation
    specs: tuple[Spec, ...]
    target: HasRoom
    whole: KernelPlan | CapabilityError  # which says why there is none
    is_better_whole: bool
    _last: list[tuple[int, InPieces]] = attrs.field(factory=list[tuple[int, InPieces]], init=False)

    @classmethod
    def of(
        cls, kind: Located[HostArray], operation: Operation, specs: tuple[Spec, ...], target: HasRoom,
        keeps_scratch: bool = False,
    ) -> Plan:  # fmt: skip
        """This plan, or for small arrays a plain KernelPlan."""
        try:
            whole: KernelPlan | CapabilityError = KernelPlan(kind, operation, specs, target, keeps_scratch)
        except CapabilityError as error:
            whole = error
        outputs = [Spec(output.shape, output.dtype) for output in operation.outputs(*specs)]
        better_whole = isinstance(whole, KernelPlan) and is_better_whole(operation, specs, target)
        if better_whole or sum(map(bytes_of, (*specs, *outputs))) > ALWAYS_FIT:
            return cls(kind, operation, specs, target, whole, better_whole)
        if isinstance(whole, CapabilityError):
            raise whole
        return whole

    def __call__(self, *arrays: Any) -> object:
        way = self._way(arrays)
        if isinstance(way, KernelPlan):
            return way(*arrays)
        outs = self.new_outputs(arrays)
        self._run(way, arrays, outs)
        return results_of(outs, self.operation.outputs(*self.specs))

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        way = self._way(arrays)
        if isinstance(way, KernelPlan):
            way.into(arrays, outs)
            return
        require_fitting(self.kind, outs, self.operation.outputs(*self.specs))
        self._run(way, arrays, outs)

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        return new_host_arrays(self.operation.outputs(*self.specs), arrays[0])

    def make_ready(self, arrays: Arrays) -> None:
        way = self._way(arrays)
        if isinstance(way, KernelPlan):
            way.make_ready(arrays)

    def cost(self) -> Cost:
        return Cost(0, None, None) if isinstance(self.whole, CapabilityError) else self.whole.cost()

    # -- in pieces ----------------------------------------------------------------------------------------

    @cached_property
    def _at_once(self) -> RowsInPieces | None:
        return RowsInPieces.whole(self.operation, self.specs[0], self.target) if self.is_better_whole else None

    def _way(self, arrays: Arrays) -> KernelPlan | InPieces:
        free, whole = self.target.free_bytes(), self.whole
        if self._at_once is not None and is_packed(arrays[0]) and self._at_once.demand.total <= free:
            return self._at_once
        if isinstance(whole, KernelPlan) and whole.device_bytes <= free:
            return whole
        for most, last in self._last:  # to choose anew takes some milliseconds
            if last.demand.total <= free <= most:
                return last
        way = _way_in_pieces(self.operation, self.specs, self.target, free)
        if way is not None:
            self._last[:] = [(free * 17 // 16, way)]
            return way
        if isinstance(whole, CapabilityError):
            raise CapabilityError(*whole.args)
        given = " and ".join(map(_told, self.operation.names, self.specs))
        raise DeviceMemoryError(
            f"{called(self.operation)} of {given} takes {whole.device_bytes:,} bytes of device memory on target "
            f"{self.target.info.name!r}, where {free:,} are free, and cannot be done in pieces so small; let go of "
            "arrays that lie there, work on parts, or use target='cpu'"
        )

    def _run(self, way: InPieces, arrays: Arrays, outs: Arrays) -> None:
        """Packs strided arrays into rows on the host before and after; not if the device transposes them."""
        turn = way is not self._at_once
        axes = [self.operation.axes(spec) if turn else () for spec in self.specs]
        results = [output.axes if turn else () for output in self.operation.outputs(*self.specs)]
        given = [_packed(_in_rows(array, own)) for array, own in zip(arrays, axes, strict=True)]
        targets = [_in_rows(out, own) for out, own in zip(outs, results, strict=True)]
        left = [
            out if is_packed(out) and _may_be_written(out, arrays, way) else np.empty(out.shape, native(out.dtype))
            for out in targets
        ]
        way.run([array.reshape(-1) for array in given], [array.reshape(-1) for array in left])
        for out, found in zip(targets, left, strict=True):
            if found is not out:
                copy_elements(found, out)


def _way_in_pieces(operation: Operation, specs: tuple[Spec, ...], target: HasRoom, free: int) -> InPieces | None:
    """The way that fits `free` bytes of device memory; None if there is none."""
    rows, length = operation.rows(specs[0])
    dtypes = tuple(native(spec.dtype) for spec in specs)
    if isinstance(operation, Merge):
        return MergeInPieces.of(operation, operation.outputs(*specs)[0].shape[0], dtypes, target, free)
    if not isinstance(operation, Sort | Argsort | TopK | Reduction | Scanning):
        return SortInPieces.of(operation, length, dtypes, target, free)
    turned = attrs.evolve(operation, axis=1)
    batches = None if rows == 1 else RowsInPieces.of(turned, rows, length, dtypes, target, free)
    if batches is not None:
        return batches
    if isinstance(operation, Sort | Argsort):
        return SortInPieces.of(turned, length, dtypes, target, free)
    parts = WorksInPieces.of(turned, rows, length, dtypes, target, free)
    return parts or CandidatesInPieces.of(turned, length, dtypes[0], target, free)


def _may_be_written(out: HostArray, arrays: Arrays, way: InPieces) -> bool:
    """Whether results may be written to `out` while inputs are still read."""
    if not any(np.may_share_memory(out, array) for array in arrays):
        return True
    x = arrays[0]
    return way.can_be_in_place and is_packed(x) and (x.ctypes.data, x.shape) == (out.ctypes.data, out.shape)


def _in_rows(array: HostArray, axes: tuple[int, ...]) -> HostArray:
    """The view with the axes of a row last."""
    return array.transpose(*(axis for axis in range(array.ndim) if axis not in axes), *axes)


def _packed(array: HostArray) -> HostArray:
    if is_packed(array):
        return array
    packed = np.empty(array.shape, native(array.dtype))
    copy_elements(array, packed)
    return packed


def _told(name: str, spec: Spec) -> str:
    return f"{name}, {bytes_of(spec):,} bytes of {spec.dtype} in shape {spec.shape},"


_CALLED: dict[type[Operation], str] = {SortPairs: "sort_by_key", TopK: "top_k", Fold: "reduce"}


def called(operation: Operation) -> str:
    """The public function's name, for messages."""
    if isinstance(operation, Reduce):
        return operation.reducer.value
    if isinstance(operation, Merge):
        return "merge_by_key" if operation.with_values else "merge"
    return _CALLED.get(type(operation), type(operation).__name__.lower())
