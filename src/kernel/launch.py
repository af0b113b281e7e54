"""What a schedule is made of: buffers and launches, plain data that any target can run."""

from __future__ import annotations

import keyword
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import attrs
import numpy as np

from ..types.counts import checked_count
from ..types.elements import dtype_of, shown
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.memory import Storage, Workgroup
from ..types.needs import Needs, Policy
from ..types.scalars import U32, Scalar
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
        self.name = _checked_name(name)
        self.element = element
        self.count = checked_count(f"Buffer {name!r}: count", count, 0)
        self.role = role
        _require_element_and_role(name, element, role)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """What one element is to NumPy."""
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
        """Whether both stand for the same memory where they meet in one schedule."""
        return self is other or (self.name, self.element, self.count, self.role) == (
            other.name, other.element, other.count, other.role,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {shown(self.element)}, {self.count}, {self.role})"


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise UnsupportedTypeError(f"Buffer: expected a str as its name, found {name!r}")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidArgumentError(f"Buffer: expected a name such as 'data', found {name!r}")
    return name


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
    """How many workgroups of how many invocations; of no workgroups, nothing runs. `group_size` is a compile-time
    value."""

    groups: int = attrs.field(converter=_groups)
    group_size: int = attrs.field(converter=_group_size)


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


_fields: dict[type, tuple[str, ...]] = {}  # of classes of arguments; none where it is no attrs class


def kind_of(argument: object) -> object:
    """What of an argument a kernel is compiled for. Scalars are told apart by their classes: their values change."""
    cls: Any = type(argument)
    if isinstance(argument, Buffer):
        return cls, argument.kind
    if isinstance(argument, Workgroup):
        return cls, argument.kind, len(argument.items)
    if isinstance(argument, Scalar):
        return cls
    names = _fields.get(cls)
    if names is None:
        names = _fields[cls] = tuple(field.name for field in attrs.fields(cls)) if attrs.has(cls) else ()
    if names:
        return cls, *[kind_of(getattr(argument, name)) for name in names]
    if cls is tuple:
        return cls, *map(kind_of, cast("tuple[object, ...]", argument))
    return cls, float.hex(cast(float, argument)) if cls is float else argument  # 0.0 equals -0.0, and NaN not itself


@attrs.frozen
class Schedule:
    """Launches, run in order; each sees all that the ones before it wrote."""

    buffers: tuple[Buffer[Any], ...]  # of all kinds of elements; each with a name of its own
    launches: tuple[Launch, ...]

    def __attrs_post_init__(self) -> None:
        named: dict[str, Buffer[Any]] = {}
        for buffer in self.buffers:
            if named.setdefault(buffer.name, buffer) is not buffer:
                raise InvalidArgumentError(f"Schedule: two buffers are named {buffer.name!r}")
        for launch in self.launches:
            for argument in launch.arguments:
                if is_buffer(argument):
                    require_alike(argument, named.get(argument.name))


def is_buffer(argument: object) -> TypeGuard[Buffer[Any]]:
    """Of elements of some kind."""
    return isinstance(argument, Buffer)


def require_alike(buffer: Buffer[Any], other: Buffer[Any] | None) -> None:
    """Refuses a buffer that has another's name: a target would give both one memory."""
    if other is not None and not buffer.is_like(other):
        raise InvalidArgumentError(f"Schedule: two buffers are named {buffer.name!r}: {other} and {buffer}")


@attrs.frozen
class Step:
    """A launch once its kernel is read: what a target gets to see."""

    program: Program
    buffers: tuple[Buffer[Any], ...]  # one for each of program.storage, in order
    values: tuple[int | float | bool, ...]  # one for each of program.parameters, in order
    groups: int
