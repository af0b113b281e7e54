"""The `cx` of the target "python", and what the members of a workgroup tell each other when they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, cast

import attrs

from ...types.errors import BarrierDivergenceError, OutOfBoundsError
from ...types.invocation import Invocation
from ...types.scalars import U32, U64, Bool
from ..simulator import report
from .crew import Member

T = TypeVar("T")
Meet: TypeAlias = Callable[[str, tuple[object, ...]], object]
Bring: TypeAlias = tuple[object, ...]


@attrs.frozen
class Place:
    """Where in a launch an invocation stands."""

    group: int
    local: int
    groups: int
    group_size: int
    subgroup_size: int

    def __str__(self) -> str:
        return f"(group {self.group}, local {self.local})"


class PythonInvocation(Invocation):
    """An invocation that leaves meeting others to `meet`, which gets an operation's name and operands."""

    def __init__(self, place: Place, meet: Meet) -> None:
        self.place = place
        self._meet = meet

    @property
    def local_id(self) -> U32:
        return U32(self.place.local)

    @property
    def group_id(self) -> U32:
        return U32(self.place.group)

    @property
    def group_size(self) -> U32:
        return U32(self.place.group_size)

    @property
    def num_groups(self) -> U32:
        return U32(self.place.groups)

    @property
    def lane(self) -> U32:
        return U32(self.place.local % self.place.subgroup_size)

    @property
    def subgroup_id(self) -> U32:
        return U32(self.place.local // self.place.subgroup_size)

    @property
    def subgroup_size(self) -> U32:
        return U32(self.place.subgroup_size)

    def barrier(self) -> None:
        self._meet("barrier", ())

    def ballot(self, condition: Bool) -> U64:
        return cast(U64, self._meet("ballot", (condition,)))

    def match(self, value: U32) -> U64:
        return cast(U64, self._meet("match", (value,)))

    def shuffle(self, value: T, lane: U32) -> T:
        return cast(T, self._meet("shuffle", (value, lane)))

    def shuffle_xor(self, value: T, mask: U32) -> T:
        return cast(T, self._meet("shuffle_xor", (value, mask)))

    def shuffle_up(self, value: T, distance: U32) -> T:
        return cast(T, self._meet("shuffle_up", (value, distance)))

    def shuffle_down(self, value: T, distance: U32) -> T:
        return cast(T, self._meet("shuffle_down", (value, distance)))

    def subgroup_add(self, value: U32) -> U32:
        return cast(U32, self._meet("subgroup_add", (value,)))

    def exclusive_add(self, value: U32) -> U32:
        return cast(U32, self._meet("exclusive_add", (value,)))


def resolve(members: Sequence[Member], group: int, subgroup_size: int) -> dict[int, object]:
    """When all members wait or have ended: who goes on, and with what result."""
    results: dict[int, object] = {}
    for start in range(0, len(members), subgroup_size):
        subgroup = members[start : start + subgroup_size]
        at_subgroup_operation = [m for m in subgroup if m.waits is not None and not m.waits.is_barrier]
        if at_subgroup_operation:
            _require_together(at_subgroup_operation[0], subgroup, group)
            what = at_subgroup_operation[0].waits
            assert what is not None
            brought = [member.waits.operands for member in subgroup if member.waits is not None]
            for lane, member in enumerate(subgroup):
                results[member.local] = meet_in_subgroup(what.what, brought, lane, subgroup_size)
    if results:
        return results
    at_barrier = [member for member in members if member.waits is not None]
    if at_barrier:
        _require_together(at_barrier[0], members, group)
    return {member.local: None for member in at_barrier}


def meet_in_subgroup(what: str, brought: Sequence[Bring], lane: int, size: int) -> object:
    """What one lane of a subgroup learns. `brought` are the operands of the lanes there are."""
    mine = brought[lane]
    match what:
        case "ballot":
            return U64(sum(1 << i for i, (vote,) in enumerate(brought) if vote))
        case "match":
            return U64(sum(1 << i for i, (value,) in enumerate(brought) if value == mine[0]))
        case "subgroup_add":
            return _sum(brought)
        case "exclusive_add":
            return _sum(brought[:lane])
        case _:
            source = _source_lane(what, lane, int(cast(U32, mine[1])), size, len(brought))
            if source >= len(brought):
                raise OutOfBoundsError(f"{what} reads lane {source} of a subgroup of {len(brought)}")
            return brought[source][0]


def _source_lane(what: str, lane: int, operand: int, size: int, count: int) -> int:
    if what == "shuffle":
        return operand % size
    if what == "shuffle_xor":
        return lane ^ operand
    wanted = lane - operand if what == "shuffle_up" else lane + operand
    return wanted if 0 <= wanted < count else lane


def _sum(brought: Sequence[Bring]) -> U32:
    total = U32(0)
    for (value,) in brought:
        total = total + cast(U32, value)
    return total


def _require_together(first: Member, members: Sequence[Member], group: int) -> None:
    """All of these wait for the same thing on the same line."""
    wait = first.waits
    assert wait is not None
    arrive = [
        m.local for m in members if m.waits is not None and (m.waits.what, m.waits.span) == (wait.what, wait.span)
    ]
    if len(arrive) == len(members):
        return
    lack = [member for member in members if member.local not in arrive]
    elsewhere = lack[0].waits
    left = None if elsewhere is None else (f"local {lack[0].local} waits at", elsewhere.span)
    what = "the barrier" if wait.is_barrier else f"the subgroup operation '{wait.what}'"
    message = report.divergence(wait.span, what, arrive, [member.local for member in lack], group, left)
    raise BarrierDivergenceError(message)
