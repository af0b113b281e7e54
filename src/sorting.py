"""From operands to schedules: where the rows lie, where they go, and how many a target takes at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import attrs
import numpy as np

from .algos.choice import fitting_sort
from .algos.sorts import Placement, SortAlgorithm, fitted
from .arrays import HostArray, HostOperand, Operand
from .kernel.launch import Schedule
from .targets.base import Target, sorts_rows
from .targets.registry import Memory
from .types.dtypes import ArrayKey
from .types.elements import dtype_of
from .types.errors import CapabilityError
from .types.indices import SortOrder


def sort_into(
    source: Operand, destination: Operand, axis: int, key: ArrayKey, order: SortOrder, stable: bool, target: Target,
    algorithm: SortAlgorithm | None,
) -> None:  # fmt: skip
    """Sorts `source` along an axis into `destination`, which may be the same array."""
    rows = source.along([axis])
    result = rows if destination is source else destination.along([axis])
    with source.working():
        is_stable = stable and source.dtype.kind == "f"
        if algorithm is None and not is_stable and _sorted_as_they_lie(rows, result, order, target):
            return
        chosen = _algorithm_for(rows, key, target, algorithm)  # or an error, before anything is written
        ties = rows.ties() if is_stable else None
        work = result if result.is_packed else rows.pack()
        data = rows if rows.is_packed and work is result else work
        if work is result and data is not rows:
            work.assign(rows)
        is_only_copy = work is result and destination is source
        _sort_rows(data, work, key, order, target, chosen, is_only_copy)
        if ties is not None:
            work.restore(ties)
        if work is not result:
            result.assign(work)


def _sorted_as_they_lie(rows: Operand, results: Operand, order: SortOrder, target: Target) -> bool:
    """Whether the target could sort rows that are not packed, such as a matrix's columns, without a copy of all."""
    if not (sorts_rows(target) and isinstance(rows, HostOperand) and isinstance(results, HostOperand)):
        return False
    if len(rows.shape) != 2 or (rows.is_packed and results.is_packed):
        return False
    return target.sort_spread_rows(rows.values, results.values, order)


def _size_of(rows: Operand) -> tuple[int, int]:
    """How many rows there are, and how long one is."""
    return int(np.prod(rows.shape[:-1], dtype=np.int64)), rows.shape[-1]


def _algorithm_for(rows: Operand, key: ArrayKey, target: Target, wished: SortAlgorithm | None) -> SortAlgorithm | None:
    """What sorts some rows, as the target can run it; None where the target needs none."""
    count, length = _size_of(rows)
    if wished is None and (length < 2 or count == 0 or (rows.memory is Memory.HOST and sorts_rows(target))):
        return None
    info = target.info
    chosen = fitting_sort(info, key, count, length) if wished is None else fitted(wished, key, length, info)
    if count and length:
        rows_together(chosen, length, rows.dtype.itemsize, target)
    return chosen


def _sort_rows(
    data: Operand, results: Operand, key: ArrayKey, order: SortOrder, target: Target, chosen: SortAlgorithm | None,
    is_only_copy: bool,
) -> None:  # fmt: skip
    """Sorts the rows of a packed array into another, or in place. An interrupt loses nothing of an only copy."""
    rows, length = _size_of(data)
    if length < 2 or rows == 0:
        if data is not results:
            results.assign(data)
        return
    if chosen is None:
        assert sorts_rows(target), "or there is an algorithm"
        source = _as_rows(data, rows, length)
        target.sort_rows(source, source if data is results else _as_rows(results, rows, length), order)
        return
    if is_only_copy and data.memory is Memory.HOST:  # on a card all launches are one call: see targets/cuda/plan.py
        # Between its launches a schedule has other words there.
        copy = data.pack()
        _run_rows(copy, copy, key, order, target, chosen)
        results.assign(copy)
    else:
        _run_rows(data, results, key, order, target, chosen)


def _run_rows(
    data: Operand, results: Operand, key: ArrayKey, order: SortOrder, target: Target, chosen: SortAlgorithm
) -> None:
    """The same by an algorithm's launches, in as few runs as the target's limits allow."""
    rows, length = _size_of(data)
    placement = Placement.IN_PLACE if data is results else Placement.ELSEWHERE
    if placement not in chosen.placements(key):
        if data is results:
            data, placement = data.pack(), Placement.ELSEWHERE
        else:
            results.assign(data)
            data, placement = results, Placement.IN_PLACE
    together = rows_together(chosen, length, data.dtype.itemsize, target)
    element = dtype_of(key.element)
    for first in range(0, rows, together):
        last = min(rows, first + together)
        schedule = schedule_of(SortPlan(chosen, key, last - first, length, order, placement))
        arrays = {"data": data.rows(first, last, length, element)}
        if data is not results:
            arrays["results"] = results.rows(first, last, length, element)
        target.run(schedule, arrays)


def _as_rows(operand: Operand, rows: int, length: int) -> HostArray:
    """A packed array in host memory, seen as its rows."""
    return cast(HostArray, operand.rows(0, rows, length, operand.dtype)).reshape(rows, length)


def rows_together(chosen: SortAlgorithm, length: int, itemsize: int, target: Target) -> int:
    """How many rows one run can take; an error where it cannot take one."""
    limits = target.info.limits
    fitting, sortable = limits.storage_bytes // (length * itemsize), chosen.most_rows(length, limits.groups)
    row = f"x: a row of {length} elements of {itemsize} bytes is more than"
    if fitting < 1:
        most = limits.storage_bytes // itemsize
        raise CapabilityError(f"{row} target {target.info.name!r} takes: at most {most} elements")
    if sortable < 1:
        raise CapabilityError(f"{row} {chosen} takes on target {target.info.name!r}")
    return min(fitting, sortable)


@attrs.frozen
class SortPlan:
    """All that a schedule depends on."""

    algorithm: SortAlgorithm
    key: ArrayKey
    rows: int
    length: int
    order: SortOrder
    placement: Placement


@lru_cache(maxsize=512)
def schedule_of(plan: SortPlan) -> Schedule:
    """Kept, so that a target can keep what it has made of it."""
    return plan.algorithm.schedule(plan.key, plan.rows, plan.length, plan.order, plan.placement)
