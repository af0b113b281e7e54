"""Text for the errors of arguments.py: how an argument is shown, and an example of what would match."""

from __future__ import annotations

import typing
from enum import Enum
from typing import Any, cast

import numpy as np

from ..types.elements import shown
from ..types.memory import Array, Storage, Workgroup
from ..types.scalars import Bool, Float, Scalar
from .launch import Buffer


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
        return f"{cls.__name__}.{next(iter(cls.__members__), '...')}"
    if cls in (int, float, bool, str):
        return f"{cls.__name__}(x)" if cls is not bool else "True"
    return shown(annotation) if typing.get_origin(annotation) is tuple or cls is type else f"{cls.__name__}(...)"


def _literal(cls: type[Scalar], value: object) -> str:
    """The argument's own number, if the class accepts it; else a default."""
    number = cast(float, cast("np.generic", value).item() if isinstance(value, Scalar | np.generic) else value)
    try:
        return repr(cls(number).item())
    except (TypeError, ValueError, OverflowError):
        return "True" if issubclass(cls, Bool) else "0.0" if issubclass(cls, Float) else "0"
