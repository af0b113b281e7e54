"""Reads Python expressions into values and IR."""

from __future__ import annotations

import ast
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from types import FunctionType
from typing import Any, NoReturn

from ..types import ops
from ..types.elements import class_of, is_struct
from ..types.intrinsics import OPERATIONS
from ..types.layout import Type, bounds
from ..types.scalars import Bool, Scalar
from . import access, ir
from .builder import Builder, apply, convert
from .source import Source
from .span import KernelError, Span
from .values import (
    EXPRESSIONS, EnumValue, InvocationMethod, InvocationValue, MemoryMethod, MemoryValue, Method, Static, StructValue,
    TupleValue, Undecided, Value, describe, lift, of_object,
)  # fmt: skip

# Python's operator, the table's row, the name of the method a struct may define for it
_BINARY: dict[type[ast.AST], tuple[Callable[[Any, Any], Any], ops.Op, str]] = {
    ast.Add: (operator.add, ops.ADD, "__add__"), ast.Sub: (operator.sub, ops.SUB, "__sub__"),
    ast.Mult: (operator.mul, ops.MUL, "__mul__"), ast.Div: (operator.truediv, ops.DIV, "__truediv__"),
    ast.FloorDiv: (operator.floordiv, ops.FLOORDIV, "__floordiv__"), ast.Mod: (operator.mod, ops.MOD, "__mod__"),
    ast.BitAnd: (operator.and_, ops.AND, "__and__"), ast.BitOr: (operator.or_, ops.OR, "__or__"),
    ast.BitXor: (operator.xor, ops.XOR, "__xor__"), ast.LShift: (operator.lshift, ops.SHL, "__lshift__"),
    ast.RShift: (operator.rshift, ops.SHR, "__rshift__"), ast.Eq: (operator.eq, ops.EQ, "__eq__"),
    ast.NotEq: (operator.ne, ops.NE, "__ne__"), ast.Lt: (operator.lt, ops.LT, "__lt__"),
    ast.LtE: (operator.le, ops.LE, "__le__"), ast.Gt: (operator.gt, ops.GT, "__gt__"),
    ast.GtE: (operator.ge, ops.GE, "__ge__"), ast.Is: (operator.is_, ops.EQ, "__eq__"),
    ast.IsNot: (operator.is_not, ops.NE, "__ne__"),
}  # fmt: skip
_UNARY: dict[type[ast.AST], tuple[Callable[[Any], Any], ops.Op]] = {
    ast.USub: (operator.neg, ops.NEG), ast.Invert: (operator.invert, ops.INVERT), ast.Not: (operator.not_, ops.INVERT),
}  # fmt: skip
_SHIFTS = (ops.SHL, ops.SHR)


