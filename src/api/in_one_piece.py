"""Host arrays whose whole call runs on the device, from packing to unpacking, where device memory holds all of it.

Rows that do not follow each other travel as they lie, and are turned there: on the host that would be a loop over
strides, which takes many times as long as all the rest. And what takes several schedules, as a stable sort of floats
does, would come back to the host after each."""

from __future__ import annotations

from functools import cached_property

import attrs

from ..external.in_pieces import Piece, each_through
from ..operations.base import Operation
from ..targets.base import HasRoom
from ..types.dtypes import native
from ..types.errors import CapabilityError
from ..types.specs import Spec
from .desk import Demand, Desk, Flat, Task, bytes_of, specs_on_device

LEAST_BYTES = 1 << 20  # fewer are turned on the host, in as much time as it takes to find out what fits
LEAST_BYTES_OF_SEVERAL = 1 << 24  # fewer travel back and forth in as much time as it takes to make room


@attrs.frozen(eq=False)
class InOnePiece:
    """A call of one C-contiguous array."""

    operation: Operation
    specs: tuple[Spec, ...]
    target: HasRoom

    can_be_in_place = False

    @classmethod
    def of(cls, operation: Operation, specs: tuple[Spec, ...], target: HasRoom) -> InOnePiece | None:
        """None for a single schedule on contiguous rows, which needs no packing, and for small arrays."""
        (spec, *others), ndim = specs, len(specs[0].shape)
        axes = operation.axes(0, spec)
        follow = axes == tuple(range(ndim - len(axes), ndim))
        if others or bytes_of(spec) < (LEAST_BYTES_OF_SEVERAL if follow else LEAST_BYTES):
            return None
        is_one = follow and len(operation.works(specs, target.info, in_place=False) or ()) < 2
        return None if is_one else cls(operation, specs, target)

    @cached_property
    def _task(self) -> Task | None:
        (spec,) = self.specs
        try:
            return Task.of(self.operation, specs_on_device(spec.shape, (native(spec.dtype),)), self.target)
        except CapabilityError:  # of more elements than kernels count
            return None

    def fits(self, free: int) -> bool:
        return self._task is not None and Demand.of([self._task]).total <= free

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        assert self._task is not None, "it fits"
        demand = Demand.of([self._task])
        with self.target.room(demand.total) as room:
            each_through(Desk(self.target, room, demand), [Piece([[x] for x in arrays], self._task, list(outs))])
