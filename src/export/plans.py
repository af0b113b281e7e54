"""Schedules for every length as data, by tracing the functions that make them (symbolic execution).

`make` is called with a traced length, which records arithmetic as terms, and comparisons as bounds of the range of
lengths in which they have the same outcome. That gives a plan for a range; the next trace starts behind it, until all
lengths are covered. It works for any function, also a user's own. As tracing misses lengths converted to plain ints,
each plan is verified against schedules for actual lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from ..kernel import ir
from ..kernel.launch import Role, Schedule, Step
from ..kernel.specialise import specialise
from ..targets.wgsl.kernel import word_of
from ..targets.wgsl.legalize import Origin
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.traced import Term, Traced, term_of, value_at
from .kernels import Kernels

LONGEST = (1 << 32) - 1
_MOST_PLANS = 64  # of one operation: beyond, there would likely be a plan for each length


@attrs.frozen
class PlannedBuffer:
    """A buffer of the schedule that kernels access."""

    name: str
    role: Role
    bytes: Term


@attrs.frozen
class PlannedLaunch:
    """A launch of the schedule, in terms of the length."""

    kernel: int  # index among all exported ones
    buffers: tuple[int, ...]  # for each binding, the index of the plan's buffer
    groups: Term
    words: tuple[Term, ...]  # of its parameters, in order


@attrs.frozen
class Plan:
    """The schedule for lengths `first` to `last`, inclusive."""

    first: int
    last: int
    buffers: tuple[PlannedBuffer, ...]
    launches: tuple[PlannedLaunch, ...]


def plans_of(
    make: Callable[[int], Schedule], kernels: Kernels, shortest: int = 0, longest: int = LONGEST
) -> tuple[Plan, ...]:
    """The plans for all lengths from `shortest` on, in ascending order; up to the first that `make` rejects. Raises
    UnsupportedTypeError if there are too many."""
    found: list[Plan] = []
    first = shortest
    while first <= longest:
        if len(found) == _MOST_PLANS:
            raise UnsupportedTypeError(
                f"export: the schedule has more than {_MOST_PLANS} forms up to length {first}; one that changes with "
                "every length is not for lengths that are not known yet"
            )
        length = Traced.of(first, first, longest)
        try:
            schedule = make(length)
        except InvalidArgumentError:  # this length and longer ones are beyond what the operation takes
            if not found:
                raise
            break
        plan = _plan(schedule, kernels, length)
        verify_plan(plan, make, kernels)
        found.append(plan)
        first = plan.last + 1
    return tuple(found)


def _plan(schedule: Schedule, kernels: Kernels, length: Traced | None = None) -> Plan:
    steps = [specialise(launch) for launch in schedule.launches]
    touched = [buffer.name for step in steps for buffer in step.buffers]
    buffers = [b for b in schedule.buffers if b.name in touched or b.role is not Role.SCRATCH]
    numbers = {buffer.name: number for number, buffer in enumerate(buffers)}
    launches = tuple(_launch(step, kernels, numbers) for step in steps)
    planned = tuple(PlannedBuffer(buffer.name, buffer.role, term_of(buffer.nbytes)) for buffer in buffers)
    first, last = (length.range.first, length.range.last) if length is not None else (0, 0)
    return Plan(first, last, planned, launches)


def _launch(step: Step, kernels: Kernels, numbers: Mapping[str, int]) -> PlannedLaunch:
    number, kernel = kernels.of(step.program)
    values = dict(zip(step.program.parameters, step.values, strict=True))
    sizes = dict(zip(step.program.storage, (buffer.nbytes for buffer in step.buffers), strict=True))
    words = tuple(_word(origin, values, sizes) for origin in kernel.origins)
    return PlannedLaunch(number, tuple(numbers[b.name] for b in step.buffers), term_of(step.groups), words)


def _word(origin: Origin, values: dict[ir.Parameter, int | float | bool], sizes: dict[ir.Memory, int]) -> Term:
    """A word of a launch's parameters."""
    if origin.length_of is not None:
        return term_of(sizes[origin.length_of] // origin.length_of.type.size)
    value = 0 if origin.parameter is None else values[origin.parameter]
    if isinstance(value, Traced):
        return 0 if origin.word else value.term  # a length fits in the low word
    (word,) = struct.unpack("<I", word_of(origin, values, sizes))
    return int(word)


def verify_plan(plan: Plan, make: Callable[[int], Schedule], kernels: Kernels, rows: int = 1) -> None:
    """Verifies a plan against the schedules for its first length, its last, and one between. Raises
    InvalidArgumentError."""
    for length in (plan.first, (plan.first + plan.last) // 2, plan.last):
        plain = _plan(make(length), kernels)
        if _evaluated(plan, length, rows) != _evaluated(plain, length, rows):
            raise InvalidArgumentError(
                f"export: the schedule for {length} elements is another than that for {plan.first}, but did not ask "
                "how many there are: expected numbers that are computed from the length, e.g. `-(-length // tile)`"
            )


def _evaluated(plan: Plan, length: int, rows: int) -> tuple[object, ...]:
    """A plan evaluated for a length and a number of rows."""

    def all_of() -> Iterator[Any]:
        for buffer in plan.buffers:
            yield buffer.name, buffer.role, value_at(buffer.bytes, length, rows)
        for launch in plan.launches:
            words = tuple(value_at(word, length, rows) for word in launch.words)
            yield launch.kernel, launch.buffers, value_at(launch.groups, length, rows), words

    return tuple(all_of())
