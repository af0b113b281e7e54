"""Plans for rows of which neither the length nor the number is known yet.

Such a schedule is traced by the length for two rows and for three. Where the two differ, they do by a number that grows
with each row by as much, so it is a term of the number of rows. The terms are compared with a schedule for more rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from ..kernel.launch import Schedule
from ..types.errors import UnsupportedTypeError
from ..types.traced import Formula, Operator, Term, Unknown
from .kernels import Kernels
from .plans import Plan, PlannedBuffer, PlannedLaunch, compare, plans_of

_OTHERS = 5  # rows that the terms are compared for


def plans_of_rows(
    make: Callable[[int, int], Schedule], kernels: Kernels, shortest: int = 0
) -> tuple[Plan, ...]:  # fmt: skip
    """The plans for rows of all lengths, by a function of how many there are and how long one is."""
    two, three = (plans_of(partial(make, rows), kernels, shortest) for rows in (2, 3))
    if [plan.first for plan in two] != [plan.first for plan in three]:
        raise UnsupportedTypeError(
            "export: a schedule whose form changes with the number of rows is not for any number"
        )
    found = tuple(map(_plan_of_any, two, three))
    # So many rows together cannot be as long: the last forms may be of lengths that only fewer have.
    for plan, most in zip(found, plans_of(partial(make, _OTHERS), kernels, shortest), strict=False):
        compare(attrs.evolve(plan, last=most.last), partial(make, _OTHERS), kernels, _OTHERS)
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
    """A term for any number of rows, from what it is for two and for three."""
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
