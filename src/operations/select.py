"""The first k of every row in order, each with where it stands."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..algos.choice import choose_top_k
from ..algos.select import top_k
from ..kernel.launch import Schedule
from ..machine import TargetInfo
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.specs import Spec
from .argsort import INDEX
from .base import HostArray, Operation, Output, Part, Work, checked_axis, key_of, rows_of


@attrs.frozen
class TopK(Operation):
    """Values, and their indices along the axis. In order; of equals the first come first."""

    k: int
    axis: int | None = -1
    order: SortOrder = SortOrder.DESCENDING
    in_order: bool = True  # else any order will do, though it is the same every time
    key: SortableKey[Any, Any] | None = None

    def axes(self, number: int, given: Spec) -> tuple[int, ...]:
        ndim = len(given.shape)
        return tuple(range(ndim)) if self.axis is None else (checked_axis(self.axis, ndim),)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        key_of("x", x, self.key)
        axes = self.axes(0, x)
        _, length = rows_of(x, axes)
        if self.k > length:
            raise InvalidArgumentError(f"k: expected 0 to the {length} elements of a row, found {self.k}")
        if self.axis is None:
            shape: tuple[int, ...] = (self.k,)
            axes = (0,)
        else:
            shape = tuple(self.k if axis in axes else size for axis, size in enumerate(x.shape))
        return Output(shape, x.dtype, axes), Output(shape, INDEX, axes)

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        values, indices = self.outputs(*given)
        if given[0].size and self.k:
            return None
        return np.empty(values.shape, values.dtype), np.empty(indices.shape, INDEX)

    def works(self, given: tuple[Spec, ...], info: TargetInfo, in_place: bool) -> tuple[Work, ...] | None:
        (x,) = given
        key, (rows, length) = key_of("x", x, self.key), rows_of(x, self.axes(0, x))
        selection = choose_top_k(info, key, rows, length, self.k)
        together = min(rows, selection.most_rows(key, length, self.k, info.limits))
        if together < 1:
            raise CapabilityError(f"x: a row of {length} elements is more than target {info.name!r} takes")

        def schedule(count: int) -> Schedule:
            return top_k(key, count, length, self.k, self.order, selection)

        parts = {"data": Part(0, length), "values": Part(1, self.k), "indices": Part(2, self.k)}
        return (Work(rows, together, schedule, parts),)
