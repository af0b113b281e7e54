"""The values of partial evaluation: what a Python expression evaluates to while a kernel is read. A value is either a
compile-time object (`Static`: an int, an enum member, a class, a key, a policy) or a scalar expression of the IR.
Structs, enums and tuples group these at compile time, so only scalars reach the IR."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import FunctionType
from typing import Any, TypeAlias, cast

import attrs

from ..types.elements import class_of, fields_of, scalar_of
from ..types.layout import Type
from ..types.scalars import SCALARS, Scalar
from . import ir
from .captures import same
from .launch import FIELD_NAMES
from .nodes import node
from .span import Span


@node(eq=False)
class Static:  # noqa: PLW1641 -- without a hash, which what it holds may lack
    """A compile-time value."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and same(self.value, other.value)


@node
class StructValue:
    """A struct, split into its fields. `element` is the class, or a generic alias such as `Pair[U32]`. A run-time enum
    is one too, whose only field is its member's number, `value`."""

    element: object
    fields: dict[str, Value]


GREATEST_NUMBER = (1 << 32) - 1  # of a member of an enum


@node
class MemberNumber:
    """`kind.value` of a run-time enum, and what is computed of it alone. To Python it is an int, which never wraps; a
    scalar is what it is converted to, or stands beside."""

    number: ir.Expression
    greatest: int


@node
class TupleValue:
    items: tuple[Value, ...]


@node
class MemoryValue:
    """An array with its element class; an element of several fields takes several units of the memory."""

    element: object
    memory: ir.Memory


@node
class InvocationValue:
    """`cx`."""


@node
class Method:
    """A method before it is called, with what it is called on: `pair.swapped`, `data.atomic_add`, `cx.barrier`.
    `function` is None for those of memories and of the invocation, which the reader knows by name."""

    owner: Value
    name: str
    function: Callable[..., object] | None = None

    def plain(self) -> FunctionType:
        """The function. (A field declared as FunctionType would be a method of this class to type checkers.)"""
        return cast("FunctionType", self.function)


@node
class Undecided:
    """A name whose compile-time value differs between paths: reading it raises KernelError with `reason`."""

    reason: str


Value: TypeAlias = (
    Static
    | ir.Expression
    | StructValue
    | MemberNumber
    | TupleValue
    | MemoryValue
    | InvocationValue
    | Method
    | Undecided
)


@node
class Given:
    """An argument of a call, and where it stands."""

    value: Value
    span: Span


def of_object(thing: object, span: Span) -> Value:
    """The value of a Python object from outside the kernel: scalars, and structs of them, become constants."""
    if isinstance(thing, Scalar):
        return ir.Const(thing.item(), thing.type, span)
    if isinstance(thing, tuple):
        return TupleValue(tuple(of_object(item, span) for item in cast("tuple[object, ...]", thing)))
    if has_scalars(thing):
        names = fields_of(type(thing))
        return StructValue(type(thing), {name: of_object(getattr(thing, name), span) for name in names})
    return Static(thing)


def has_scalars(thing: object) -> bool:
    """Whether an object is a struct with a scalar in it, at any depth."""
    cls: Any = type(thing)
    for name in FIELD_NAMES[cls]:
        part = getattr(thing, name)
        if isinstance(part, Scalar) or has_scalars(part):
            return True
    return False


def static_attribute_of(thing: object, name: str) -> object:
    """What `inspect.getattr_static` finds, without calling anything; None for nothing. It asks how each class keeps its
    attributes, which takes far longer than to look for one of a class."""
    own: Mapping[str, object] = {}
    cls: type[object]
    if isinstance(thing, type):
        cls, is_plain = thing, not hasattr(type(thing), name)  # what its metaclass has may come before its own
    else:
        cls, own = type(thing), getattr(thing, "__dict__", own)
        is_plain = name not in own
    if not is_plain:
        return inspect.getattr_static(thing, name, None)
    return next((known[name] for base in cls.__mro__ if name in (known := vars(base))), None)


def has_number(member: Enum) -> bool:
    """Whether a member's value is one that it can have on a device: an int that fits U32."""
    value: object = member.value
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= GREATEST_NUMBER


def known(value: Value) -> Value:
    """A tuple of compile-time values as one of them, for Python's own functions; any other value as it is."""
    if not isinstance(value, TupleValue):
        return value
    items = [item.value for item in map(known, value.items) if isinstance(item, Static)]
    return Static(tuple(items)) if len(items) == len(value.items) else value


