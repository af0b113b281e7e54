"""Batching: splits the rows of a work into runs of as many rows as one launch takes."""

from __future__ import annotations

from ..kernel.launch import Schedule
from ..operations.base import Part, Work
from ..targets.base import Prepared, Target, given_buffers, prepared_by
from .steps import Run


def runs_of(work: Work, target: Target, keeps_scratch: bool = False) -> tuple[Run, ...]:
    """The runs of a work in order, prepared by the target."""
    made: dict[int, tuple[Schedule, Prepared, tuple[str, ...]]] = {}
    runs: list[Run] = []
    for first in range(0, work.rows, max(1, work.together)):
        count = min(work.together, work.rows - first)
        if count not in made:
            schedule = work.schedule(count)
            names = tuple(buffer.name for buffer in given_buffers(schedule))
            made[count] = schedule, prepared_by(target, schedule, keeps_scratch), names
        schedule, prepared, names = made[count]
        parts = [work.parts[name] for name in names]
        slices = tuple(_slice(work, part, first, count) for part in parts)
        runs.append(Run(schedule, prepared, tuple(part.array for part in parts), slices))
    return tuple(runs)


def _slice(work: Work, part: Part, first: int, count: int) -> tuple[int, int] | None:
    """The slice of an array that a batch of rows takes, as (first, count) in elements; None for all."""
    if part.first is not None:
        return part.first, part.each
    return None if count == work.rows else (first * part.each, count * part.each)
