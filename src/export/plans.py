"""Schedules for every length as data, by tracing the functions that make them (symbolic execution).

`make` is called with a traced length, which records arithmetic as terms, and comparisons as bounds of the range of
lengths in which they have the same outcome. That gives a plan for a range; the next trace starts behind it, until all
lengths are covered. It works for any function, also a user's own. As tracing misses lengths converted to plain ints,
each plan is verified against schedules for actual lengths.

Rows of any number: the schedule is traced over their length for two rows and for three. Numbers that differ between the
two are taken to be linear in the number of rows, and become terms of it; these are verified for five rows.

An export is such plans and the kernels that they refer to, whatever its format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias

import attrs

from ..algos.sizes import LARGEST_U32
from ..kernel import ir
from ..kernel.launch import Role, Schedule, Step
from ..kernel.specialise import specialise
from ..machine import Limits
from ..targets.wgsl.defaults import DEFAULTS
from ..targets.wgsl.legalize import Origin
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.traced import Formula, Operator, Term, Traced, Unknown, term_of, value_at
from .kernels import ExportedKernel, Kernels, wgsl_kernel
from .operations import OPERATIONS, Variant
from .request import Request

_ROWS_TO_VERIFY = 5
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


def plans_of(make: Callable[[int], Schedule], kernels: Kernels, shortest: int = 0) -> tuple[Plan, ...]:
    """The plans for all lengths from `shortest` on, in ascending order; up to the first that `make` rejects. Raises
    UnsupportedTypeError if there are too many."""
    found: list[Plan] = []
    first = shortest
    while first <= LARGEST_U32:
        if len(found) == _MOST_PLANS:
            raise UnsupportedTypeError(
                f"export: the schedule has more than {_MOST_PLANS} forms up to length {first}; one that changes with "
                "every length is not for lengths that are not known yet"
            )
        length = Traced.of(first, first, LARGEST_U32)
        try:
            schedule = make(length)
            _require_counted(schedule)
        except InvalidArgumentError:  # this length and longer ones are beyond what the operation takes
            if not found:
                raise
            break
        plan = _plan(schedule, kernels, length)
        verify_plan(plan, make, kernels)
        found.append(plan)
        first = plan.last + 1
    return tuple(found)


def _require_counted(schedule: Schedule) -> None:
    """Raises InvalidArgumentError for a buffer of more scalars than a U32 counts, as every target does."""
    for step in map(specialise, schedule.launches):
        for memory, buffer in step.buffers.items():
            if step.length_of(memory) > LARGEST_U32:
                raise InvalidArgumentError(f"export: buffer {buffer.name!r} has more than {LARGEST_U32} scalars")


def _plan(schedule: Schedule, kernels: Kernels, length: Traced | None = None) -> Plan:
    steps = [specialise(launch) for launch in schedule.launches]
    touched = [buffer.name for step in steps for buffer in step.buffers.values()]
    buffers = [b for b in schedule.buffers if b.name in touched or b.role is not Role.SCRATCH]
    numbers = {buffer.name: number for number, buffer in enumerate(buffers)}
    launches: list[PlannedLaunch] = []
    for step in steps:
        number, kernel = kernels.of(step.program)
        words, bound = tuple(_word(origin, step) for origin in kernel.origins), step.buffers.values()
        launches.append(PlannedLaunch(number, tuple(numbers[b.name] for b in bound), term_of(step.groups), words))
    planned = tuple(PlannedBuffer(buffer.name, buffer.role, term_of(buffer.nbytes)) for buffer in buffers)
    first, last = (length.range.first, length.range.last) if length is not None else (0, 0)
    return Plan(first, last, planned, tuple(launches))


def _word(origin: Origin, step: Step) -> Term:
    """A word of a launch's parameters."""
    value = None if origin.parameter is None else step.values[origin.parameter]
    if isinstance(value, Traced):
        return 0 if origin.word else value.term  # a length fits in the low word
    return term_of(origin.word_in(step))


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
    buffers = [(buffer.name, buffer.role, value_at(buffer.bytes, length, rows)) for buffer in plan.buffers]
    launches = [
        (launch.kernel, launch.buffers, *(value_at(term, length, rows) for term in (launch.groups, *launch.words)))
        for launch in plan.launches
    ]
    return *buffers, *launches


