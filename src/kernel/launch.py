"""Schedules: buffers and kernel launches in order, as plain data that any target can run."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import attrs
import numpy as np

from ..types.checks import checked_count
from ..types.elements import dtype_of, shown
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.memory import Storage, Workgroup
from ..types.needs import Needs, Policy
from ..types.scalars import U32, Scalar
from .ir import Memory, Parameter, Program

if TYPE_CHECKING:
    from .kernel import Kernel

E = TypeVar("E")


class Role(Enum):
    """How a buffer's contents pass into and out of a schedule."""

    INPUT = "input"  # read only
    OUTPUT = "output"  # a result; the contents before are lost
    INOUT = "inout"  # read and written in place
    SCRATCH = "scratch"  # allocated while the schedule runs; uninitialised


class Buffer(Storage[E]):
    """A storage buffer by name, which a target binds to memory when it runs the schedule."""

    __slots__ = ("count", "name", "role")

    def __init__(self, name: str, element: type[E], count: int, role: Role) -> None:
        # the base's __init__ is not called: a Buffer has no array, and indexing it is an error
        _require_name(name)
        self.count = checked_count(f"Buffer {name!r}: count", count, 0)
        _require_element_and_role(name, element, role)
        self.name, self.element, self.role = name, element, role

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return dtype_of(self.element)

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    @property
    def length(self) -> U32:
        raise self._without_memory()

    def _checked(self, index: U32 | int) -> int:
        raise self._without_memory()

    def _without_memory(self) -> InvalidArgumentError:
        return InvalidArgumentError(f"buffer {self.name!r} only stands for memory, and is in no schedule")

    def is_like(self, other: Buffer[Any]) -> bool:
        """Whether both name the same memory within one schedule."""
        return self is other or (self.name, self.element, self.count, self.role) == (
            other.name, other.element, other.count, other.role,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {shown(self.element)}, {self.count}, {self.role})"


_NONE = "none"


def unbound(element: type[E]) -> Buffer[E]:
    """A stand-in for a kernel's parameter that a mode of it does not use: no memory is bound to it."""
    return Buffer(_NONE, element, 1, Role.SCRATCH)


def _require_name(name: object) -> None:
    if not isinstance(name, str):
        raise UnsupportedTypeError(f"Buffer: expected a str as its name, found {name!r}")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidArgumentError(f"Buffer: expected a name such as 'data', found {name!r}")


def _require_element_and_role(name: str, element: object, role: object) -> None:
    try:
        dtype_of(element)
    except (TypeError, NameError) as error:
        raise UnsupportedTypeError(f"Buffer {name!r}: expected the class of an element, e.g. U32 ({error})") from error
    if not isinstance(role, Role):
        raise UnsupportedTypeError(f"Buffer {name!r}: expected a Role, e.g. Role.INOUT, found {role!r}")


def _groups(count: int) -> int:
    return checked_count("Grid: groups", count, 0)


def _group_size(count: int) -> int:
    return checked_count("Grid: group_size", count, 1)


@attrs.frozen
class Grid:
    """The workgroups of a launch (0: nothing runs) and the invocations in each, which is a compile-time value."""

    groups: int = attrs.field(converter=_groups)
    group_size: int = attrs.field(converter=_group_size)


@attrs.frozen
class Launch:
    """A kernel, its grid, and its arguments in the order of the kernel's parameters."""

    kernel: Kernel[...]
    grid: Grid
    arguments: tuple[object, ...]

    @property
    def needs(self) -> tuple[Needs, ...]:
        """What the kernel requires of the machine, by the policies among its arguments."""
        return tuple(argument.needs for argument in self.arguments if isinstance(argument, Policy))


@cache
def field_names(cls: type[Any]) -> tuple[str, ...]:
    """The field names of an attrs class; none of another class."""
    return tuple(field.name for field in attrs.fields(cls)) if attrs.has(cls) else ()


def has_scalars(thing: object) -> bool:
    """Whether an object is a struct with a scalar in it, at any depth."""
    cls: Any = type(thing)
    for name in field_names(cls):
        part = getattr(thing, name)
        if isinstance(part, Scalar) or has_scalars(part):
            return True
    return False


def kind_of(argument: object, in_tuple: bool = False) -> object:
    """The part of an argument that kernels are specialised on: the class of a run-time scalar, and of an enum in a
    struct of them, but the value of what is known at compile time, such as all items of a tuple."""
    cls: Any = type(argument)
    if cls is int:  # as most fields of policies
        return cls, argument
    if isinstance(argument, Buffer):
        return cls, argument.kind
    if isinstance(argument, Workgroup):
        return cls, argument.kind, len(argument.items)
    if isinstance(argument, Scalar):
        return (cls, kind_of(argument.item())) if in_tuple else cls
    if names := field_names(cls):
        return cls, *[
            type(part)
            if isinstance(part := getattr(argument, name), Enum) and not in_tuple and has_scalars(argument)
            else kind_of(part, in_tuple)
            for name in names
        ]
    if cls is tuple:
        return cls, *[kind_of(item, True) for item in cast("tuple[object, ...]", argument)]
    return cls, argument.hex() if isinstance(argument, float) else argument  # 0.0 equals -0.0, and NaN not itself


@attrs.frozen
class Schedule:
    """Launches that run in order; each sees all that the ones before it wrote."""

    buffers: tuple[Buffer[Any], ...]  # with unique names; scratch that launches use is added, if it is not among them
    launches: tuple[Launch, ...]

    def __attrs_post_init__(self) -> None:
        _require_all("buffers", self.buffers, Buffer)
        _require_all("launches", self.launches, Launch)
        named: dict[str, Buffer[Any]] = {}
        for buffer in self.buffers:
            if named.setdefault(buffer.name, buffer) is not buffer:
                raise InvalidArgumentError(f"Schedule: two buffers are named {buffer.name!r}")
        used = (argument for launch in self.launches for argument in launch.arguments if is_buffer(argument))
        for buffer in used:
            if buffer.role is Role.SCRATCH and buffer.name != _NONE:
                named.setdefault(buffer.name, buffer)
            other = named.get(buffer.name, buffer)
            if not buffer.is_like(other):  # a target would bind both to one memory
                raise InvalidArgumentError(f"Schedule: two buffers are named {buffer.name!r}: {other} and {buffer}")
        object.__setattr__(self, "buffers", tuple(named.values()))


def _require_all(name: str, items: object, kind: type[object]) -> None:
    """Raises UnsupportedTypeError unless `items` is a tuple of that class; `(launch)` without a comma is not."""
    found = f"a {type(items).__name__}"
    if isinstance(items, tuple | list):
        others = [item for item in cast("tuple[object, ...] | list[object]", items) if not isinstance(item, kind)]
        if not others:
            return
        found = f"a {type(others[0]).__name__} in it"
    example = f"({kind.__name__.lower()},)"
    raise UnsupportedTypeError(
        f"Schedule: {name}: expected a tuple of {kind.__name__}, e.g. `{example}`, found {found}"
    )


def is_buffer(argument: object) -> TypeGuard[Buffer[Any]]:
    return isinstance(argument, Buffer)


@attrs.frozen
class Step:
    """A launch whose kernel is specialised: what a target runs."""

    program: Program
    buffers: Mapping[Memory, Buffer[Any]]  # of program.storage, in its order; no two have one name
    values: Mapping[Parameter, int | float | bool]  # of program.parameters, in their order
    groups: int

    def length_of(self, memory: Memory) -> int:
        """How many scalars a storage memory has."""
        return self.buffers[memory].nbytes // memory.type.size
