"""Texts of error messages: how values and arguments are described, and examples of code that would be accepted."""

from __future__ import annotations

import dataclasses
import math
import sys
import typing
from collections.abc import Sequence
from enum import Enum
from typing import Any, NewType, cast

import attrs
import numpy as np

from ..types import ops
from ..types.elements import class_of, fields_of, is_struct, shown
from ..types.layout import Type
from ..types.memory import Array, Storage, Workgroup
from ..types.ops import Op
from ..types.scalars import UNSIGNED, Bool, Float, Scalar
from . import ir
from .launch import Buffer
from .values import (
    InvocationValue,
    MemberNumber,
    MemoryValue,
    Method,
    StructValue,
    Undecided,
    Value,
    is_known,
    is_tuple,
)


def converted(source: Type, target: Type) -> str:
    """Converts `x` from one type to another, in two steps where no single cast or bitcast does."""
    if target is Type.BOOL:
        return "x != 0"
    if source is target or ops.can_cast(source, target):
        return f"{target}(x)"
    if ops.can_bitcast(source, target):
        return f"bitcast({target}, x)"
    bits = UNSIGNED[source.size].type if source.is_float else Type.U32
    inner = f"bitcast({bits}, x)" if source.is_float else f"{bits}(x)"
    if ops.can_cast(bits, target):
        return f"{target}({inner})"
    return f"{target}(U32({inner}))"


def operand_of(op: Op, found: Sequence[Type]) -> str:
    """Converts one operand to a type that the operation accepts, preferably one that all operands cast to."""
    if op is ops.SELECT:
        return "select(a < b, a, b)"
    if op in (ops.MIN, ops.MAX) and len(set(found)) == 1 and all(type.is_float for type in found):
        return "a if a < b else b" if op is ops.MIN else "b if a < b else a"
    accepted = [type for type in (*found, Type.U32, Type.I32, Type.F32) if op.rule([type] * len(found)) is not None]
    for type in accepted:
        if all(other is type or ops.can_cast(other, type) for other in found):
            return f"{type}(x)"
    return next(converted(other, accepted[0]) for other in found if other is not accepted[0])


def element_of(element: object, found: Value) -> str:
    cls = class_of(element)
    if issubclass(cls, Enum):
        return f"{cls.__name__}.{next(iter(cls.__members__), 'MEMBER')}"
    if issubclass(cls, Scalar) and isinstance(found, ir.Expression):
        expression: ir.Expression = found
        return converted(expression.type, cls.type)
    if is_struct(cls):
        return f"{cls.__name__}({', '.join(fields_of(element))})"
    if issubclass(cls, int):  # a compile-time value
        return "True" if cls is bool else "8"
    return f"{cls.__name__}(x)"


def loop_over(found: Value) -> str:
    """A loop of the kernel language in place of one that iterates over a value."""
    if isinstance(found, MemoryValue):
        return "for i in dynamic_range(U32(0), data.length):"
    return "for i in dynamic_range(U32(0), n):" if isinstance(found, ir.Expression) else "for i in range(8):"


_LESSER, _GREATER = "minimum(a, b)`, of floats `a if a < b else b", "maximum(a, b)`, of floats `a if a > b else b"
_INSTEAD: dict[object, str] = {
    int: "I32(x)", float: "F32(x)", bool: "x != 0", abs: "x if x >= 0 else -x", min: _LESSER, max: _GREATER,
    len: "data.length", sum: "a + b", any: "a or b", all: "a and b",
    enumerate: "for i in range(len(table)):", zip: "for i in range(len(table)):",
    reversed: "for i in range(7, -1, -1):", pow: "x * x", divmod: "a // b", range: "for i in dynamic_range(U32(0), n):",
    math.sqrt: "sqrt(x)", math.exp: "exp(x)", math.log: "log(x)", np.minimum: _LESSER, np.maximum: _GREATER,
    attrs.evolve: "Pair(p.low, x)", dataclasses.replace: "Pair(p.low, x)",
    super: "Base.method(self)", attrs.astuple: "p.low", attrs.asdict: "p.low", typing.assert_never: "match order:",
}  # fmt: skip
_PACKAGE = __name__.partition(".")[0]
_OF_HOSTS = tuple(f"{_PACKAGE}.{part}" for part in ("api.", "kernel.", "targets.", "types.dtypes", "types.scalars"))
_LIBRARIES = frozenset({"attr", "attrs", "numpy"})  # besides Python's own


def is_from_a_library(function: object) -> bool:
    """Whether a function's module was written for CPython only: the standard library, NumPy, attrs, or this package's
    part for hosts. Told by the function's globals, as from Python 3.13 on `attrs.evolve` has the `__module__` of its
    last caller."""
    named = getattr(function, "__globals__", {}).get("__name__", getattr(function, "__module__", None))
    home = str(named).partition(".")[0]
    if home == _PACKAGE:
        return str(named).startswith(_OF_HOSTS)
    return home != "__main__" and (home in _LIBRARIES or home in sys.stdlib_module_names)


