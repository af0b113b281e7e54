"""Axes by their strides: a permuted array is seen as the packed one that it is a view of.

Kernels then run on rows as they lie, and new results have the input's order of axes in memory, as NumPy's do.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from ..arrays.kinds import Located
from ..operations.base import Operation
from ..types.specs import Spec, lies_packed, order_of_axes

Order: TypeAlias = tuple[int, ...]


@attrs.frozen
class Ordered:
    """An operation on inputs whose axes are permuted to the order in which they lie."""

    operation: Operation
    specs: tuple[Spec, ...]
    axes: Order | None  # the caller's, in that order; None if they are as the caller has them

    @classmethod
    def of(cls, kind: Located[object], operation: Operation, specs: tuple[Spec, ...]) -> Ordered:
        x = specs[0]
        if kind.has_strides and x.strides is not None and len(specs) == 1:
            axes = order_of_axes(x.shape, x.strides)
            permuted = operation.permuted(axes) if axes != (*range(len(axes)),) else None
            if permuted is not None:
                shape, strides = (tuple(line[axis] for axis in axes) for line in (x.shape, x.strides))
                packed = lies_packed(shape, strides, x.dtype.itemsize)
                return cls(permuted, (attrs.evolve(x, shape=shape, strides=None if packed else strides),), axes)
        return cls(operation, specs, None)

    def of_result(self, ndim: int, reduced: Order) -> Order | None:
        """The axes of a result of this many dimensions; `reduced` are the input's that it may lack."""
        if self.axes is None or ndim == len(self.axes):
            return self.axes
        kept = [axis for axis in self.axes if axis not in reduced]
        return tuple(sorted(kept).index(axis) for axis in kept)
