"""Sorting along an axis."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..algos.choice import fitting_sort
from ..algos.sorts import Placement, SortAlgorithm, fitted
from ..kernel.launch import Schedule
from ..machine import TargetInfo
from ..types.errors import CapabilityError
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.specs import Spec
from .argsort import Argsort
from .base import HostArray, Operation, Output, Part, Work, checked_axis, key_of, rows_of


@attrs.frozen
class Sort(Operation):
    """A sorted copy; in place, if input and output are one array."""

    axis: int | None = -1
    order: SortOrder = SortOrder.ASCENDING
    stable: bool = False
    key: SortableKey[Any, Any] | None = None
    algorithm: SortAlgorithm | None = None

    def axes(self, number: int, given: Spec) -> tuple[int, ...]:
        return tuple(range(len(given.shape))) if self.axis is None else (checked_axis(self.axis, len(given.shape)),)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        key_of("x", x, self.key)
        if self.axis is None:
            return (Output((x.size,), x.dtype, (0,)),)
        return (Output(x.shape, x.dtype, self.axes(0, x), is_like=True),)

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        return None if given[0].size else (np.empty(self.outputs(*given)[0].shape, given[0].dtype),)

    def instead(self, given: tuple[Spec, ...], info: TargetInfo) -> Operation | None:
        if self.stable and given[0].dtype.kind == "f":
            return Argsort(self.axis, self.order, self.key)
        return None

    def works(self, given: tuple[Spec, ...], info: TargetInfo, in_place: bool) -> tuple[Work, ...] | None:
        (x,) = given
        key, (rows, length) = key_of("x", x, self.key), rows_of(x, self.axes(0, x))
        if self.algorithm is not None:
            chosen = fitted(self.algorithm, key, length, info)
        elif length < 2:
            return (Work(rows, rows, lambda count: Schedule((), ()), {}, ((1, 0),)),)
        else:
            chosen = fitting_sort(info, key, rows, length)
        placements = chosen.placements(key)
        if in_place and Placement.IN_PLACE not in placements:
            return None
        placement = Placement.ELSEWHERE if Placement.ELSEWHERE in placements and not in_place else Placement.IN_PLACE
        together = sorted_together(chosen, length, x.dtype.itemsize, info)
        parts = {"data": Part(0, length), "results": Part(1, length)}
        copies: tuple[tuple[int, int], ...] = ()
        if placement is Placement.IN_PLACE:
            parts, copies = {"data": Part(1, length)}, () if in_place else ((1, 0),)

        def schedule(count: int) -> Schedule:
            return chosen.schedule(key, count, length, self.order, placement)

        return (Work(rows, together, schedule, parts, copies),)


def sorted_together(chosen: SortAlgorithm, length: int, itemsize: int, info: TargetInfo) -> int:
    """Rows a launch; CapabilityError where one row is too much."""
    length = max(1, length)
    fitting, sortable = info.limits.storage_bytes // (length * itemsize), chosen.most_rows(length, info.limits.groups)
    row = f"x: a row of {length} elements of {itemsize} bytes is more than"
    if fitting < 1:
        most = info.limits.storage_bytes // itemsize
        raise CapabilityError(f"{row} target {info.name!r} takes: at most {most} elements")
    if sortable < 1:
        raise CapabilityError(f"{row} {chosen} takes on target {info.name!r}")
    return min(fitting, sortable)
