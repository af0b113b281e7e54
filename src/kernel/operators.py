"""Reader, part 2: Python's operators, structs' methods for them, and the functions of types/intrinsics.py."""

from __future__ import annotations

import ast
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeAlias

from ..types import ops
from ..types.elements import class_of
from ..types.intrinsics import OPERATIONS
from ..types.layout import Type
from ..types.scalars import Scalar
from . import ir
from .builder import apply, convert, may_fail
from .names import SymbolTable
from .source import signature_of
from .span import Span
from .values import EnumValue, Static, StructValue, Value, describe, known, lift

# For each operator: Python's function, the row of the table of operations, the method that a struct may define
_Evaluate: TypeAlias = Callable[[Any, Any], Any]
# typeshed leaves the operands of some of these unknown
_python: Any = operator
_BINARY: dict[type[ast.AST], tuple[_Evaluate, ops.Op, str]] = {
    ast.Add: (_python.add, ops.ADD, "__add__"), ast.Sub: (_python.sub, ops.SUB, "__sub__"),
    ast.Mult: (_python.mul, ops.MUL, "__mul__"), ast.Div: (_python.truediv, ops.DIV, "__truediv__"),
    ast.FloorDiv: (_python.floordiv, ops.FLOORDIV, "__floordiv__"), ast.Mod: (_python.mod, ops.MOD, "__mod__"),
    ast.BitAnd: (_python.and_, ops.AND, "__and__"), ast.BitOr: (_python.or_, ops.OR, "__or__"),
    ast.BitXor: (_python.xor, ops.XOR, "__xor__"), ast.LShift: (_python.lshift, ops.SHL, "__lshift__"),
    ast.RShift: (_python.rshift, ops.SHR, "__rshift__"), ast.Eq: (_python.eq, ops.EQ, "__eq__"),
    ast.NotEq: (_python.ne, ops.NE, "__ne__"), ast.Lt: (_python.lt, ops.LT, "__lt__"),
    ast.LtE: (_python.le, ops.LE, "__le__"), ast.Gt: (_python.gt, ops.GT, "__gt__"),
    ast.GtE: (_python.ge, ops.GE, "__ge__"), ast.Is: (_python.is_, ops.EQ, "__eq__"),
    ast.IsNot: (_python.is_not, ops.NE, "__ne__"),
}  # fmt: skip
# Of compile-time values alone: Python's function, and what is expected of others.
_INSTEAD_OF_IN = "a comparison of scalars instead of `in`, e.g. `a == b or a == c`"
_FOLDED: dict[type[ast.AST], tuple[_Evaluate, str]] = {
    ast.Pow: (pow, "an operator of the kernel language, e.g. `x * x` instead of `x ** 2`"),
    ast.In: (lambda a, b: a in b, _INSTEAD_OF_IN), ast.NotIn: (lambda a, b: a not in b, _INSTEAD_OF_IN),
    ast.MatMult: (_python.matmul, "an operator of the kernel language, e.g. a loop over `a[i] * b[i]`"),
}  # fmt: skip
_UNARY: dict[type[ast.AST], tuple[Callable[[Any], Any], ops.Op]] = {
    ast.USub: (operator.neg, ops.NEG), ast.Invert: (operator.invert, ops.INVERT), ast.Not: (operator.not_, ops.INVERT),
}  # fmt: skip
_SHIFTS = (ops.SHL, ops.SHR)


def _is_none(value: Value) -> bool:
    return isinstance(value, Static) and value.value is None