def plans_of_rows(make: Callable[[int, int], Schedule], kernels: Kernels, shortest: int = 0) -> tuple[Plan, ...]:
    """The plans for all lengths of rows; `make` is a function of the number of rows and their length. Raises
    UnsupportedTypeError if a schedule is not linear in the number of rows."""
    two, three = (plans_of(partial(make, rows), kernels, shortest) for rows in (2, 3))
    if [plan.first for plan in two] != [plan.first for plan in three]:
        raise UnsupportedTypeError(
            "export: a schedule whose form changes with the number of rows is not for any number"
        )
    found = tuple(map(_plan_of_any, two, three))
    # Five rows cannot be as long as two: the last plans may be of lengths that only fewer rows have.
    for plan, most in zip(found, plans_of(partial(make, _ROWS_TO_VERIFY), kernels, shortest), strict=False):
        verify_plan(attrs.evolve(plan, last=most.last), partial(make, _ROWS_TO_VERIFY), kernels, _ROWS_TO_VERIFY)
    return found


def _plan_of_any(two: Plan, three: Plan) -> Plan:
    if len(two.launches) != len(three.launches):
        raise UnsupportedTypeError("export: as many launches as there are rows are not for any number of them")
    buffers = [
        attrs.evolve(b, bytes=term_of_any(b.bytes, c.bytes)) for b, c in zip(two.buffers, three.buffers, strict=False)
    ]
    launches = [
        attrs.evolve(b, groups=term_of_any(b.groups, c.groups), words=tuple(map(term_of_any, b.words, c.words)))
        for b, c in zip(two.launches, three.launches, strict=True)
    ]
    return attrs.evolve(two, buffers=tuple(buffers), launches=tuple(launches))


def term_of_any(two: Term, three: Term) -> Term:
    """A term linear in the number of rows, from its values for two and for three."""
    match two, three:
        case _ if two == three:
            return two
        case (int(), int()):
            step = three - two
            grown: Term = Unknown.ROWS if step == 1 else Formula(Operator.TIMES, Unknown.ROWS, step)
            rest = two - 2 * step
            return grown if rest == 0 else Formula(Operator.PLUS, grown, rest)
        case (Formula(operator, left, right), Formula(other, left_of_three, right_of_three)) if operator is other:
            return Formula(operator, term_of_any(left, left_of_three), term_of_any(right, right_of_three))
        case _:
            raise UnsupportedTypeError(
                "export: numbers that do not grow by as much with each row are not for any number"
            )


@attrs.frozen
class ExportedSchedule:
    """An operation on elements of one type, for all lengths."""

    variant: Variant
    orders: tuple[tuple[Plan, ...], ...]  # ascending, and descending if the operation has an order

    @property
    def by_name(self) -> dict[str, tuple[Plan, ...]]:
        """The plans of each order."""
        return dict(zip((self.variant.name, f"{self.variant.name} descending"), self.orders, strict=False))


@attrs.frozen
class Exported:
    """Kernels, and schedules that refer to them by index."""

    operations: tuple[str, ...]
    request: Request
    kernels: Kernels
    schedules: tuple[ExportedSchedule, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the ES module that are needed besides the driver."""
        parts = dict.fromkeys(OPERATIONS[name].part for name in self.operations)
        has_results = any(schedule.variant.result[1] for schedule in self.schedules)
        return (*(["results"] if has_results else []), *parts)


def exported_of(
    operations: Sequence[str], request: Request, make: Callable[[ir.Program], ExportedKernel] = wgsl_kernel,
    limits: Limits = DEFAULTS,
) -> Exported:  # fmt: skip
    """Of kernels within some limits: those of every device. Raises InvalidArgumentError for two schedules of a name."""
    kernels = Kernels(limits, make)
    schedules = dict[str, ExportedSchedule]()
    for variant in chain.from_iterable(OPERATIONS[operation].variants(request) for operation in operations):
        if variant.name in schedules:
            raise InvalidArgumentError(f"export: expected schedules of different names, found {variant.name!r} twice")
        plans = tuple(_traced(variant, make, kernels) for make in variant.makes)
        schedules[variant.name] = ExportedSchedule(variant, plans)
    return Exported(tuple(operations), request, kernels, tuple(schedules.values()))


def _traced(variant: Variant, make: Callable[..., Schedule], kernels: Kernels) -> tuple[Plan, ...]:
    return (plans_of_rows if variant.of_rows else plans_of)(make, kernels, variant.shortest)


Json: TypeAlias = "int | str | list[Json] | dict[str, Json]"


def plain(term: Term) -> Json:
    """A term as JSON."""
    match term:
        case Unknown():
            return term.value
        case Formula(operator, left, right):
            return [operator.value, plain(left), plain(right)]
        case _:
            return int(term)