def callable_for(found: object) -> str:
    """What is expected in place of a callable that cannot be called in a kernel."""
    name, hint = getattr(found, "__name__", repr(found)), instead_of(found, "e.g. a helper of your own")
    if isinstance(found, NewType):
        return (
            f"an attrs class as a newtype, found the NewType {name!r}, e.g. `@attrs.frozen` above a class of one field"
        )
    if found is print:
        return "no `print` in a kernel, e.g. a breakpoint in a run under CPython instead"
    if isinstance(found, type) and issubclass(found, Array):
        what = "storage" if issubclass(found, Storage) else "workgroup memory"
        name = "data: Storage[U32]" if issubclass(found, Storage) else "tile: Workgroup[U32]"
        return f"{what} as a parameter of the kernel, which the launch gives its length, e.g. `{name}`"
    if isinstance(found, type) and not is_from_a_library(found) and found.__module__ != "builtins":
        kind = (
            "dataclass" if dataclasses.is_dataclass(found) else "named tuple" if issubclass(found, tuple) else "class"
        )
        return (
            f"an attrs class to make a value of, found the {kind} {name!r}, e.g. `@attrs.frozen` above its definition"
        )
    if isinstance(found, type) and issubclass(found, np.generic) and found.__name__ in _SCALARS:
        return f"a scalar of the kernel language, found {name!r}, e.g. `{_SCALARS[found.__name__]}(x)`"
    return f"an operation of the kernel language or a helper written in it, found {name!r}, {hint}"


_SCALARS = {kind.dtype.name: kind.name for kind in Type} | {"bool": "Bool"}


def instead_of(function: object, otherwise: str) -> str:
    """The equivalent over scalars, where there is one; else `otherwise`."""
    try:
        return f"e.g. `{_INSTEAD[function]}`" if function in _INSTEAD else otherwise
    except TypeError:  # an unhashable callable
        return otherwise


def shown_value(value: object) -> str:
    """An argument's repr, or its class where that is too long for a line."""
    match value:
        case Workgroup():
            return f"Workgroup({shown(value.kind)}, {len(value.items)})"
        case type():
            return f"the class {value.__name__}"
        case Array() if not isinstance(value, Buffer):
            return f"a {type(cast(object, value)).__name__}"
        case _:
            text = repr(value)
            return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def example_of(annotation: object, value: object) -> str:
    """Code that would match the annotation in the argument's place."""
    cls: Any = typing.get_origin(annotation) or annotation
    element = shown(next(iter(typing.get_args(annotation)), "U32")).strip("'")
    if not isinstance(cls, type):
        return shown(annotation)
    if issubclass(cls, Workgroup):
        return f"Workgroup({element}, 64)"
    if issubclass(cls, Storage):
        known = (value.name, value.count, value.role) if isinstance(value, Buffer) else ("data", 64, "Role.INOUT")
        return f"Buffer({known[0]!r}, {element}, {known[1]}, {known[2]})"
    if issubclass(cls, Scalar):
        return f"{cls.__name__}({_literal(cls, value)})"
    if issubclass(cls, Enum):
        return element_of(cls, None)
    if cls in (int, float, bool, str):
        return f"{cls.__name__}(x)" if cls is not bool else "True"
    return shown(annotation) if typing.get_origin(annotation) is tuple or cls is type else f"{cls.__name__}(...)"


def _literal(cls: type[Scalar], value: object) -> str:
    """The argument's own number, if the class accepts it; else a default."""
    number = cast(float, cast("np.generic", value).item() if isinstance(value, Scalar | np.generic) else value)
    try:
        return repr(cls(number).item())
    except (TypeError, ValueError, OverflowError, NotImplementedError):  # the last by a base of theirs
        return "True" if issubclass(cls, Bool) else "0.0" if issubclass(cls, Float) else "0"


def describe(value: Value) -> str:
    """A value of the reader, as error messages name it."""
    match value:
        case type():
            return f"class {value.__name__}"
        case StructValue():
            fixed = ", ".join(repr(part) for part in value.fields.values() if is_known(part))
            return f"a {class_of(value.element).__name__}{' of ' * bool(fixed)}{fixed}"
        case _ if is_tuple(value):
            return f"a tuple of {len(value)}"
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
            return f"a {value.type}" if isinstance(value, ir.Expression) else f"the compile-time value {value!r}"


def run_time_form(name: str, value: Value) -> str:
    """An assignment that would make a compile-time name a run-time value."""
    match value:
        case bool():
            return f"{name} = Bool({value})"
        case float():
            return f"{name} = F32({value})"
        case int():
            return f"{name} = U32({max(0, value)})"
        case _:
            return f"{name} = U32(0)"
