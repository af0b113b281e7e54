"""The table of operations of the IR: for each, its type rule and its semantics on NumPy scalars and arrays, with which
the scalars under CPython and the tables of targets agree: tests compare them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

import attrs
import numpy as np

from .layout import Type

# Python numbers, NumPy scalars or arrays alike: no narrower type covers the operators of all three.
Operand: TypeAlias = Any
operators: Any = operator  # of which typeshed leaves some unknown
_where: Callable[..., Operand] = np.where
TypeRule: TypeAlias = Callable[[Sequence[Type]], Type | None]
_Takes: TypeAlias = tuple[TypeRule, str]  # with what an error message says is expected
_Evaluate: TypeAlias = Callable[[Operand], Operand] | Callable[[Operand, Operand], Operand]


@attrs.frozen(eq=False)
class Op:
    """An operation on scalars. `rule` gives the type of the result from those of the operands, or None for an error."""

    name: str
    rule: TypeRule
    evaluate: Callable[..., Operand]
    expects: str
    sign: str = ""  # as Python writes it, before its operand or between two; calls have none

    def __str__(self) -> str:
        return self.name


def _alike(accepts: Callable[[Type], bool], expects: str, result: Type | None = None) -> _Takes:
    """That all operands have one accepted type, which is the result's too unless given."""

    def rule(types: Sequence[Type]) -> Type | None:
        first = types[0]
        if not accepts(first) or any(other is not first for other in types):
            return None
        return result or first

    return rule, expects


def _shift(types: Sequence[Type]) -> Type | None:
    return types[0] if types[0].is_integer and types[1] is Type.U32 else None


def _select(types: Sequence[Type]) -> Type | None:
    return types[1] if types[0] is Type.BOOL and types[1] is types[2] else None


def _bit_width(value: Operand) -> int:
    return 8 * int(value.dtype.itemsize)


def _leading_zeros(value: np.ndarray[Any, Any]) -> Operand:
    """The zeros above the highest bit that is set: those left once all below it are set too."""
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < _bit_width(value):
            value = value | value >> shift
    return np.bitwise_count(~value).astype(np.uint32)


def _row(name: str, takes: _Takes, evaluate: _Evaluate, sign: str = "") -> Op:
    return Op(name, takes[0], evaluate, takes[1], sign)


_NUMBERS = _alike(lambda t: t.is_number, "two numbers of one type")
_FLOAT, _FLOATS = (_alike(lambda t: t.is_float, expects) for expects in ("a float", "two floats of one type"))
_INTEGERS = _alike(lambda t: t.is_integer, "two integers of one type")
_UNSIGNED = _alike(lambda t: t.is_unsigned, "two unsigned integers of one type")
_COUNTED = _alike(lambda t: t.is_unsigned, "an unsigned integer", Type.U32)
_BIT, _BITS = (
    _alike(lambda t: t.is_integer or t is Type.BOOL, expects)
    for expects in ("an integer or a Bool", "two integers or Bools of one type")
)
_EQUATED = _alike(lambda t: t.is_number or t is Type.BOOL, "two scalars of one type", Type.BOOL)
_COMPARED = _alike(lambda t: t.is_number, "two numbers of one type", Type.BOOL)
_SHIFTED: _Takes = _shift, "an integer and a U32"

ADD = _row("add", _NUMBERS, operators.add, "+")
# For addresses: if the sum of two U32 overflows, the result is unspecified.
ADD_NOWRAP = _row("add_nowrap", _alike(lambda t: t is Type.U32, "two U32"), operators.add)
SUB = _row("sub", _NUMBERS, operators.sub, "-")
MUL = _row("mul", _NUMBERS, operators.mul, "*")
DIV = _row("div", _FLOATS, operators.truediv, "/")
FLOORDIV = _row("floordiv", _UNSIGNED, operators.floordiv, "//")
MOD = _row("mod", _UNSIGNED, operators.mod, "%")
NEG = _row("neg", _alike(lambda t: t.is_number and not t.is_unsigned, "a signed number"), operators.neg, "-")
AND = _row("and", _BITS, operators.and_, "&")
OR = _row("or", _BITS, operators.or_, "|")
XOR = _row("xor", _BITS, operators.xor, "^")
INVERT = _row("invert", _BIT, operators.invert, "~")
# The amount of a shift is a U32, taken modulo the width, as in WGSL.
SHL = _row("shl", _SHIFTED, lambda a, b: a << (b & (_bit_width(a) - 1)).astype(a.dtype), "<<")
SHR = _row("shr", _SHIFTED, lambda a, b: a >> (b & (_bit_width(a) - 1)).astype(a.dtype), ">>")
EQ = _row("eq", _EQUATED, operators.eq, "==")
NE = _row("ne", _EQUATED, operators.ne, "!=")
LT = _row("lt", _COMPARED, operators.lt, "<")
LE = _row("le", _COMPARED, operators.le, "<=")
GT = _row("gt", _COMPARED, operators.gt, ">")
GE = _row("ge", _COMPARED, operators.ge, ">=")
MIN = _row("min", _INTEGERS, np.minimum)
MAX = _row("max", _INTEGERS, np.maximum)
SELECT = Op("select", _select, _where, "a Bool and two scalars of one type")
COUNT_ONES = _row("count_ones", _COUNTED, lambda a: np.bitwise_count(a).astype(np.uint32))
LEADING_ZEROS = _row("leading_zeros", _COUNTED, _leading_zeros)
TRAILING_ZEROS = _row("trailing_zeros", _COUNTED, lambda a: np.bitwise_count(~a & a - 1).astype(np.uint32))
SQRT = _row("sqrt", _FLOAT, np.sqrt)
EXP = _row("exp", _FLOAT, np.exp)
LOG = _row("log", _FLOAT, np.log)

# The result type of CAST and BITCAST is given, not derived: their `rule` is never called.
CAST = _row("cast", (lambda types: None, "a scalar that converts"), lambda a, type: a.astype(type.dtype))
BITCAST = _row("bitcast", (lambda types: None, "a scalar of the same size"), lambda a, type: a.view(type.dtype))

OPS = tuple(thing for thing in tuple(globals().values()) if isinstance(thing, Op))
COMPARISONS = (EQ, NE, LT, LE, GT, GE)
DIVISIONS = (FLOORDIV, MOD)
BIT_COUNTS = (COUNT_ONES, LEADING_ZEROS, TRAILING_ZEROS)
CONVERSIONS = (CAST, BITCAST)


def can_cast(source: Type, target: Type) -> bool:
    """Whether there is a CAST: between integers, from Bool to numbers, from integers and floats to floats."""
    if source is target or target is Type.BOOL:
        return False
    if target.is_narrow:
        return source in (Type.U32, Type.BOOL)
    if source.is_narrow:
        return target in (Type.U32, Type.U64, Type.I32, Type.I64)
    return not (source.is_float and target.is_integer)


def can_bitcast(source: Type, target: Type) -> bool:
    """Whether there is a BITCAST between two types: different numbers of one size."""
    return source is not target and source.size == target.size and source.is_number and target.is_number


def apply(op: Op, *operands: np.generic | np.ndarray[Any, Any], to: Type | None = None) -> np.ndarray[Any, Any]:
    """Evaluates an operation on NumPy values; nothing but an integer division by 0 raises, and nothing warns."""
    lifted = [a if a.ndim else a.reshape(1) for a in map(np.asarray, operands)]  # NumPy scalars warn where they wrap
    if op in DIVISIONS and not np.all(lifted[1]):
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
