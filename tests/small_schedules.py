"""Schedules of a few launches, as tests of kernels write them."""

from __future__ import annotations

from typing import TypeVar, cast

from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.types.scalars import U32

E = TypeVar("E")
N, GROUP = 32, 8
GRID = Grid(N // GROUP, GROUP)


def words(name: str, role: Role, count: int = N) -> Buffer[U32]:
    return Buffer(name, U32, count, role)


def buffer(name: str, element: type[E], count: int, role: Role = Role.INOUT) -> Buffer[E]:
    return Buffer(name, element, count, role)


def plan(*launches: Launch) -> Schedule:
    """A schedule of these launches, with the buffers that they name."""
    arguments = [argument for launch in launches for argument in launch.arguments]
    named = {argument.name: cast("Buffer[object]", argument) for argument in arguments if isinstance(argument, Buffer)}
    return Schedule(tuple(named.values()), launches)
