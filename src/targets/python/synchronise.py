"""What barriers and subgroup operations mean: which of the waiting invocations go on, and with what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from ...types.errors import BarrierDivergenceError, OutOfBoundsError
from ...types.scalars import U32, U64
from ..interpreters import divergence
from .threads import InvocationThread

Operands: TypeAlias = tuple[object, ...]


def resolve(threads: Sequence[InvocationThread], group: int, subgroup_size: int) -> dict[int, object]:
    """When all threads wait or have ended: the local ids to resume, with results. Subgroup operations come first, then
    the barrier. Raises BarrierDivergenceError."""
    results: dict[int, object] = {}
    for start in range(0, len(threads), subgroup_size):
        subgroup = threads[start : start + subgroup_size]
        at_subgroup_operation = [m for m in subgroup if m.waits is not None and not m.waits.is_barrier]
        if at_subgroup_operation:
            _require_together(at_subgroup_operation[0], subgroup, group)
            what = at_subgroup_operation[0].waits
            assert what is not None
            given = [thread.waits.operands for thread in subgroup if thread.waits is not None]
            for lane, thread in enumerate(subgroup):
                results[thread.local] = subgroup_result(what.what, given, lane, subgroup_size)
    if results:
        return results
    at_barrier = [thread for thread in threads if thread.waits is not None]
    if at_barrier:
        _require_together(at_barrier[0], threads, group)
    return {thread.local: None for thread in at_barrier}


def subgroup_result(what: str, given: Sequence[Operands], lane: int, size: int) -> object:
    """A subgroup operation's result for one lane, from the operands of all existing lanes."""
    mine = given[lane]
    match what:
        case "ballot":
            return U64(sum(1 << i for i, (vote,) in enumerate(given) if vote))
        case "match":
            return U64(sum(1 << i for i, (value,) in enumerate(given) if value == mine[0]))
        case "subgroup_add":
            return sum((cast(U32, value) for (value,) in given), U32(0))
        case "exclusive_add":
            return sum((cast(U32, value) for (value,) in given[:lane]), U32(0))
        case _:
            source = _source_lane(what, lane, int(cast(U32, mine[1])), size, len(given))
            if source >= len(given):
                raise OutOfBoundsError(f"{what} reads lane {source} of a subgroup of {len(given)}")
            return given[source][0]


def _source_lane(what: str, lane: int, operand: int, size: int, count: int) -> int:
    if what == "shuffle":
        return operand % size
    if what == "shuffle_xor":
        return lane ^ operand
    wanted = lane - operand if what == "shuffle_up" else lane + operand
    return wanted if 0 <= wanted < count else lane


def _require_together(first: InvocationThread, threads: Sequence[InvocationThread], group: int) -> None:
    """Raises BarrierDivergenceError unless all wait for the same operation on the same line."""
    wait = first.waits
    assert wait is not None
    arrive = [
        m.local for m in threads if m.waits is not None and (m.waits.what, m.waits.span) == (wait.what, wait.span)
    ]
    if len(arrive) == len(threads):
        return
    lack = [thread for thread in threads if thread.local not in arrive]
    elsewhere = lack[0].waits
    left = None if elsewhere is None else (f"local {lack[0].local} waits at", elsewhere.span)
    what = "the barrier" if wait.is_barrier else f"the subgroup operation '{wait.what}'"
    message = divergence(wait.span, what, arrive, [thread.local for thread in lack], group, left)
    raise BarrierDivergenceError(message)
