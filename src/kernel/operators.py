"""Operators and intrinsics (types/intrinsics.py) on values: evaluated at compile time, a struct's own method inlined,
or an operation of the IR."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn, TypeAlias, TypeGuard

from ..types import ops
from ..types.elements import class_of
from ..types.intrinsics import OPERATIONS
from ..types.layout import Type
from ..types.ops import operators
from ..types.scalars import Scalar
from . import ir
from .builder import KernelBuilder, apply, convert
from .compile_time import called, literal, require_numbers
from .messages import describe, is_from_a_library
from .names import if_else
from .source import signature_of
from .span import Span, expected
from .values import MemberNumber, StructValue, Value, as_scalar, class_behind, enum_number, is_known, lift

# For each operator: Python's function, and the row of the table of operations; or, where scalars have none, what an
# error expects instead.
_INSTEAD_OF_IN = "a comparison of scalars instead of `in`, e.g. `a == b or a == c`"
_Function: TypeAlias = Callable[[Any], Any] | Callable[[Any, Any], Any]
_OPERATORS: dict[type[ast.AST], tuple[_Function, ops.Op | str]] = {
    ast.Add: (operators.add, ops.ADD), ast.Sub: (operators.sub, ops.SUB), ast.Mult: (operators.mul, ops.MUL),
    ast.Div: (operators.truediv, ops.DIV), ast.FloorDiv: (operators.floordiv, ops.FLOORDIV),
    ast.Mod: (operators.mod, ops.MOD), ast.LShift: (operators.lshift, ops.SHL), ast.RShift: (operators.rshift, ops.SHR),
    ast.BitAnd: (operators.and_, ops.AND), ast.BitOr: (operators.or_, ops.OR), ast.BitXor: (operators.xor, ops.XOR),
    ast.Eq: (operators.eq, ops.EQ), ast.NotEq: (operators.ne, ops.NE), ast.Lt: (operators.lt, ops.LT),
    ast.LtE: (operators.le, ops.LE), ast.Gt: (operators.gt, ops.GT), ast.GtE: (operators.ge, ops.GE),
    ast.Is: (operators.is_, ops.EQ), ast.IsNot: (operators.is_not, ops.NE), ast.Not: (operators.not_, ops.INVERT),
    ast.USub: (operators.neg, ops.NEG), ast.UAdd: (operators.pos, ops.NEG), ast.Invert: (operators.invert, ops.INVERT),
    ast.Pow: (pow, "an operator of the kernel language, e.g. `x * x` instead of `x ** 2`"),
    ast.MatMult: (operators.matmul, "an operator of the kernel language, e.g. a loop over `a[i] * b[i]`"),
    ast.In: (lambda a, b: a in b, _INSTEAD_OF_IN), ast.NotIn: (lambda a, b: a not in b, _INSTEAD_OF_IN),
}  # fmt: skip
# The methods by which a struct defines them, named as Python's functions are.
_METHODS = {
    python: f"__{function.__name__.strip('_')}__" for python, (function, _) in _OPERATORS.items()
    if python not in (ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Not)
}  # fmt: skip
# Those by which the operand on the right answers to a comparison.
_MIRRORED = {
    "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__", "__eq__": "__eq__",
    "__ne__": "__ne__",
}  # fmt: skip
_SHIFTS = (ops.SHL, ops.SHR)
# On numbers of enums and non-negative ints these have the same result in 32 bits as in Python, if it fits.
_AS_PYTHON = (ops.ADD, ops.MUL, ops.FLOORDIV, ops.MOD, ops.AND, ops.OR, ops.XOR)
Inline: TypeAlias = Callable[[FunctionType, Sequence[Value], Span], Value]


def truth(builder: KernelBuilder, value: Value, span: Span, is_result: bool = False) -> ir.Expression:
    """A value as a condition: a Bool, or a constant for a compile-time value. `is_result`: it is an operand of `and` or
    `or` that may be the result itself, so it must be a bool: `x > y and 5` would be False or 5."""
    if is_known(value):
        if is_result and not isinstance(value, bool):
            expected(span, f"a Bool or a bool beside `and` and `or`, found {describe(value)}, e.g. `a if c else b`")
        return ir.Const(is_true(builder, value, span), Type.BOOL, span)
    if not isinstance(value, ir.Expression) or value.type is not Type.BOOL:
        expected(span, f"a condition, found {describe(value)}, e.g. `x != 0`")
    return value


def is_true(builder: KernelBuilder, known: Value, span: Span) -> bool:
    """What Python makes of it as a condition, which may be an error, as of an array."""
    return called(builder.captures, span, bool, known) is True


def binary(
    builder: KernelBuilder, python: type[ast.AST], left: Value, right: Value, span: Span, inline: Inline,
    is_augmented: bool = False,
) -> Value:  # fmt: skip
    """A binary operator or a comparison. `inline` inlines a struct's method for it; with `is_augmented` (`a += b`) that
    may be `__iadd__`."""
    function, op = _OPERATORS[python]
    if is_known(left) and is_known(right):
        return called(builder.captures, span, function, left, right)
    is_identity = python in (ast.Is, ast.IsNot)
    if is_identity and (left is None or right is None):
        return python is ast.IsNot  # the other is a run-time value, hence not None
    method = _METHODS.get(python, "")
    reflected = _MIRRORED.get(method, f"__r{method[2:]}")
    if method and _has_operators(left):
        in_place = is_augmented and hasattr(class_of(left.element), f"__i{method[2:]}")
        if _has_operators(right) and not in_place and _answers_first(left, right, reflected):
            return inline(_method_of(right, reflected, span), [right, left], span)
        return inline(_method_of(left, method, span, is_augmented), [left, right], span)
    if method and issubclass(python, ast.operator) and _has_operators(right):
        if isinstance(left, int | float):
            return inline(_method_of(right, reflected, span), [right, left], span)
        if hasattr(cls := class_of(right.element), reflected):  # which CPython does not ask: the scalar refuses it
            expected(span, f"the {cls.__name__} on the left of a scalar, found {describe(left)} there, e.g. `v * x`")
    if isinstance(op, str):
        expected(span, op)
    if isinstance(left, MemberNumber) or isinstance(right, MemberNumber):
        return _of_numbers(op, left, right, span)
    left, right = lift(left, span), lift(right, span)
    equates, code, other_code = op in (ops.EQ, ops.NE), enum_number(left), enum_number(right)
    kind = class_behind(left)
    if equates and code is not None and other_code is not None and kind is class_behind(right):
        if not is_identity:
            require_plain_equality(kind, span)
        return apply(op, (code, other_code), span)
    require_numbers((left, right), span)
    if is_identity:
        expected(span, "`is` between members of one enum, or with None, e.g. `a == b` for scalars")
    if equates:
        left, right = _widened(left, right, span), _widened(right, left, span)
    return apply(op, _scalars(op, left, right, span), span)


def require_plain_equality(enum: type[object] | None, span: Span) -> None:
    """Raises KernelError for an enum that says itself which members are equal: a device compares their numbers."""
    if enum is not None and isinstance(enum.__eq__, FunctionType):
        expected(span, f"{enum.__name__} without an `__eq__` of its own, e.g. a method, or `a is b`")


def _of_numbers(op: ops.Op, left: Value, right: Value, span: Span) -> Value:
    """An operator of which an operand is an enum's number. With a scalar, the number becomes one of that type. With
    another number or a Python int, the result is an int to CPython, so what may be negative or exceed 32 bits is
    refused."""
    if isinstance(left, ir.Expression) and isinstance(right, MemberNumber):
        return apply(op, (left, right.number if op in _SHIFTS else _beside(left, right, span)), span)
    if isinstance(left, MemberNumber) and isinstance(right, ir.Expression) and op not in _SHIFTS:
        return apply(op, (_beside(right, left, span), right), span)
    numbers = [_greatest(side) for side in (left, right)]
    if op in ops.COMPARISONS:
        return apply(op, _scalars(op, left, right, span), span)
    greatest = {ops.ADD: sum(numbers), ops.MUL: numbers[0] * numbers[1]}.get(op, (1 << max(numbers).bit_length()) - 1)
    if op not in _AS_PYTHON or min(numbers) < 0 or greatest >= 1 << 32:
        _refuse_number(span)
    return MemberNumber(apply(op, _scalars(op, left, right, span), span), greatest)


def _greatest(side: Value) -> int:
    """An upper bound of an int operand; -1 for others."""
    if isinstance(side, MemberNumber):
        return side.greatest
    return side if isinstance(side, int) else -1


def _beside(scalar: ir.Expression, number: MemberNumber, span: Span) -> ir.Expression:
    """An enum's number converted to a scalar's type, as a literal would be."""
    to = scalar.type
    if to is Type.BOOL or to.is_narrow or (to.is_integer and number.greatest > to.bounds[1]):
        _refuse_number(span)
    return convert(ops.CAST, number.number, to, span)


def _refuse_number(span: Span) -> NoReturn:
    expected(
        span, "a scalar to compute with, found an enum's number, which to Python is an int, e.g. `U32(kind.value)`"
    )


def _widened(value: Value, other: Value, span: Span) -> Value:
    """An operand of == or !=: a U8 or U16 is widened to U32 to be compared, and so is a literal beside one."""
    narrow = next((v.type for v in (value, other) if isinstance(v, ir.Expression) and v.type.is_narrow), None)
    if narrow is None:
        return value
    if is_known(value):
        return literal(value, narrow, span)
    fits = is_known(other) or (isinstance(other, ir.Expression) and other.type is narrow)
    if isinstance(value, ir.Expression) and value.type is narrow and fits:
        return convert(ops.CAST, value, Type.U32, span)
    return value


def _scalars(op: ops.Op, left: Value, right: Value, span: Span) -> tuple[ir.Expression, ir.Expression]:
    """Two operands as scalars: a Python number becomes a literal of the other operand's type."""
    left, right = as_scalar(left), as_scalar(right)
    if isinstance(left, ir.Expression) and is_known(right):
        return left, literal(right, Type.U32 if op in _SHIFTS else left.type, span)
    if is_known(left) and isinstance(right, ir.Expression) and op not in _SHIFTS:
        return literal(left, right.type, span), right
    if isinstance(left, ir.Expression) and isinstance(right, ir.Expression):
        return left, right
    expected(
        span,
        f"{op.expects} for `{op.sign or op}`, found {describe(left)} and {describe(right)}, "
        f"e.g. `U32(1)` for a literal, or {_number_of(left, right)}",
    )