class OperatorReader(SymbolTable, ABC):
    """Operators and intrinsics in one inlined function."""

    @abstractmethod
    def read(self, node: ast.expr) -> Value: ...

    @abstractmethod
    def inline(self, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value: ...

    def condition(self, node: ast.expr) -> ir.Expression:
        return self.truth(node, self.read(node))

    def truth(self, node: ast.expr, value: Value) -> ir.Expression:
        """A value as a condition: a Bool, or a constant for a compile-time value."""
        if isinstance(value, Static):
            return ir.Const(bool(value.value), Type.BOOL, self.source.span(node))
        if not isinstance(value, ir.Expression) or value.type is not Type.BOOL:
            self.expected(node, f"a condition, found {describe(value)}, e.g. `x != 0`")
        return value

    # -- operators -------------------------------------------------------------------------------------

    def binary(self, node: ast.AST, python: type[ast.AST], left: Value, right: Value) -> Value:
        span = self.source.span(node)
        if isinstance(whole := known(left), Static) and isinstance(other := known(right), Static):
            return self.evaluated(node, (_FOLDED.get(python) or _BINARY[python])[0], whole.value, other.value)
        if python in _FOLDED:
            self.expected(node, _FOLDED[python][1])
        _, op, method = _BINARY[python]
        if python in (ast.Is, ast.IsNot) and (_is_none(left) or _is_none(right)):
            return Static(python is ast.IsNot)  # the other is a run-time value, hence not None
        if isinstance(left, StructValue):
            return self.struct_operator(node, method, left, right)
        left, right = lift(left, span), lift(right, span)
        if (
            isinstance(left, EnumValue)
            and isinstance(right, EnumValue)
            and left.cls is right.cls
            and op in (ops.EQ, ops.NE)
        ):
            return apply(op, (left.code, right.code), span)
        if python in (ast.Is, ast.IsNot):
            self.expected(node, "`is` between members of one enum, or with None, e.g. `a == b` for scalars")
        operands = self.operands(node, op, left, right)
        return apply(op, operands, span)

    def operands(self, node: ast.AST, op: ops.Op, left: Value, right: Value) -> tuple[ir.Expression, ir.Expression]:
        """Two operands as scalars: a Python number becomes a literal of the other's type."""
        if isinstance(left, ir.Expression) and isinstance(right, Static):
            return left, self.literal(right.value, Type.U32 if op in _SHIFTS else left.type, node)
        if isinstance(left, Static) and isinstance(right, ir.Expression) and op not in _SHIFTS:
            return self.literal(left.value, right.type, node), right
        if isinstance(left, ir.Expression) and isinstance(right, ir.Expression):
            return left, right
        self.expected(
            node,
            f"{op.expects} for `{op}`, found {describe(left)} and {describe(right)}, "
            "e.g. `U32(1)` for a literal, or a struct's field",
        )

    def struct_operator(self, node: ast.AST, method: str, left: StructValue, right: Value) -> Value:
        cls = class_of(left.element)
        found = inspect.getattr_static(cls, method, None)
        generated = isinstance(found, FunctionType) and "attrs generated" in found.__code__.co_filename
        if isinstance(found, FunctionType) and not generated:
            return self.inline(found, [left, right], self.source.span(node))
        name = cls.__name__
        self.expected(node, f"{name} to define `{method}`, or its field, e.g. `x.{next(iter(left.fields))}`")

    def unary(self, node: ast.AST, python: type[ast.AST], operand: Value) -> Value:
        evaluate, op = _UNARY[python]
        if isinstance(operand, Static):
            return self.evaluated(node, evaluate, operand.value)
        if not isinstance(operand, ir.Expression):
            self.expected(node, f"{op.expects}, found {describe(operand)}, e.g. its field")
        if python is ast.Not and operand.type is not Type.BOOL:
            self.expected(node, f"a condition after `not`, found {describe(operand)}, e.g. `x == 0`")
        return apply(op, (operand,), self.source.span(node))

    def connective(self, node: ast.BoolOp, is_and: bool, values: Sequence[ast.expr]) -> Value:
        """`and`, `or`, short-circuited as in Python; a bitwise operation where the right side can be speculated."""
        span = self.source.span(node)
        known = self.read(values[0])
        while isinstance(known, Static) and len(values) > 1:
            if bool(known.value) is not is_and:
                return known
            values = values[1:]
            known = self.read(values[0])
        if isinstance(known, Static):
            return known
        result = self.truth(values[0], known)
        for right in values[1:]:
            if isinstance(result, ir.Const):
                if result.value is not is_and:
                    return result
                result = self.condition(right)
                continue
            with self.builder.nested() as block:
                then = self.condition(right)
            if not block and not may_fail(then):
                result = apply(ops.AND if is_and else ops.OR, (result, then), span)
                continue
            variable = self.builder.variable("holds", Type.BOOL)
            self.builder.emit(ir.Assign(variable, result, span))
            test = ir.Read(variable, span)
            needed = test if is_and else apply(ops.INVERT, (test,), span)
            self.builder.emit(ir.If(needed, (*block, ir.Assign(variable, then, span)), (), span))
            result = test
        return result

    def choice(self, node: ast.IfExp, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> Value:
        """`a if c else b`: a select where both can be speculated, else a branch."""
        span = self.source.span(node)
        condition = self.condition(test)
        if isinstance(condition, ir.Const):
            return self.read(then if condition.value else otherwise)
        with self.builder.nested() as first:
            a = lift(self.read(then), span)
        with self.builder.nested() as second:
            b = lift(self.read(otherwise), span)
        return self.merged(node, condition, (first, a), (second, b))

    # -- intrinsics and conversions --------------------------------------------------------------------

    def operation(self, node: ast.Call, function: object, arguments: Sequence[Value]) -> Value:
        """A call of an intrinsic: its operation, on the operands' scalars."""
        op, span = OPERATIONS[function], self.source.span(node)
        assert isinstance(function, FunctionType)
        names = signature_of(function).parameters
        example = "bitcast(U32, x)" if op is ops.BITCAST else f"{function.__name__}({', '.join(names)})"
        if len(arguments) != len(names):
            self.expected(node, f"{len(names)} argument(s), found {len(arguments)}, e.g. `{example}`")
        if op is ops.BITCAST:
            to = arguments[0]
            if not (isinstance(to, Static) and isinstance(to.value, type) and issubclass(to.value, Scalar)):
                self.expected(node, "a scalar class first, e.g. `bitcast(U32, x)`")
            operand = lift(arguments[1], span)
            if not isinstance(operand, ir.Expression):
                self.expected(node, f"a scalar to bitcast, found {describe(operand)}, e.g. `bitcast(U32, x)`")
            if not ops.can_bitcast(operand.type, to.value.type):
                self.expected(node, f"another type of {to.value.type}'s size to bitcast, found {operand.type}, "
                                f"e.g. `{to.value.type}(x)`")  # fmt: skip
            return convert(op, operand, to.value.type, span)
        if op is ops.SELECT:
            condition = lift(arguments[0], span)
            if not isinstance(condition, ir.Expression):
                self.expected(node, f"a Bool first, found {describe(condition)}, e.g. `select(a < b, a, b)`")
            then, otherwise = (lift(argument, span) for argument in arguments[1:])
            if isinstance(then, ir.Expression) is not isinstance(otherwise, ir.Expression):
                then, otherwise = self.operands(node, op, then, otherwise)
            return self.merged(node, condition, ([], then), ([], otherwise))
        if len(arguments) == 2:
            return apply(op, self.operands(node, op, *arguments), span)
        scalars: list[ir.Expression] = []
        for operand in arguments:
            if not isinstance(operand, ir.Expression):
                self.expected(node, f"{op.expects} for `{op}`, found {describe(operand)}, e.g. `{example}`")
            scalars.append(operand)
        return apply(op, tuple(scalars), span)

    def scalar_of_class(self, node: ast.Call, cls: type[Scalar], arguments: Sequence[Value]) -> Value:
        """`U32(x)`: a literal or a cast."""
        if len(arguments) != 1:
            self.expected(node, f"one value, e.g. `{cls.__name__}(1)`")
        value = arguments[0]
        if isinstance(value, Static) and isinstance(value.value, bool):
            value = lift(value, self.source.span(node))
        if isinstance(value, Static):
            if cls.type in (Type.U8, Type.U16) and isinstance(value.value, int):
                if value.value >> cls.type.bits:
                    self.expected(node, f"a literal that fits {cls.type}, found {value.value}, e.g. `{cls.type}(1)`")
                wide = self.literal(value.value, Type.U32, node)
                return convert(ops.CAST, wide, cls.type, self.source.span(node))
            return self.literal(value.value, cls.type, node)
        if not isinstance(value, ir.Expression):
            self.expected(node, f"a scalar to convert to {cls.__name__}, found {describe(value)}, e.g. its field")
        return convert(ops.CAST, value, cls.type, self.source.span(node))
