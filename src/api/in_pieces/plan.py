"""The plan for host arrays that may exceed device memory, or are transposed there: each call asks how much is free.

Where a device holds several rows at once, they are sent in batches. A longer row that is sorted is cut into runs and
buckets; two that are merged are runs already. Of any other, what a part leaves for the next one stays on the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.host import copy_elements, is_packed
from ...arrays.kinds import Located
from ...operations.argsort import Argsort
from ...operations.base import Operation
from ...operations.merge import Merge
from ...operations.sort import Sort
from ...targets.base import HasRoom
from ...types.dtypes import native
from ...types.errors import CapabilityError, DeviceMemoryError
from ...types.specs import HostArray, Memory, Spec
from ..kernel_plan import KernelPlan
from ..plan import Arrays, Cost, Plan, overlap_partly, require_fitting, results_of
from .desk import InPieces, specs_on_device
from .parts import candidates_in_pieces, rows_in_pieces, whole_at_once, works_in_pieces
from .sort import merge_in_pieces, sort_in_pieces

ALWAYS_FIT = 1 << 26  # bytes of arrays for which it is not asked
LEAST_BYTES = 1 << 20  # fewer are turned on the host, in as much time as it takes to find out what fits
LEAST_BYTES_OF_SEVERAL = 1 << 24  # fewer are transferred both ways in as much time as it takes to make room


class PiecesPlan(Plan):
    """Runs a call at once if device memory suffices, or else in pieces."""

    def __init__(
        self, kind: Located[HostArray], operation: Operation, specs: tuple[Spec, ...], target: HasRoom,
        whole: KernelPlan | CapabilityError, at_once: InPieces | None,
    ) -> None:  # fmt: skip
        """`whole` is the plan of the whole call, or the error that says why there is none. `at_once` runs it as a
        single piece, without packing."""
        self.kind, self.operation, self.specs, self.target = kind, operation, specs, target
        self._whole, self._at_once = whole, at_once
        self._last: tuple[int, InPieces] | None = None  # with the most free memory for which it is right

    @classmethod
    def of(
        cls, kind: Located[HostArray], operation: Operation, specs: tuple[Spec, ...], target: HasRoom,
        keeps_scratch: bool = False,
    ) -> Plan:  # fmt: skip
        """This plan, or for small arrays a plain KernelPlan."""
        outputs = [Spec(output.shape, output.dtype) for output in operation.outputs(*specs)]
        always_fits = sum(spec.nbytes for spec in (*specs, *outputs)) <= ALWAYS_FIT
        try:
            whole = KernelPlan(kind, operation, specs, target, keeps_scratch)
        except CapabilityError as error:
            if always_fits:
                raise
            return cls(kind, operation, specs, target, error, None)
        better_whole = _is_better_whole(operation, specs, target)
        if always_fits and not better_whole:
            return whole
        at_once = whole_at_once(operation, specs[0], target) if better_whole else None
        return cls(kind, operation, specs, target, whole, at_once)

    def run(self, *arrays: Any) -> object:
        way = self._way(arrays)
        if isinstance(way, KernelPlan):
            return way.run(*arrays)
        outs = self.new_outputs(arrays)
        self._send(way, arrays, outs)
        return results_of(outs, self.operation.outputs(*self.specs))

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        way = self._way(arrays)
        if isinstance(way, KernelPlan):
            way.into(arrays, outs)
            return
        require_fitting(self.kind, outs, self.operation.outputs(*self.specs))
        self._send(way, arrays, outs)

    def make_ready(self, arrays: Arrays) -> None:
        way = self._way(arrays)
        if isinstance(way, KernelPlan):
            way.make_ready(arrays)

    def cost(self) -> Cost:
        return Cost(0, None, None) if isinstance(self._whole, CapabilityError) else self._whole.cost()

    def _way(self, arrays: Arrays) -> KernelPlan | InPieces:
        free, whole, last = self.target.free_bytes(), self._whole, self._last
        if self._at_once is not None and is_packed(arrays[0]) and self._at_once.nbytes <= free:
            return self._at_once
        if isinstance(whole, KernelPlan) and whole.device_bytes <= free:
            return whole
        if last is not None and last[1].nbytes <= free <= last[0]:  # to choose anew takes some milliseconds
            return last[1]
        way = _way_in_pieces(self.operation, self.specs, self.target, free)
        if way is not None:
            self._last = free * 17 // 16, way
            return way
        if isinstance(whole, CapabilityError):
            raise CapabilityError(*whole.args)
        given = " and ".join(map(_told, self.operation.names, self.specs))
        raise DeviceMemoryError(
            f"{self.operation.called} of {given} takes {whole.device_bytes:,} bytes of device memory on target "
            f"{self.target.info.name!r}, where {free:,} are free, and cannot be done in pieces so small; let go of "
            "arrays that lie there, work on parts, or use target='cpu'"
        )

    def _send(self, way: InPieces, arrays: Arrays, outs: Arrays) -> None:
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
        return merge_in_pieces(operation, operation.outputs(*specs)[0].shape[0], dtypes, target, free)
    turned = operation.on_rows() if len({spec.shape for spec in specs}) == 1 else None
    if turned is None:
        given = tuple(Spec(spec.shape, dtype, Memory.CUDA) for spec, dtype in zip(specs, dtypes, strict=True))
        return sort_in_pieces(operation, length, dtypes, target, free) or works_in_pieces(
            operation, given, target, free
        )
    batches = None if rows == 1 else rows_in_pieces(turned, rows, length, dtypes, target, free)
    if batches is not None:
        return batches
    if isinstance(operation, Sort | Argsort):
        return sort_in_pieces(turned, length, dtypes, target, free)
    parts = works_in_pieces(turned, specs_on_device((rows, length), dtypes), target, free)
    return parts or candidates_in_pieces(turned, length, dtypes[0], target, free)


def _is_better_whole(operation: Operation, specs: tuple[Spec, ...], target: HasRoom) -> bool:
    """Whether a call should pack and unpack on the device, if everything fits into its memory: where rows are not
    contiguous, as the host's loop over strides takes many times as long as the rest; and where a call has several
    schedules, which would return to the host after each."""
    (spec, *others), ndim = specs, len(specs[0].shape)
    axes = operation.axes(spec)
    follow = axes == tuple(range(ndim - len(axes), ndim))
    if others or spec.nbytes < (LEAST_BYTES_OF_SEVERAL if follow else LEAST_BYTES):
        return False
    return not follow or len(operation.works(specs, target.info)) > 1


def _may_be_written(out: HostArray, arrays: Arrays, way: InPieces) -> bool:
    """Whether results may be written to `out` while inputs are still read."""
    share = overlap_partly if way.can_be_in_place else np.may_share_memory
    return not any(share(array, out) for array in arrays)


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
    return f"{name}, {spec.nbytes:,} bytes of {spec.dtype} in shape {spec.shape},"
