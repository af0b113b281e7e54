"""Element types of arrays and their memory layout: scalars, enums, and frozen attrs classes (structs) of them. A class
of one field is stored as its field, one of several as a C struct (NumPy's `align=True`)."""

from __future__ import annotations

import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

import attrs
import numpy as np
import numpy.typing as npt

from . import scalars
from .deferred import annotations_of, hints_of
from .layout import Type
from .scalars import UNSIGNED, Bool, Scalar

T = TypeVar("T")
R = TypeVar("R")

_SCALARS = scalars.__name__
WORD_BYTES = 4  # the least size of an element in workgroup memory and registers


@attrs.frozen
class Leaf:
    """A scalar field of an element, at any depth, with its offset in bytes."""

    type: Type
    offset: int


def _memoised(function: Callable[[object], R]) -> Callable[[object], R]:
    """Memoises a function of element types, without a bound: these are few."""
    return cast("Callable[[object], R]", cache(function))  # to mypy not all classes have a hash


@_memoised
def class_of(element: object) -> type[object]:
    """The class of an element type, without type arguments: `Pair` for `Pair[U32]`."""
    found = typing.get_origin(element) or element
    if not isinstance(found, type):
        raise TypeError(f"expected a scalar, an enum or a frozen attrs class as an element, found {element!r}")
    return found


def is_struct(element: object) -> bool:
    """Whether this is an attrs class, a newtype included."""
    return attrs.has(class_of(element))


@_memoised
def fields_of(element: object) -> dict[str, object]:
    """The fields of a struct with their types; type arguments are substituted."""
    cls = class_of(element)
    hints = _hints_of(cls)
    parameters = getattr(cls, "__parameters__", ())
    filled = dict(zip(parameters, typing.get_args(element), strict=False))
    return {field.name: filled.get(hints[field.name], hints[field.name]) for field in attrs.fields(cast(Any, cls))}


def _hints_of(cls: type[object]) -> dict[str, Any]:
    """The types of a class's annotations, which may be strings. Where its module does not have their names, as where a
    class came in a pickle by value or was made by `exec`, those of scalars are known all the same."""
    try:
        return typing.get_type_hints(cls)
    except NameError:
        known = {name: thing for name, thing in vars(scalars).items() if getattr(thing, "__module__", "") == _SCALARS}
    try:
        return hints_of(cls, known)
    except NameError as failure:
        are_strings = any(isinstance(annotation, str) for annotation in annotations_of(cls).values())
        raise TypeError(
            f"expected types of {cls.__name__}'s fields that module {cls.__module__!r} has, found {failure.name!r}, "
            + ("e.g. the types themselves, without `from __future__ import annotations`" if are_strings
               else "e.g. an import of it that is not for type checkers alone")
        ) from failure  # fmt: skip


@_memoised
def scalar_of(element: object) -> Type | None:
    """The scalar that an element is stored as: its own type, U32 for an enum, a newtype's field; None for a struct."""
    cls = class_of(element)
    if issubclass(cls, Scalar):
        return cls.type
    if issubclass(cls, Enum):
        return Type.U32
    if attrs.has(cls):
        fields = fields_of(element)
        if len(fields) == 1:
            return scalar_of(next(iter(fields.values())))
        return None
    raise TypeError(f"expected a scalar, an enum or a frozen attrs class as an element, found {cls.__name__}")


@_memoised
def dtype_of(element: object) -> np.dtype[Any]:
    """The NumPy dtype of one element in memory."""
    scalar = scalar_of(element)
    if scalar is not None:
        return scalar.dtype
    fields = [(name, dtype_of(field)) for name, field in fields_of(element).items()]
    return cast("np.dtype[Any]", np.dtype(fields, align=True))


@_memoised
def leaves(element: object) -> tuple[Leaf, ...]:
    """The scalars of an element, in the order of its fields."""
    scalar = scalar_of(element)
    if scalar is not None:
        return (Leaf(scalar, 0),)
    layout: Any = dtype_of(element).fields
    fields = fields_of(element).items()
    return tuple(Leaf(leaf.type, layout[name][1] + leaf.offset) for name, field in fields for leaf in leaves(field))


