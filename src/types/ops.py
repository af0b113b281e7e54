"""The table of operations of the IR: for each, its type rule and its semantics.

A row's `evaluate` defines the operation. The constant folder and the simulator call it, with NumPy scalars or whole
arrays; the scalars under CPython agree with it, which a test checks. Each target has a table of how rows are emitted
there; a test compares the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

import attrs
import numpy as np

from .layout import Type

# Python numbers, NumPy scalars or arrays alike: no narrower type covers the operators of all three.
Operand: TypeAlias = Any
TypeRule: TypeAlias = Callable[[Sequence[Type]], Type | None]


@attrs.frozen(eq=False)
class Op:
    """An operation on scalars. `rule` gives the type of the result from those of the operands, or None for an error."""

    name: str
    rule: TypeRule
    evaluate: Callable[..., Operand]
    expects: str

    def __str__(self) -> str:
        return self.name


def _alike(accepts: Callable[[Type], bool], result: Type | None = None) -> TypeRule:
    """The rule that all operands have one accepted type, which is the result's too unless given."""

    def rule(types: Sequence[Type]) -> Type | None:
        if len(set(types)) != 1 or not accepts(types[0]):
            return None
        return result or types[0]

    return rule


def _shift(types: Sequence[Type]) -> Type | None:
    return types[0] if types[0].is_integer and types[1] is Type.U32 else None


def _select(types: Sequence[Type]) -> Type | None:
    return types[1] if types[0] is Type.BOOL and types[1] is types[2] else None


def _where(condition: Operand, then: Operand, otherwise: Operand) -> Operand:
    where: Callable[..., Operand] = np.where
    return where(condition, then, otherwise)


def _is_bits(type: Type) -> bool:
    return type.is_integer or type is Type.BOOL


def _is_signed(type: Type) -> bool:
    return type.is_number and not type.is_unsigned


def _is_comparable(type: Type) -> bool:
    return type.is_number


def _is_equatable(type: Type) -> bool:
    return type.is_number or type is Type.BOOL


def _bit_width(value: Operand) -> int:
    return 8 * int(value.dtype.itemsize)