def _number_of(*operands: Value) -> str:
    """For an error message: what to write in place of a struct or an enum that is used as a number."""
    return "`U32(kind.value)`" if any(enum_number(operand) is not None for operand in operands) else "a struct's field"


def _has_operators(value: Value) -> TypeGuard[StructValue]:
    """Whether a value is a struct, whose operators are methods; an enum is compared by its number instead."""
    return isinstance(value, StructValue) and enum_number(value) is None


def _answers_first(left: StructValue, right: StructValue, reflected: str) -> bool:
    """Whether Python asks the right operand first: its class derives from the left one's, and has an answer of its own;
    to a comparison an inherited one too."""
    cls, derived = class_of(left.element), class_of(right.element)
    if cls is derived or not issubclass(derived, cls):
        return False
    found = inspect.getattr_static(derived, reflected, None)
    is_same = found is inspect.getattr_static(cls, reflected, None) and reflected not in _MIRRORED
    return isinstance(found, FunctionType) and not is_same and not is_generated(found)


def is_generated(method: FunctionType) -> bool:
    return "attrs generated" in method.__code__.co_filename


def _method_of(struct: StructValue, name: str, span: Span, is_augmented: bool = False) -> FunctionType:
    """The method that a struct's class defines for an operator."""
    cls = class_of(struct.element)
    found = inspect.getattr_static(cls, name, None)
    if is_augmented:
        found = inspect.getattr_static(cls, f"__i{name[2:]}", found)
    if not isinstance(found, FunctionType) or is_generated(found) or is_from_a_library(found):
        expected(span, f"{cls.__name__} to define `{name}`, or its field, e.g. `x.{next(iter(struct.fields))}`")
    return found