def lift(value: Value, span: Span) -> Value:
    """Turns a compile-time enum member or bool into its run-time form, in a tuple too, and an enum's number into one
    that may be any other's; other values pass through."""
    if isinstance(value, MemberNumber):
        return MemberNumber(value.number, GREATEST_NUMBER)
    if isinstance(value, TupleValue):
        return TupleValue(tuple(lift(item, span) for item in value.items))
    if isinstance(value, Static):
        known = value.value
        if isinstance(known, Enum) and has_number(known):
            return StructValue(type(known), {"value": ir.Const(known.value, Type.U32, span)})
        if isinstance(known, bool):
            return ir.Const(known, Type.BOOL, span)
    return value


def parts(value: Value) -> Iterator[Value]:
    """The leaves of a value, in the order of its fields."""
    match value:
        case StructValue():
            for field in value.fields.values():
                yield from parts(field)
        case TupleValue():
            for item in value.items:
                yield from parts(item)
        case MemberNumber():
            yield value.number
        case _:
            yield value


def rebuild(value: Value, change: Callable[[Value], Value]) -> Value:
    """A value of the same structure with `change` applied to every leaf."""
    match value:
        case StructValue():
            return StructValue(value.element, {n: rebuild(f, change) for n, f in value.fields.items()})
        case TupleValue():
            return TupleValue(tuple(rebuild(item, change) for item in value.items))
        case MemberNumber():
            return MemberNumber(cast("ir.Expression", change(value.number)), value.greatest)
        case _:
            return change(value)


def as_scalar(value: Value) -> Value:
    """An enum's number as the U32 that it is on a device, where it becomes or stands beside a scalar."""
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


def shape(value: Value) -> object:
    """The structure and types of a value: values of one shape can be held by the same variables."""
    match value:
        case StructValue():
            return class_of(value.element), tuple((n, shape(f)) for n, f in value.fields.items())
        case TupleValue():
            return tuple(shape(item) for item in value.items)
        case MemberNumber():
            return MemberNumber
        case _:  # compile-time values, arrays and methods must be the same
            return value.type if isinstance(value, ir.Expression) else value


def class_behind(value: Value) -> type[object] | None:
    """The class of a run-time struct, enum or scalar."""
    if isinstance(value, StructValue):
        return class_of(value.element)
    return SCALARS[value.type] if isinstance(value, ir.Expression) else None


def apart(a: Value, b: Value) -> tuple[Value, Value]:
    """Where two values of different shapes first differ: of two tuples, or structs of a class, the parts that do."""
    if isinstance(a, StructValue) and isinstance(b, StructValue) and class_of(a.element) is class_of(b.element):
        sides = zip(a.fields.values(), b.fields.values(), strict=True)
    elif isinstance(a, TupleValue) and isinstance(b, TupleValue) and len(a.items) == len(b.items):
        sides = zip(a.items, b.items, strict=True)
    else:
        return a, b
    one, other = next((pair for pair in sides if shape(pair[0]) != shape(pair[1])), (a, b))
    is_told = one is a or (isinstance(a, StructValue) and isinstance(one, Static))  # by the struct's description
    return (a, b) if is_told else apart(one, other)


def code_of(value: Value) -> ir.Expression | None:
    """The member's number of a run-time enum; None for other values."""
    if not isinstance(value, StructValue) or not issubclass(class_of(value.element), Enum):
        return None
    code = value.fields["value"]
    assert isinstance(code, ir.Expression)
    return code


def describe(value: Value) -> str:
    """A value as error messages name it."""
    match value:
        case Static(value=type() as cls):
            return f"class {cls.__name__}"
        case Static():
            return f"the compile-time value {value.value!r}"
        case StructValue():
            fixed = ", ".join(repr(part.value) for part in parts(value) if isinstance(part, Static))
            return f"a {class_of(value.element).__name__}{' of ' * bool(fixed)}{fixed}"
        case TupleValue():
            return f"a tuple of {len(value.items)}"
        case MemberNumber():
            return "an enum's number"
        case MemoryValue():
            return "registers" if value.memory.space is ir.Space.REGISTERS else f"the array {value.memory.name!r}"
        case Method():
            return f"the method `.{value.name}`"
        case InvocationValue():
            return "the invocation"
        case Undecided():
            return value.reason
        case _:
            return f"a {value.type}"


def run_time_form(name: str, value: Value) -> str:
    """Code that makes a name a run-time value, for messages about one that is compile-time."""
    match value:
        case Static(value=bool() as known):
            return f"{name} = Bool({known})"
        case Static(value=float() as known):
            return f"{name} = F32({known})"
        case Static(value=int() as known):
            return f"{name} = U32({max(0, known)})"
        case _:
            return f"{name} = U32(0)"