@_memoised
def unit_of(element: object) -> Type:
    """The scalar that a memory of such elements consists of in the IR: that of all fields, or if they differ an
    unsigned one of the smallest field's size."""
    scalar = scalar_of(element)
    if scalar is not None:
        return scalar
    types = {leaf.type for leaf in leaves(element)}
    return types.pop() if len(types) == 1 else UNSIGNED[min(type.size for type in types)].type


@_memoised
def units_in(element: object) -> int:
    return dtype_of(element).itemsize // unit_of(element).size


def bytes_held(element: object) -> int:
    """The bytes of an element in workgroup memory or in registers, at most: on WGSL each unit takes a word or more."""
    return units_in(element) * max(WORD_BYTES, unit_of(element).size)


def mismatch(element: object, value: object) -> str | None:
    """Why a value cannot be stored in an array of such elements, as an error message; None where it can."""
    cls = class_of(element)
    is_flag = cls is Bool and isinstance(value, bool)
    if type(value) is not cls and not is_flag:
        return f"expected {cls.__name__} to store, found {value!r}, e.g. `{cls.__name__}(x)`"
    if attrs.has(cls):
        for name, field in fields_of(element).items():
            wrong = None if isinstance(field, TypeVar) else mismatch(field, getattr(value, name))
            if wrong is not None:
                return f"{wrong} as `{name}` of {cls.__name__}"
    return None


def encode(value: object) -> Any:
    """An element as NumPy stores it: a number, or a tuple of them for a structured dtype."""
    if isinstance(value, Scalar):
        return value.item()
    if isinstance(value, bool):  # a Bool to `mismatch`: what enums' comparisons give
        return value
    if isinstance(value, Enum):
        return value.value
    parts: list[Any] = [encode(getattr(value, name)) for name in fields_of(type(value))]
    if len(parts) == 1 and not isinstance(parts[0], tuple):  # a newtype: see scalar_of
        return parts[0]
    return tuple(parts)


def decode(element: type[T], item: Any) -> T:
    """The element that NumPy stores as `item`: the inverse of encode."""
    cls = class_of(element)
    make = cast("Callable[..., T]", cls)
    if issubclass(cls, Scalar):
        return make(item.item() if isinstance(item, np.generic) else item)
    if issubclass(cls, Enum):
        return make(int(item))
    fields = [(name, cast("type[object]", field)) for name, field in fields_of(element).items()]
    if scalar_of(element) is not None:
        return make(decode(fields[0][1], item))
    return make(*[decode(field, item[name]) for name, field in fields])


def scalar_reader(element: type[T], dtype: np.dtype[Any]) -> Callable[[Any], T] | None:
    """A shorter `decode` for scalars of their own dtype, of Python's numbers; None for other elements."""
    cls = cast("object", element)  # a class, or one with type arguments
    if isinstance(cls, type) and issubclass(cls, Scalar) and cls.type.dtype == dtype:
        return cast("Callable[[Any], T]", cls.of_item)
    return None


def differ(found: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where elements of one dtype differ in the bits of any number; what lies between fields does not count."""
    if (names := found.dtype.names) is not None:
        return np.asarray(np.any([differ(found[name], other[name]) for name in names], axis=0))
    bits = f"u{found.itemsize}" if found.dtype.kind in "iuf" else found.dtype
    return np.asarray(found.view(bits) != other.view(bits))


def shown(annotation: object) -> str:
    """An annotation or a class as text, without module names."""
    if isinstance(annotation, TypeVar):
        return annotation.__name__
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Ellipsis:
        return "..."
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        return annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    inner = ", ".join(map(shown, parts))
    name = getattr(origin, "__name__", str(origin))
    return " | ".join(map(shown, parts)) if name in ("Union", "UnionType") else f"{name}[{inner}]"
