"""Plans for any number of rows of any length, by linear extrapolation.

The schedule is traced over the length for two rows and for three. Numbers that differ between the two are taken to be
linear in the number of rows, and become terms of it; these are verified against the schedule for five rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from ..kernel.launch import Schedule
from ..types.errors import UnsupportedTypeError
from ..types.traced import Formula, Operator, Term, Unknown
from .kernels import Kernels
from .plans import Plan, PlannedBuffer, PlannedLaunch, plans_of, verify_plan

_OTHERS = 5  # rows for which the terms are verified


def plans_of_rows(
    make: Callable[[int, int], Schedule], kernels: Kernels, shortest: int = 0
) -> tuple[Plan, ...]:  # fmt: skip
    """The plans for all lengths of rows; `make` is a function of the number of rows and their length. Raises
    UnsupportedTypeError if a schedule is not linear in the number of rows."""
    two, three = (plans_of(partial(make, rows), kernels, shortest) for rows in (2, 3))
    if [plan.first for plan in two] != [plan.first for plan in three]:
        raise UnsupportedTypeError(
            "export: a schedule whose form changes with the number of rows is not for any number"
        )
    found = tuple(map(_plan_of_any, two, three))
    # Five rows cannot be as long as two: the last plans may be of lengths that only fewer rows have.
    for plan, most in zip(found, plans_of(partial(make, _OTHERS), kernels, shortest), strict=False):
        verify_plan(attrs.evolve(plan, last=most.last), partial(make, _OTHERS), kernels, _OTHERS)
    return found


def _plan_of_any(two: Plan, three: Plan) -> Plan:
    if len(two.launches) != len(three.launches):
        raise UnsupportedTypeError("export: as many launches as there are rows are not for any number of them")
    return Plan(
        two.first, two.last, tuple(map(_buffer_of_any, two.buffers, three.buffers)),
        tuple(map(_launch_of_any, two.launches, three.launches)),
    )  # fmt: skip


def _buffer_of_any(two: PlannedBuffer, three: PlannedBuffer) -> PlannedBuffer:
    return attrs.evolve(two, bytes=term_of_any(two.bytes, three.bytes))


def _launch_of_any(two: PlannedLaunch, three: PlannedLaunch) -> PlannedLaunch:
    words = tuple(map(term_of_any, two.words, three.words))
    return attrs.evolve(two, groups=term_of_any(two.groups, three.groups), words=words)


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
