"""Compile-time evaluation: Python's functions and operators on compile-time values, and literals. Sizes are limited,
and checked before evaluation where possible: `2 ** 10**9` would take minutes and gigabytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NoReturn, cast

import numpy as np

from ..types.errors import told
from ..types.layout import Type
from ..types.ops import operators
from . import ir
from .builder import MOST_ITERATIONS
from .captures import Captures
from .span import Span, expected
from .values import Value, of_object

MOST_BITS = 4096  # of an int
_MOST_ITEMS = MOST_ITERATIONS  # of a tuple or a text, and of a range that a function goes through
_COUNTING = (math.factorial, math.comb, math.perm)  # whose results grow faster than their arguments


def literal(value: object, type: Type, span: Span) -> ir.Const:
    """A Python number as a literal of a scalar type; raises KernelError if it does not fit. For U8 and U16, which exist
    in memory only, the literal is a U32."""
    if type.is_float and isinstance(value, int | float):
        try:
            with np.errstate(over="ignore"):  # a float too large is infinite, as it is under CPython
                return ir.Const(float(np.asarray(float(value), type.dtype)), type, span)
        except OverflowError:  # which an int is not
            expected(span, f"a literal that fits {type}, found an int beyond all floats, e.g. `{type}(1e30)`")
    if type is Type.BOOL and isinstance(value, bool):
        return ir.Const(value, type, span)
    if (type.is_integer or type.is_narrow) and isinstance(value, int) and not isinstance(value, bool):
        low, high = type.bounds
        if not low <= value <= high:
            expected(span, f"a literal that fits {type} ({low} to {high}), found {told(value)}, e.g. `{type}(1)`")
        return ir.Const(value, Type.U32 if type.is_narrow else type, span)
    example = f"`{type}({True if type is Type.BOOL else 1})`"
    hint = "`int(x)` of it" if isinstance(value, np.integer) else example
    expected(span, f"{type} beside {type}, found {value!r}, e.g. {hint}")


def require_numbers(values: Sequence[Value], span: Span) -> None:
    """Raises KernelError for an enum member that `lift` left at compile time: its value is no number of a device."""
    for value in values:
        if isinstance(value, Enum):
            member = f"{type(value).__name__}.{value.name}"  # of an IntEnum `str` gives the number
            expected(span, f"a number from 0 to 2**32 - 1 as the value of {member}, which is {value.value!r}, "
                           f"e.g. `{value.name} = 1`")  # fmt: skip


def evaluated(span: Span, function: Callable[..., object], *arguments: object) -> Value:
    """The result of a Python function, called at compile time on compile-time values."""
    if _takes_long(function, arguments):
        _refuse_size(span)
    try:
        result = function(*arguments)
    except Exception as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        expected(span, f"compile-time values that fit, found an error ({what}), e.g. `2 * count`")
    if (isinstance(result, int) and result.bit_length() > MOST_BITS) or _items_of(result) > _MOST_ITEMS:
        _refuse_size(span)
    return of_object(result, span)


def called(captures: Captures, span: Span, function: Callable[..., object], *arguments: object) -> Value:
    """The same; the kernel is read anew once the result would be another."""
    found = evaluated(span, function, *arguments)
    captures.call(function, *arguments)
    return found


def _items_of(thing: object) -> int:
    return len(cast("Sequence[object]", thing)) if isinstance(thing, str | bytes | tuple) else 0


def _refuse_size(span: Span) -> NoReturn:
    expected(span, f"compile-time values of at most {MOST_BITS} bits or {_MOST_ITEMS} items, found more, "
                   "e.g. `1 << 32`, or a computation before the launch")  # fmt: skip


def _takes_long(function: object, arguments: Sequence[object]) -> bool:
    """Whether the arguments show that a call would iterate over too much, or that its result would be too large."""
    if not arguments:
        return False
    if any(isinstance(one, range) and len(one[: _MOST_ITEMS + 1]) > _MOST_ITEMS for one in arguments):
        return function is not len
    numbers = [one for one in arguments if isinstance(one, int)]
    if function in _COUNTING:
        return any(number > MOST_BITS // 16 for number in numbers)
    match numbers:
        case [a, b] if function is pow:
            return a.bit_length() * b > MOST_BITS
        case [_, b] if function is operators.lshift:
            return b > MOST_BITS
        case [times] if function is operators.mul:
            return times * max(map(_items_of, arguments)) > _MOST_ITEMS
        case _:
            return False