class ExpressionReader(ABC):
    """Expressions of one function, as it is inlined at one place."""

    def __init__(self, builder: Builder, source: Source, names: dict[str, Value]) -> None:
        self.builder = builder
        self.source = source
        self.names = names

    @abstractmethod
    def call(self, node: ast.Call) -> Value: ...

    @abstractmethod
    def inline(self, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value: ...

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        raise KernelError(self.source.span(node), message)

    # -- what a value must be, in the end --------------------------------------------------------------

    def scalar(self, node: ast.expr, what: str = "a run-time scalar") -> ir.Expression:
        """Reads an expression that must be a scalar of the IR."""
        value = lift(self.read(node), self.source.span(node))
        if not isinstance(value, EXPRESSIONS):
            self.fail(node, f"expected {what}, found {describe(value)}, e.g. `U32(1)`")
        return value

    def condition(self, node: ast.expr) -> ir.Expression:
        value = lift(self.read(node), self.source.span(node))
        if isinstance(value, Static):
            return ir.Const(bool(value.value), Type.BOOL, self.source.span(node))
        if not isinstance(value, EXPRESSIONS) or value.type is not Type.BOOL:
            self.fail(node, f"expected a condition, found {describe(value)}, e.g. `x != 0`")
        return value

    def index(self, node: ast.expr) -> ir.Expression:
        value = self.read(node)
        if isinstance(value, Static) and isinstance(value.value, int):
            return self.literal(value.value, Type.U32, node)
        if not isinstance(value, EXPRESSIONS) or value.type is not Type.U32:
            self.fail(node, f"expected a U32 index, found {describe(value)}, e.g. `data[thread.value]`")
        return value

    def literal(self, value: object, type: Type, node: ast.AST) -> ir.Const:
        """A Python number beside a scalar: a literal of the scalar's type."""
        if type.is_float and isinstance(value, int | float):
            return ir.Const(float(type.dtype.type(value).item()), type, self.source.span(node))  # type: ignore[call-arg]
        if type is Type.BOOL and isinstance(value, bool):
            return ir.Const(value, type, self.source.span(node))
        if type.is_integer and isinstance(value, int) and not isinstance(value, bool):
            low, high = bounds(type)
            if not low <= value <= high:
                self.fail(node, f"expected a literal that fits {type} ({low} to {high}), found {value}, e.g. `{type}(1)`")
            return ir.Const(value, type, self.source.span(node))
        self.fail(node, f"expected {type} beside {type}, found {value!r}, e.g. `{type}(1)`")

    # -- expressions -----------------------------------------------------------------------------------

    def read(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int() | float() | str() | None as value):
                return Static(value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(node, self.read(owner), name)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, type(op), self.read(left), self.read(right))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(node, type(op), self.read(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if type(op) not in _BINARY:
                    self.fail(node, "expected a comparison of scalars instead of `in`, e.g. `a == b or a == c`")
                return self.binary(node, type(op), self.read(left), self.read(right))
            case ast.Compare():
                self.fail(node, "expected one comparison at a time, e.g. `low <= x and x < high`")
            case ast.BoolOp(op=op, values=values):
                return self.connective(node, isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return self.choice(node, test, then, otherwise)
            case ast.Call():
                return self.call(node)
            case ast.Subscript(value=owner, slice=index):
                return self.element(node, owner, index)
            case ast.Tuple(elts=items):
                return TupleValue(tuple(self.read(item) for item in items))
            case ast.Lambda():
                self.fail(node, "expected a named function instead of `lambda`, e.g. `def helper(x: U32) -> U32: …`")
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp() | ast.List() | ast.Dict() | ast.Set():
                self.fail(node, "expected a fixed-size array instead of a Python container, e.g. `Registers(U32, 8)`")
            case ast.JoinedStr():
                self.fail(node, "expected no text in a kernel: f-strings have no meaning on a device, e.g. store a U32 code")
            case ast.NamedExpr():
                self.fail(node, "expected an assignment of its own instead of `:=`, e.g. `x = data[i]`")
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                self.fail(node, "expected `cx.barrier()` to wait; a kernel neither awaits nor yields")
            case ast.Starred():
                self.fail(node, "expected each value by itself instead of `*`, e.g. `f(pair.low, pair.high)`")
            case _:
                self.fail(node, f"expected an expression of the kernel language, found {type(node).__name__}, e.g. `a + b`")

    def name(self, node: ast.AST, name: str) -> Value:
        if name in self.names:
            value = self.names[name]
            if isinstance(value, Undecided):
                self.fail(node, value.reason)
            return value
        if name in self.source.stores:
            self.fail(node, f"expected {name!r} to be set on every path to here, e.g. `{name} = U32(0)` before the branch")
        try:
            return of_object(self.source.outer(name), self.source.span(node))
        except KeyError:
            self.fail(node, f"expected a name that is defined, found {name!r}, e.g. a parameter or an import")

    def attribute(self, node: ast.AST, owner: Value, name: str) -> Value:
        span = self.source.span(node)
        match owner:
            case InvocationValue():
                return self.identity(node, name)
            case MemoryValue() if name == "length":
                return self.length(owner, span)
            case MemoryValue():
                return MemoryMethod(owner, name)
            case StructValue() if name in owner.fields:
                return owner.fields[name]
            case StructValue():
                return self.member(node, owner, class_of(owner.element), name)
            case EnumValue() if name == "value":
                return owner.code
            case EnumValue():
                return self.member(node, owner, owner.cls, name)
            case Static(value=thing):
                return self.static_attribute(node, owner, thing, name)
            case _:
                self.fail(node, f"expected a field or method, found `.{name}` of {describe(owner)}, e.g. `stage.value`")

    def static_attribute(self, node: ast.AST, owner: Static, thing: object, name: str) -> Value:
        found = inspect.getattr_static(thing, name, None)
        if found is None:
            found = getattr(thing, name, None)
        if isinstance(found, FunctionType) and not isinstance(thing, type) and not inspect.ismodule(thing):
            return Method(found, owner)
        if isinstance(found, classmethod):
            return Method(found.__func__, owner if isinstance(thing, type) else Static(type(thing)))
        try:
            return of_object(getattr(thing, name), self.source.span(node))
        except AttributeError:
            self.fail(node, f"expected an attribute that exists, found `.{name}` of {describe(owner)}")

    def member(self, node: ast.AST, owner: Value, cls: type[object], name: str) -> Value:
        """A method, property or class attribute of a struct or enum."""
        found = inspect.getattr_static(cls, name, None)
        if isinstance(found, property) and isinstance(found.fget, FunctionType):
            return self.inline(found.fget, [owner], self.source.span(node))
        if isinstance(found, classmethod):
            return Method(found.__func__, Static(cls))
        if isinstance(found, staticmethod):
            return Static(found.__func__)
        if isinstance(found, FunctionType):
            return Method(found, owner)
        if found is None:
            self.fail(node, f"expected a field or method of {cls.__name__}, found `.{name}`")
        return of_object(found, self.source.span(node))

    def identity(self, node: ast.AST, name: str) -> Value:
        span = self.source.span(node)
        if name == "global_id":
            group, size = ir.Identity(ir.Builtin.GROUP_ID, span), ir.Identity(ir.Builtin.GROUP_SIZE, span)
            first = apply(ops.MUL, (group, size), span)
            return apply(ops.ADD, (first, ir.Identity(ir.Builtin.LOCAL_ID, span)), span)
        try:
            return ir.Identity(ir.Builtin(name), span)
        except ValueError:
            return InvocationMethod(name)

    def length(self, array: MemoryValue, span: Span) -> ir.Expression:
        units = ir.Const(access.units_in(array.element), Type.U32, span)
        if array.memory.length is not None:
            return ir.Const(array.memory.length // int(units.value), Type.U32, span)
        return apply(ops.FLOORDIV, (ir.Length(array.memory, span), units), span)

    def element(self, node: ast.AST, owner: ast.expr, index: ast.expr) -> Value:
        array = self.read(owner)
        if isinstance(array, TupleValue | Static):
            position = self.read(index)
            if not isinstance(position, Static) or isinstance(index, ast.Slice):
                self.fail(index, "expected a compile-time index, e.g. `pair[0]`")
            items: Any = array.items if isinstance(array, TupleValue) else array.value
            if isinstance(array, TupleValue) and isinstance(position.value, int):
                return array.items[position.value]
            return of_object(items[position.value], self.source.span(node))
        if not isinstance(array, MemoryValue):
            self.fail(node, f"expected an array before `[`, found {describe(array)}, e.g. `data[i]`")
        if isinstance(index, ast.Slice):
            self.fail(index, "expected one index instead of a slice, e.g. a loop over `data[i]`")
        return access.load(self.builder, array, self.index(index), self.source.span(node))

    # -- operators -------------------------------------------------------------------------------------

    def binary(self, node: ast.AST, python: type[ast.AST], left: Value, right: Value) -> Value:
        if python not in _BINARY:
            self.fail(node, "expected an operator of the kernel language, e.g. `x * x` instead of `x ** 2`")
        evaluate, op, method = _BINARY[python]
        span = self.source.span(node)
        if isinstance(left, Static) and isinstance(right, Static):
            try:
                return of_object(evaluate(left.value, right.value), span)
            except (TypeError, ValueError, ZeroDivisionError) as error:
                self.fail(node, f"expected operands that fit: {error}")
        if isinstance(left, StructValue):
            return self.struct_operator(node, method, left, right)
        left, right = lift(left, span), lift(right, span)
        if isinstance(left, EnumValue) and isinstance(right, EnumValue) and left.cls is right.cls and op in (ops.EQ, ops.NE):
            return apply(op, (left.code, right.code), span)
        operands = self.beside(node, op, left, right)
        return apply(op, operands, span)

    def beside(self, node: ast.AST, op: ops.Op, left: Value, right: Value) -> tuple[ir.Expression, ir.Expression]:
        """Two operands, a Python number turned into a literal of the other's type."""
        if isinstance(left, EXPRESSIONS) and isinstance(right, Static):
            return left, self.literal(right.value, Type.U32 if op in _SHIFTS else left.type, node)
        if isinstance(left, Static) and isinstance(right, EXPRESSIONS) and op not in _SHIFTS:
            return self.literal(left.value, right.type, node), right
        if isinstance(left, EXPRESSIONS) and isinstance(right, EXPRESSIONS):
            return left, right
        self.fail(node, f"expected {op.expects} for `{op}`, found {describe(left)} and {describe(right)}")

    def struct_operator(self, node: ast.AST, method: str, left: StructValue, right: Value) -> Value:
        cls = class_of(left.element)
        found = inspect.getattr_static(cls, method, None)
        generated = isinstance(found, FunctionType) and "attrs generated" in found.__code__.co_filename
        if isinstance(found, FunctionType) and not generated:
            return self.inline(found, [left, right], self.source.span(node))
        name = cls.__name__
        self.fail(node, f"expected {name} to define `{method}`, or its field, e.g. `x.{next(iter(left.fields))}`")

    def unary(self, node: ast.AST, python: type[ast.AST], operand: Value) -> Value:
        evaluate, op = _UNARY[python]
        if isinstance(operand, Static):
            return of_object(evaluate(operand.value), self.source.span(node))
        if not isinstance(operand, EXPRESSIONS):
            self.fail(node, f"expected {op.expects}, found {describe(operand)}")
        if python is ast.Not and operand.type is not Type.BOOL:
            self.fail(node, f"expected a condition after `not`, found {describe(operand)}, e.g. `x == 0`")
        return apply(op, (operand,), self.source.span(node))

    def connective(self, node: ast.BoolOp, is_and: bool, values: Sequence[ast.expr]) -> Value:
        """`and`, `or`: what stands right is only evaluated where it counts, as in Python."""
        span = self.source.span(node)
        result = self.condition(values[0])
        for right in values[1:]:
            if isinstance(result, ir.Const):
                if result.value is not is_and:
                    return result
                result = self.condition(right)
                continue
            with self.builder.nested() as block:
                then = self.condition(right)
            if not block:
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
        """`a if c else b`: a select where both are pure, else a branch."""
        span = self.source.span(node)
        condition = self.condition(test)
        if isinstance(condition, ir.Const):
            return self.read(then if condition.value else otherwise)
        with self.builder.nested() as first:
            a = lift(self.read(then), span)
        with self.builder.nested() as second:
            b = lift(self.read(otherwise), span)
        return self.merged(node, condition, (first, a), (second, b))

    @abstractmethod
    def merged(
        self, node: ast.AST, condition: ir.Expression, then: tuple[list[ir.Statement], Value],
        otherwise: tuple[list[ir.Statement], Value],
    ) -> Value: ...  # fmt: skip

    # -- calls of what is not a function ---------------------------------------------------------------

    def operation(self, node: ast.Call, function: object, arguments: Sequence[Value]) -> Value:
        """A function of intrinsics.py: its row of the table, on every scalar of the operands."""
        op, span = OPERATIONS[function], self.source.span(node)
        if op is ops.BITCAST:
            to = arguments[0]
            if not (isinstance(to, Static) and isinstance(to.value, type) and issubclass(to.value, Scalar)):
                self.fail(node, "expected a scalar class first, e.g. `bitcast(U32, x)`")
            operand = lift(arguments[1], span)
            if not isinstance(operand, EXPRESSIONS):
                self.fail(node, f"expected a scalar to bitcast, found {describe(operand)}, e.g. `bitcast(U32, x)`")
            return convert(op, operand, to.value.type, span)
        if op is ops.SELECT:
            condition = lift(arguments[0], span)
            if not isinstance(condition, EXPRESSIONS):
                self.fail(node, f"expected a Bool first, found {describe(condition)}, e.g. `select(a < b, a, b)`")
            return self.merged(node, condition, ([], lift(arguments[1], span)), ([], lift(arguments[2], span)))
        if len(arguments) == 2:
            return apply(op, self.beside(node, op, *arguments), span)
        operand = arguments[0]
        if not isinstance(operand, EXPRESSIONS):
            self.fail(node, f"expected {op.expects} for `{op}`, found {describe(operand)}, e.g. `count_ones(mask)`")
        return apply(op, (operand,), span)

    def scalar_of_class(self, node: ast.Call, cls: type[Scalar], arguments: Sequence[Value]) -> Value:
        """`U32(x)`: a literal, or a conversion."""
        if len(arguments) != 1:
            self.fail(node, f"expected one value, e.g. `{cls.__name__}(1)`")
        value = lift(arguments[0], self.source.span(node)) if cls is Bool else arguments[0]
        if isinstance(value, Static):
            if cls.type in (Type.U8, Type.U16) and isinstance(value.value, int):
                wide = self.literal(value.value, Type.U32, node)
                return convert(ops.CAST, wide, cls.type, self.source.span(node))
            return self.literal(value.value, cls.type, node)
        if not isinstance(value, EXPRESSIONS):
            self.fail(node, f"expected a scalar to convert to {cls.__name__}, found {describe(value)}, e.g. its field")
        return convert(ops.CAST, value, cls.type, self.source.span(node))

    def is_struct_class(self, value: object) -> bool:
        return not isinstance(value, FunctionType) and isinstance(value, type) and not issubclass(value, Enum) and is_struct(value)