def _bit_length(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bit length of each value: a binary search, which works on arrays."""
    dtype = np.dtype(value.dtype)
    length = np.zeros(value.shape, np.uint32)
    for step in (32, 16, 8, 4, 2, 1):
        if step < _bit_width(value):
            large = (value >> np.asarray(step, dtype)) != 0
            length = length + np.where(large, np.uint32(step), np.uint32(0))
            value = np.where(large, value >> np.asarray(step, dtype), value).astype(dtype)
    return length + np.where(value != 0, np.uint32(1), np.uint32(0))


def _leading_zeros(value: Operand) -> Operand:
    return np.uint32(_bit_width(value)) - _bit_length(value)


def _trailing_zeros(value: Operand) -> Operand:
    lowest = value & (~value + value.dtype.type(1))
    return np.where(value == 0, np.uint32(_bit_width(value)), _bit_length(lowest) - (value != 0).astype(np.uint32))


def _cast_rule(source: Type, target: Type) -> bool:
    """The casts: between integers, from Bool to numbers, from integers and floats to floats."""
    if source is target or target is Type.BOOL:
        return False
    if target in (Type.U8, Type.U16):
        return source in (Type.U32, Type.BOOL)
    if source in (Type.U8, Type.U16):
        return target is Type.U32 or target in (Type.U64, Type.I32, Type.I64)
    return not (source.is_float and target.is_integer)


def _unary(name: str, rule: TypeRule, evaluate: Callable[[Operand], Operand], expects: str) -> Op:
    return Op(name, rule, evaluate, expects)


def _binary(name: str, rule: TypeRule, evaluate: Callable[[Operand, Operand], Operand], expects: str) -> Op:
    return Op(name, rule, evaluate, expects)


def _ternary(name: str, rule: TypeRule, evaluate: Callable[[Operand, Operand, Operand], Operand], expects: str) -> Op:
    return Op(name, rule, evaluate, expects)


ADD = _binary("add", _alike(lambda t: t.is_number), lambda a, b: a + b, "two numbers of one type")
# For addresses: if the sum of two U32 overflows, the result is unspecified.
ADD_NOWRAP = _binary("add_nowrap", _alike(lambda t: t is Type.U32), lambda a, b: a + b, "two U32")
SUB = _binary("sub", _alike(lambda t: t.is_number), lambda a, b: a - b, "two numbers of one type")
MUL = _binary("mul", _alike(lambda t: t.is_number), lambda a, b: a * b, "two numbers of one type")
DIV = _binary("div", _alike(lambda t: t.is_float), lambda a, b: a / b, "two floats of one type")
FLOORDIV = _binary(
    "floordiv", _alike(lambda t: t.is_unsigned), lambda a, b: a // b, "two unsigned integers of one type"
)
MOD = _binary("mod", _alike(lambda t: t.is_unsigned), lambda a, b: a % b, "two unsigned integers of one type")
NEG = _unary("neg", _alike(_is_signed), lambda a: -a, "a signed number")
AND = _binary("and", _alike(_is_bits), lambda a, b: a & b, "two integers or Bools of one type")
OR = _binary("or", _alike(_is_bits), lambda a, b: a | b, "two integers or Bools of one type")
XOR = _binary("xor", _alike(_is_bits), lambda a, b: a ^ b, "two integers or Bools of one type")
INVERT = _unary("invert", _alike(_is_bits), lambda a: ~a, "an integer or a Bool")
# The amount of a shift is a U32, taken modulo the width, as in WGSL.
SHL = _binary("shl", _shift, lambda a, b: a << (b & (_bit_width(a) - 1)).astype(a.dtype), "an integer and a U32")
SHR = _binary("shr", _shift, lambda a, b: a >> (b & (_bit_width(a) - 1)).astype(a.dtype), "an integer and a U32")
EQ = _binary("eq", _alike(_is_equatable, Type.BOOL), lambda a, b: a == b, "two scalars of one type")
NE = _binary("ne", _alike(_is_equatable, Type.BOOL), lambda a, b: a != b, "two scalars of one type")
LT = _binary("lt", _alike(_is_comparable, Type.BOOL), lambda a, b: a < b, "two numbers of one type")
LE = _binary("le", _alike(_is_comparable, Type.BOOL), lambda a, b: a <= b, "two numbers of one type")
GT = _binary("gt", _alike(_is_comparable, Type.BOOL), lambda a, b: a > b, "two numbers of one type")
GE = _binary("ge", _alike(_is_comparable, Type.BOOL), lambda a, b: a >= b, "two numbers of one type")
MIN = _binary("min", _alike(lambda t: t.is_integer), np.minimum, "two integers of one type")
MAX = _binary("max", _alike(lambda t: t.is_integer), np.maximum, "two integers of one type")
SELECT = _ternary("select", _select, _where, "a Bool and two scalars of one type")
COUNT_ONES = _unary("count_ones", _alike(lambda t: t.is_unsigned, Type.U32),
                lambda a: np.bitwise_count(a).astype(np.uint32), "an unsigned integer")  # fmt: skip
LEADING_ZEROS = _unary(
    "leading_zeros", _alike(lambda t: t.is_unsigned, Type.U32), _leading_zeros, "an unsigned integer"
)
TRAILING_ZEROS = _unary(
    "trailing_zeros", _alike(lambda t: t.is_unsigned, Type.U32), _trailing_zeros, "an unsigned integer"
)
SQRT = _unary("sqrt", _alike(lambda t: t.is_float), np.sqrt, "a float")
EXP = _unary("exp", _alike(lambda t: t.is_float), np.exp, "a float")
LOG = _unary("log", _alike(lambda t: t.is_float), np.log, "a float")

# The result type of CAST and BITCAST is given, not derived: their `rule` is never called.
CAST = _binary("cast", lambda types: None, lambda a, type: a.astype(type.dtype), "a scalar that converts")
BITCAST = _binary("bitcast", lambda types: None, lambda a, type: a.view(type.dtype), "a scalar of the same size")

OPS = (ADD, ADD_NOWRAP, SUB, MUL, DIV, FLOORDIV, MOD, NEG, AND, OR, XOR, INVERT, SHL, SHR, EQ, NE, LT, LE, GT, GE,
       MIN, MAX, SELECT, COUNT_ONES, LEADING_ZEROS, TRAILING_ZEROS, SQRT, EXP, LOG, CAST, BITCAST)  # fmt: skip


def can_cast(source: Type, target: Type) -> bool:
    """Whether there is a CAST between two types."""
    return _cast_rule(source, target)


def can_bitcast(source: Type, target: Type) -> bool:
    """Whether there is a BITCAST between two types: different numbers of one size."""
    return source is not target and source.size == target.size and source.is_number and target.is_number


def apply(op: Op, *operands: np.generic | np.ndarray[Any, Any], to: Type | None = None) -> np.ndarray[Any, Any]:
    """Evaluates an operation on NumPy values: integers wrap, floats follow IEEE 754, nothing warns.

    Raises ZeroDivisionError for integer division by zero.
    """
    lifted = [a if a.ndim else a.reshape(1) for a in map(np.asarray, operands)]  # NumPy scalars warn where they wrap
    if op in (FLOORDIV, MOD) and not np.all(lifted[1]):
        raise ZeroDivisionError(f"{op} by zero")
    with np.errstate(all="ignore"):
        result = op.evaluate(*lifted) if to is None else op.evaluate(*lifted, to)
    array = np.asarray(result)
    return array if any(operand.ndim for operand in operands) else array.reshape(())


class SubgroupOp(Enum):
    """Collective operations of a subgroup. Lanes count from 0; a mask is a U64 with bit i for lane i."""

    BALLOT = "ballot"  # (Bool) -> U64: the lanes where it holds
    MATCH = "match"  # (U32) -> U64: the lanes with the same value
    SHUFFLE = "shuffle"  # (T, U32 lane) -> T: the value of that lane (taken modulo the subgroup's size)
    SHUFFLE_XOR = "shuffle_xor"  # (T, U32 mask) -> T: the value of lane ^ mask
    SHUFFLE_UP = "shuffle_up"  # (T, U32 distance) -> T: the value of lane - distance; my own where there is none
    SHUFFLE_DOWN = "shuffle_down"  # (T, U32 distance) -> T: the value of lane + distance; my own where there is none
    ADD = "add"  # (U32) -> U32: the sum over the lanes
    EXCLUSIVE_ADD = "exclusive_add"  # (U32) -> U32: the sum over the lanes below mine

    @property
    def is_shuffle(self) -> bool:
        """Whether it gives the value of one other lane."""
        return self.types is None

    @property
    def operand_count(self) -> int:
        return 2 if self.is_shuffle else 1

    @property
    def types(self) -> tuple[Type, Type] | None:
        """The types of the operand and of the result; None for shuffles, which take any and keep it."""
        if self in (SubgroupOp.BALLOT, SubgroupOp.MATCH):
            return Type.BOOL if self is SubgroupOp.BALLOT else Type.U32, Type.U64
        return (Type.U32, Type.U32) if self in (SubgroupOp.ADD, SubgroupOp.EXCLUSIVE_ADD) else None


class AtomicOp(Enum):
    """Relaxed atomic updates of a U32 in storage or workgroup memory."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCHANGE = "exchange"
    LOAD = "load"
    STORE = "store"
