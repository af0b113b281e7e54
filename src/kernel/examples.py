"""What messages suggest: code that fits where something else was found, or a function of Python's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from ..types import ops
from ..types.elements import class_of, fields_of, is_struct
from ..types.layout import Type
from ..types.ops import Op
from ..types.scalars import Scalar
from . import ir
from .values import Value, first_member

_UNSIGNED = {4: Type.U32, 8: Type.U64}  # by the size of what they share their bits with


def converted(source: Type, target: Type) -> str:
    """`x` of one type, written as another: by way of a third where none leads straight there."""
    if target is Type.BOOL:
        return "x != 0"
    if source is target or ops.can_cast(source, target):
        return f"{target}(x)"
    if ops.can_bitcast(source, target):
        return f"bitcast({target}, x)"
    bits = _UNSIGNED[source.size] if source.is_float else Type.U32
    inner = f"bitcast({bits}, x)" if source.is_float else f"{bits}(x)"
    if ops.can_cast(bits, target):
        return f"{target}({inner})"
    return f"{target}(U32({inner}))"


def operand_of(op: Op, found: Sequence[Type]) -> str:
    """A conversion of one operand to a type that the operation accepts: one that all convert to, where there is."""
    if op is ops.SELECT:
        return "select(a < b, a, b)"
    accepted = [type for type in (*found, Type.U32, Type.I32, Type.F32) if op.rule([type] * len(found)) is not None]
    for type in accepted:
        if all(other is type or ops.can_cast(other, type) for other in found):
            return f"{type}(x)"
    return next(converted(other, accepted[0]) for other in found if other is not accepted[0])


def element_of(element: object, found: Value) -> str:
    """A value of a field's or an array's class."""
    cls = class_of(element)
    if issubclass(cls, Enum):
        return f"{cls.__name__}.{first_member(cls)}"
    if issubclass(cls, Scalar) and isinstance(found, ir.Expression):
        expression: ir.Expression = found
        return converted(expression.type, cls.type)
    if is_struct(cls):
        return f"{cls.__name__}({', '.join(fields_of(element))})"
    if issubclass(cls, int):  # known before the launch
        return "True" if cls is bool else "8"
    return f"{cls.__name__}(x)"


_INSTEAD: dict[object, str] = {
    int: "I32(x)",
    float: "F32(x)",
    bool: "x != 0",
    abs: "x if x >= 0 else -x",
    min: "minimum(a, b)",
    max: "maximum(a, b)",
    len: "data.length",
    sum: "a + b",
    pow: "x * x",
    divmod: "a // b",
    range: "dynamic_range(U32(0), n)",
    math.sqrt: "sqrt(x)",
    math.exp: "exp(x)",
    math.log: "log(x)",
}


def instead_of(function: object, otherwise: str) -> str:
    """An expression over scalars that does the same, for the end of an error message."""
    try:
        return f"e.g. `{_INSTEAD[function]}`" if function in _INSTEAD else otherwise
    except TypeError:  # not hashable, as a callable object of the user's may be
        return otherwise
