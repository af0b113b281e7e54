"""What to write in a kernel in place of a function of Python's, or of its math module."""

from __future__ import annotations

import math

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
