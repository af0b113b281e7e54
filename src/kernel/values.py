"""The values of partial evaluation: what a Python expression evaluates to while a kernel is read. What is known at
compile time is the Python object itself: an int, an enum member, a class, a key, a policy. What only a device knows is
a scalar expression of the IR, or one of the classes below. Structs, enums and tuples group scalars at compile time, so
only scalars reach the IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, Flag
from types import FunctionType, MethodType
from typing import Any, TypeAlias, TypeGuard

import attrs

from ..types.elements import class_of, fields_of, scalar_of
from ..types.invocation import Invocation
from ..types.layout import Type
from ..types.ops import operators
from ..types.scalars import SCALARS, Scalar
from . import ir
from .captures import same
from .launch import has_scalars
from .span import Span

Value: TypeAlias = object


@attrs.frozen
class StructValue:
    """A struct, split into its fields. `element` is the class, or a generic alias such as `Pair[U32]`. A run-time enum
    is represented as a struct with one field, `value`: the member's number."""

    element: object
    fields: dict[str, Value]


@attrs.frozen
class MemberNumber:
    """`kind.value` of a run-time enum, or an expression of such numbers and Python ints. Under CPython it is an int,
    which never wraps, so the reader tracks an upper bound and refuses what may exceed 32 bits. It becomes a scalar when
    it is converted, or combined with one."""

    number: ir.Expression  # a U32
    greatest: int  # an upper bound

    @classmethod
    def of(cls, members: type[Enum], number: ir.Expression) -> MemberNumber:
        """That of any member of an enum, or of several of a Flag."""
        greatest = max((member.value for member in members if has_number(member)), default=0)
        return cls(number, Type.U32.high if issubclass(members, Flag) else greatest)


@attrs.frozen
class MemoryValue:
    """An array with its element class; an element of several fields takes several units of the memory."""

    element: object
    memory: ir.Memory


@attrs.frozen
class InvocationValue:
    """`cx`."""


@attrs.frozen
class Method:
    """A bound method: `pair.swapped`, `data.atomic_add`, `cx.barrier`."""

    owner: Value
    name: str
    # A FunctionType, which type checkers would take for a method of this class. None for methods of memories and of the
    # invocation, which the reader implements by name.
    function: Any = None


@attrs.frozen
class Undecided:
    """The value of a name after control flow joins, where its compile-time value differs between the paths. Reading it
    raises KernelError with `reason`."""

    reason: str


_AT_RUN_TIME = ir.Expression | StructValue | MemberNumber | MemoryValue | InvocationValue | Method | Undecided


def is_known(value: Value) -> bool:
    """Whether a value is known at compile time; a tuple is if all its items are."""
    return all(map(is_known, value)) if is_tuple(value) else not isinstance(value, _AT_RUN_TIME)


def is_tuple(value: Value) -> TypeGuard[tuple[Value, ...]]:
    return isinstance(value, tuple)


@attrs.frozen
class Given:
    """An argument of a call, with its position in the source."""

    value: Value
    span: Span


def of_object(thing: object, span: Span) -> Value:
    """The value of a Python object from outside the kernel: scalars, and structs of them, become constants."""
    if isinstance(thing, Scalar):
        return ir.Const(thing.item(), thing.type, span)
    if is_tuple(thing):
        items = tuple([of_object(item, span) for item in thing])
        return items if any(map(operators.is_not, items, thing)) else thing
    if has_scalars(thing):
        names = fields_of(type(thing))
        return StructValue(type(thing), {name: of_object(getattr(thing, name), span) for name in names})
    if isinstance(thing, MethodType) and isinstance(thing.__func__, FunctionType):
        return Method(of_object(thing.__self__, span), thing.__name__, thing.__func__)
    return thing


def has_number(member: Enum) -> bool:
    """Whether a member's value is a number that a device can hold: an int that fits U32."""
    value: object = member.value
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= Type.U32.high