def unary(builder: KernelBuilder, python: type[ast.AST], operand: Value, span: Span, inline: Inline) -> Value:
    """`-x`, `~x`, `+x` or `not x`."""
    if (method := _METHODS.get(python)) and _has_operators(operand):
        return inline(_method_of(operand, method, span), [operand], span)
    if python is ast.UAdd and not is_known(operand):
        number = as_scalar(operand)
        if not isinstance(number, ir.Expression) or not number.type.is_number:
            expected(span, f"a number after `+`, found {describe(operand)}, e.g. `U32(x)`")
        return operand
    if isinstance(operand, MemberNumber):
        _refuse_number(span)
    function, op = _OPERATORS[python]
    if is_known(operand):
        return called(builder.captures, span, function, operand)
    assert not isinstance(op, str)
    if not isinstance(operand, ir.Expression):
        expected(span, f"{op.expects}, found {describe(operand)}, e.g. its field")
    if python is ast.Not and operand.type is not Type.BOOL:
        expected(span, f"a condition after `not`, found {describe(operand)}, e.g. `x == 0`")
    return apply(op, (operand,), span)


def intrinsic(builder: KernelBuilder, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value:
    """A call of an intrinsic: its operation, on the operands' scalars."""
    op, names = OPERATIONS[function], signature_of(function).parameters
    example = "bitcast(U32, x)" if op is ops.BITCAST else f"{function.__name__}({', '.join(names)})"
    if len(arguments) != len(names):
        expected(span, f"{len(names)} argument(s), found {len(arguments)}, e.g. `{example}`")
    if op is ops.BITCAST:
        to, operand = arguments
        return _bitcast(to, operand, span)
    if op is ops.SELECT:
        condition = lift(arguments[0], span)
        if not isinstance(condition, ir.Expression):
            expected(span, f"a Bool first, found {describe(condition)}, e.g. `select(a < b, a, b)`")
        then, otherwise = (lift(argument, span) for argument in arguments[1:])
        if isinstance(then, ir.Expression) is not isinstance(otherwise, ir.Expression):
            then, otherwise = _scalars(op, then, otherwise, span)
        return if_else(builder, condition, ([], then), ([], otherwise), span)
    if len(arguments) == 2:
        left, right = arguments
        return apply(op, _scalars(op, left, right, span), span)
    (operand,) = arguments
    if not isinstance(operand, ir.Expression):
        expected(span, f"{op.expects} for `{op.sign or op}`, found {describe(operand)}, e.g. `{example}`")
    return apply(op, (operand,), span)


def _bitcast(to: Value, operand: Value, span: Span) -> ir.Expression:
    if not (isinstance(to, type) and issubclass(to, Scalar)):
        expected(span, "a scalar class first, e.g. `bitcast(U32, x)`")
    operand, type_ = lift(operand, span), to.type
    if not isinstance(operand, ir.Expression):
        expected(span, f"a scalar to bitcast, found {describe(operand)}, e.g. `bitcast(U32, x)`")
    if not ops.can_bitcast(operand.type, type_):
        expected(span, f"another type of {type_}'s size to bitcast, found {operand.type}, e.g. `{type_}(x)`")
    return convert(ops.BITCAST, operand, type_, span)


def scalar_of_class(cls: type[Scalar], arguments: Sequence[Value], span: Span) -> ir.Expression:
    """`U32(x)`: a literal or a cast."""
    if len(arguments) != 1:
        expected(span, f"one value, e.g. `{cls.__name__}(1)`")
    value = as_scalar(arguments[0])
    if is_known(value):
        value = literal(value, Type.BOOL if isinstance(value, bool) else cls.type, span)
    if not isinstance(value, ir.Expression):
        expected(span, f"a scalar to convert to {cls.__name__}, found {describe(value)}, e.g. {_number_of(value)}")
    return convert(ops.CAST, value, cls.type, span)
