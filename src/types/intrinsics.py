"""Intrinsics: operations on scalars that Python has no operator for, each registered with its row in ops.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar, cast

import numpy as np

from . import ops
from .scalars import U32, U64, Bool, Float, Integer, Scalar, Unsigned

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
N = TypeVar("N", bound=Integer)
F = TypeVar("F", bound=Float)
S = TypeVar("S", bound=Scalar)

OPERATIONS: dict[object, ops.Op] = {}
OVERRIDABLE: set[object] = set()  # helpers for which a target may emit its own implementation


def operation(op: ops.Op) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers a function as the intrinsic for an operation of ops.py."""

    def register(function: Callable[P, R]) -> Callable[P, R]:
        OPERATIONS[function] = op
        return function

    return register


def overridable(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a helper, of memories and scalars to a scalar, for which a target may emit its own implementation."""
    OVERRIDABLE.add(function)
    return function


def _alike(a: T, b: T) -> tuple[T, T]:
    """Both operands as the reader takes them: a literal beside a scalar becomes one of its type."""
    if type(a) is not type(b):
        if isinstance(a, Scalar):
            return a, cast(T, a.beside(b))
        if isinstance(b, Scalar):
            return cast(T, b.beside(a)), b
    return a, b


def _integers(name: str, a: N | int, b: N | int) -> tuple[N, N]:
    found, other = _alike(cast(object, a), cast(object, b))  # whatever the checkers were told
    if isinstance(found, Scalar) and not isinstance(found, Integer):
        raise TypeError(f"{name}: expected two integers, found {found!r}; write `a if a < b else b`")
    return cast(N, found), cast(N, other)


@operation(ops.MIN)
def minimum(a: N | int, b: N | int) -> N:
    """The lesser of two integers."""
    first, second = _integers("minimum", a, b)
    return first if first < second else second


@operation(ops.MAX)
def maximum(a: N | int, b: N | int) -> N:
    """The greater of two integers."""
    first, second = _integers("maximum", a, b)
    return first if first > second else second


@operation(ops.ADD_NOWRAP)
def add_nowrap(a: U32, b: U32) -> U32:
    """The sum of two numbers, which must fit 32 bits, so that a compiler may fold it into address arithmetic. Raises
    OverflowError under CPython where it does not fit."""
    if int(a) + int(b) > U32.type.high:
        raise OverflowError(f"add_nowrap: {a!r} + {b!r} does not fit 32 bits")
    return a + b


@operation(ops.SELECT)
def select(condition: Bool, then: T, otherwise: T) -> T:
    """One of two values, both of which are evaluated: never a branch."""
    then, otherwise = _alike(then, otherwise)
    return then if condition else otherwise


def _require(kind: type[Scalar], name: str, value: object, expected: str) -> None:
    if not isinstance(value, kind):
        example = "F32(x)" if kind is Float else "U32(x)"
        raise TypeError(f"{name}: expected {expected}, found {value!r}; convert it, e.g. `{example}`")


def _unsigned(name: str, value: object) -> int:
    _require(Unsigned, name, value, "an unsigned integer")
    return int(cast(Unsigned, value))


@operation(ops.COUNT_ONES)
def count_ones(value: U32 | U64) -> U32:
    """The number of bits set (population count)."""
    return U32(_unsigned("count_ones", value).bit_count())


@operation(ops.LEADING_ZEROS)
def leading_zeros(value: U32 | U64) -> U32:
    """The number of zero bits above the highest set one; the width for 0."""
    return U32(value.type.bits - _unsigned("leading_zeros", value).bit_length())


@operation(ops.TRAILING_ZEROS)
def trailing_zeros(value: U32 | U64) -> U32:
    """The number of zero bits below the lowest set one; the width for 0."""
    number = _unsigned("trailing_zeros", value)
    return U32((number & -number).bit_length() - 1 if number else value.type.bits)


def _float_operation(op: ops.Op, value: F) -> F:
    _require(Float, op.name, value, "a float")
    return type(value)(float(ops.apply(op, value.type.dtype.type(float(value)))))


@operation(ops.SQRT)
def sqrt(value: F) -> F:
    """The square root."""
    return _float_operation(ops.SQRT, value)


@operation(ops.EXP)
def exp(value: F) -> F:
    """e to the value; devices differ in the last bits."""
    return _float_operation(ops.EXP, value)


@operation(ops.LOG)
def log(value: F) -> F:
    """The natural logarithm; devices differ in the last bits."""
    return _float_operation(ops.LOG, value)


@operation(ops.BITCAST)
def bitcast(to: type[S], value: Scalar) -> S:
    """Reinterprets bits as another type of the same size: `bitcast(U32, x)` of an F32."""
    _require(Scalar, "bitcast", value, "a scalar")
    if not ops.can_bitcast(value.type, to.type):
        raise TypeError(f"{value.type} has not the size of {to.type}, or is of that type already")
    return to(np.asarray(value.item(), value.type.dtype).view(to.type.dtype).item())


def dynamic_range(start: U32, stop: U32, step: U32 | None = None) -> Iterator[U32]:
    """A run-time loop, unlike `range` of Python ints, which is unrolled at compile time."""
    bounds = (start, stop, 1 if step is None else step)
    for value in range(*[int(U32(0).beside(bound)) for bound in bounds]):
        yield U32(value)