def lift(value: Value, span: Span) -> Value:
    """The run-time form of a compile-time enum member or bool, also inside tuples; other values are unchanged. The
    bound of an enum's number is widened, so that a variable for it can hold any other."""
    if isinstance(value, MemberNumber):
        return MemberNumber(value.number, Type.U32.high)
    if is_tuple(value):
        return tuple([lift(item, span) for item in value])
    if isinstance(value, Enum) and has_number(value):
        return StructValue(type(value), {"value": ir.Const(value.value, Type.U32, span)})
    return ir.Const(value, Type.BOOL, span) if isinstance(value, bool) else value


def _parts(value: Value) -> tuple[object, Iterable[Value]]:
    """The parts of a value, which may be scalars; and before them what the same variables cannot differ in."""
    match value:
        case StructValue():
            return class_of(value.element), value.fields.values()
        case MemberNumber():
            return MemberNumber, (value.number,)
        case Method():
            return (value.name, value.function), (value.owner,)
        case _ if is_tuple(value):
            return (tuple, len(value)), value
        case _:
            return value.type if isinstance(value, ir.Expression) else (object, value), ()


def scalars(value: Value) -> list[ir.Expression]:
    """The scalars in a value, in the order of its fields."""
    if isinstance(value, ir.Expression):
        return [value]
    return [scalar for part in _parts(value)[1] for scalar in scalars(part)]


def rebuild(value: Value, change: Callable[[ir.Expression], ir.Expression]) -> Value:
    """A value of the same structure with `change` applied to every scalar."""
    match value:
        case StructValue():
            return StructValue(value.element, {n: rebuild(f, change) for n, f in value.fields.items()})
        case MemberNumber():
            return MemberNumber(change(value.number), value.greatest)
        case Method():
            return Method(rebuild(value.owner, change), value.name, value.function)
        case _ if is_tuple(value):
            return tuple([rebuild(item, change) for item in value])
        case _:
            return change(value) if isinstance(value, ir.Expression) else value


def as_scalar(value: Value) -> Value:
    """An enum's number as a U32; other values unchanged."""
    return value.number if isinstance(value, MemberNumber) else value


def from_leaves(element: object, leaves: Iterator[ir.Expression]) -> Value:
    """An element assembled from its scalars, in the order of its fields."""
    cls = class_of(element)
    if issubclass(cls, Enum):
        return StructValue(cls, {"value": next(leaves)})
    if attrs.has(cls):
        return StructValue(element, {n: from_leaves(f, leaves) for n, f in fields_of(element).items()})
    assert scalar_of(element) is not None
    return next(leaves)


def _shape(value: Value) -> object:
    kind, parts = _parts(value)
    return kind, *map(_shape, parts)


def is_alike(a: Value, b: Value) -> bool:
    """Whether the same variables can hold two values."""
    return same(_shape(a), _shape(b))


def class_behind(value: Value) -> type[object] | None:
    """The class that a value has to Python; None for those without one that matters, as arrays."""
    match value:
        case StructValue():
            return class_of(value.element)
        case InvocationValue():
            return Invocation
        case _ if isinstance(value, ir.Expression):
            return SCALARS[value.type]
        case _:
            return type(value) if is_known(value) else None


def first_difference(a: Value, b: Value) -> tuple[Value, Value]:
    """For an error message: the first parts in which two values that are not alike differ."""
    (kind, parts), (other_kind, others) = _parts(a), _parts(b)
    if not same(kind, other_kind):
        return a, b
    one, other = next((pair for pair in zip(parts, others, strict=True) if not is_alike(*pair)), (a, b))
    is_described = one is a or (isinstance(a, StructValue) and is_known(one))  # `describe` names such fields
    return (a, b) if is_described else first_difference(one, other)


def enum_number(value: Value) -> ir.Expression | None:
    """The number of a run-time enum's member; None for other values."""
    is_enum = isinstance(value, StructValue) and issubclass(class_of(value.element), Enum)
    return scalars(value)[0] if is_enum else None
