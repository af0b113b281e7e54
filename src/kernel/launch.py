"""What a schedule is made of: buffers and launches, plain data that any target can run."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from ..types.elements import dtype_of
from ..types.memory import Storage
from ..types.needs import Needs, Policy
from .ir import Program

if TYPE_CHECKING:
    from .kernel import Kernel

E = TypeVar("E")


class Role(Enum):
    """What becomes of a buffer around a schedule."""

    INPUT = "input"  # handed in; never written
    OUTPUT = "output"  # handed back; whatever it held before is lost
    INOUT = "inout"  # handed in and back
    SCRATCH = "scratch"  # lives only as long as the schedule runs; starts with any bits


class Buffer(Storage[E]):
    """A storage buffer by name, before any target has given it memory."""

    __slots__ = ("count", "name", "role")

    def __init__(self, name: str, element: type[E], count: int, role: Role) -> None:
        # no array behind it: a Buffer only stands for memory, so indexing it is an error
        self.element = element
        self.name = name
        self.count = count
        self.role = role

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """What one element is to NumPy."""
        return dtype_of(self.element)

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {self.element.__name__}, {self.count}, {self.role})"


@attrs.frozen
class Grid:
    """How many workgroups of how many invocations. `group_size` is a compile-time value."""

    groups: int
    group_size: int


@attrs.frozen
class Launch:
    """One kernel over one grid, with its arguments as the kernel's signature names them."""

    kernel: Kernel[...]
    grid: Grid
    arguments: tuple[object, ...]

    @property
    def needs(self) -> tuple[Needs, ...]:
        """What the kernel relies on, by the policies it is handed."""
        return tuple(argument.needs for argument in self.arguments if isinstance(argument, Policy))


@attrs.frozen
class Schedule:
    """Launches, run in order; each sees all that the ones before it wrote."""

    buffers: tuple[Buffer[Any], ...]  # of all kinds of elements
    launches: tuple[Launch, ...]


@attrs.frozen
class Step:
    """A launch once its kernel is read: what a target gets to see."""

    program: Program
    buffers: tuple[Buffer[Any], ...]  # one for each of program.storage, in order
    values: tuple[int | float | bool, ...]  # one for each of program.parameters, in order
    groups: int
