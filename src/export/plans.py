"""Schedules for every length, as data: which kernel runs, on which memories, with which numbers.

A schedule is made for a traced length, which says for which lengths it is the same; then for the next length, until all
have one. So a plan is right by construction, whatever made it: a sort of ours, a reduction, a user's own function. Each
is compared with what is made for plain lengths all the same: tracing cannot see an int that was made into another.
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
_MOST_PLANS = 64  # of one operation: more of them would be one for each length


@attrs.frozen
class PlannedBuffer:
    """A memory that kernels touch."""

    name: str
    role: Role
    bytes: Term


@attrs.frozen
class PlannedLaunch:
    """One launch."""

    kernel: int  # among all that are exported
    buffers: tuple[int, ...]  # one for each of the kernel's bindings, among the plan's
    groups: Term
    words: tuple[Term, ...]  # of its parameters, in their order


@attrs.frozen
class Plan:
    """What runs for lengths from the first to the last."""

    first: int
    last: int
    buffers: tuple[PlannedBuffer, ...]
    launches: tuple[PlannedLaunch, ...]


def plans_of(
    make: Callable[[int], Schedule], kernels: Kernels, shortest: int = 0, longest: int = LONGEST
) -> tuple[Plan, ...]:
    """The plans for all lengths from the shortest, which come first."""
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
        except InvalidArgumentError:  # what is refused from here on is more than a schedule takes
            if not found:
                raise
            break
        plan = _plan(schedule, kernels, length)
        compare(plan, make, kernels)
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
        return 0 if origin.word else value.term  # no length has more than 32 bits
    (word,) = struct.unpack("<I", word_of(origin, values, sizes))
    return int(word)


def compare(plan: Plan, make: Callable[[int], Schedule], kernels: Kernels, rows: int = 1) -> None:
    """Refuses a plan that is not what its function makes for its shortest length, its longest, or one between."""
    for length in (plan.first, (plan.first + plan.last) // 2, plan.last):
        plain = _plan(make(length), kernels)
        if _settled(plan, length, rows) != _settled(plain, length, rows):
            raise InvalidArgumentError(
                f"export: the schedule for {length} elements is another than that for {plan.first}, but did not ask "
                "how many there are: expected numbers that are computed from the length, e.g. `-(-length // tile)`"
            )


def _settled(plan: Plan, length: int, rows: int) -> tuple[object, ...]:
    """A plan's numbers for one length, of so many rows."""

    def all_of() -> Iterator[Any]:
        for buffer in plan.buffers:
            yield buffer.name, buffer.role, value_at(buffer.bytes, length, rows)
        for launch in plan.launches:
            words = tuple(value_at(word, length, rows) for word in launch.words)
            yield launch.kernel, launch.buffers, value_at(launch.groups, length, rows), words

    return tuple(all_of())
