"""Reader, part 1: expressions. Names, attributes, subscripts, operators and conditional expressions become values."""

from __future__ import annotations

import ast
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from types import FunctionType
from typing import NoReturn, cast

from ..types import ops
from ..types.elements import class_of
from ..types.layout import Type
from ..types.ops import AtomicOp
from . import ir, operators
from .builder import KernelBuilder, apply, may_fail
from .compile_time import called, evaluated
from .memories import INVOCATION_METHODS, index_in, length_of, load
from .messages import describe
from .names import Names, if_else
from .source import Source
from .span import KernelError, Span, expected
from .values import (
    Given,
    InvocationValue,
    MemberNumber,
    MemoryValue,
    Method,
    StructValue,
    Undecided,
    Value,
    enum_number,
    is_known,
    is_tuple,
    lift,
    of_object,
)

# What an error message expects in place of expressions that the language does not have.
_CONTAINERS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.List, ast.Dict, ast.Set)
_YIELD = "a helper that gives one value, e.g. `return x` instead of `yield`"
_INSTEAD: Mapping[type[ast.expr], str] = {
    ast.Compare: "one comparison at a time, e.g. `low <= x and x < high`",
    ast.Lambda: "a named function instead of `lambda`, e.g. `def helper(x: U32) -> U32: …`",
    **dict.fromkeys(_CONTAINERS, "a fixed-size array instead of a Python container, e.g. `Registers(U32, 8)`"),
    ast.JoinedStr: "no text in a kernel: f-strings have no meaning on a device, e.g. store a U32 code",
    ast.NamedExpr: "an assignment of its own instead of `:=`, e.g. `x = data[i]`",
    ast.Await: "no waiting but for the workgroup, e.g. `cx.barrier()`",
    ast.Yield: _YIELD,
    ast.YieldFrom: _YIELD,
    ast.Starred: "each value by itself instead of `*`, e.g. `f(pair.low, pair.high)`",
}


_MISSING = object()
_BUILTINS = frozenset(builtin.value for builtin in ir.Builtin)
_ATOMICS = frozenset(f"atomic_{op.value}" for op in AtomicOp)
_ABOUT_LENGTH = frozenset({"size", "shape", "count", "len", "__len__", "ndim", "nbytes"})


class ExpressionReader(ABC):
    """Expressions in one inlined function."""

    def __init__(self, builder: KernelBuilder, source: Source) -> None:
        self.builder = builder
        self.source = source
        self.names = Names(builder, source)

    @abstractmethod
    def call(self, node: ast.Call) -> Value: ...

    @abstractmethod
    def apply_function(self, function: FunctionType, given: Sequence[Value], span: Span) -> Value: ...

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def expected(self, node: ast.AST, what: str) -> NoReturn:
        """Raises KernelError at a node: "expected `what`", which should end with what was found and an example."""
        expected(self.span(node), what)

    def read(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(node, self.read(owner), name)
            case ast.Constant(value=int() | float() | str() | None as value):
                return value
            case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.binary(node, op, self.read(left), right)
            case ast.UnaryOp(op=op, operand=operand):
                return operators.unary(
                    self.builder, type(op), self.operand(op, operand), self.span(node), self.apply_function
                )
            case ast.BoolOp(op=op, values=values):
                return self.connective(node, isinstance(op, ast.And), values)
            case ast.IfExp():
                return self.choice(node)
            case ast.Call():
                return self.call(node)
            case ast.Subscript(value=owner, slice=index):
                return self.element(node, owner, index)
            case ast.Tuple(elts=items):
                return tuple([self.read(item) for item in items])
            case ast.Constant(value=value):
                self.expected(node, f"a number, a text or None as a literal, found {value!r}, e.g. `1`")
            case _:
                unknown = f"an expression of the kernel language, found {type(node).__name__}, e.g. `a + b`"
                self.expected(node, _INSTEAD.get(type(node), unknown))

    def given(self, node: ast.expr) -> Given:
        return Given(self.read(node), self.span(node))

    def binary(self, node: ast.AST, op: ast.AST, left: Value, right: ast.expr) -> Value:
        is_augmented = isinstance(node, ast.AugAssign)
        span, inline = self.span(node), self.apply_function
        return operators.binary(self.builder, type(op), left, self.read(right), span, inline, is_augmented)

    def condition(self, node: ast.expr, is_result: bool = False) -> ir.Expression:
        """An expression as a condition. `is_result`: it is an operand of `and` or `or` whose value is used."""
        return operators.truth(self.builder, self.truth(node, is_result), self.span(node), is_result)

    def truth(self, node: ast.expr, is_result: bool = False) -> Value:
        """The value of an expression in a condition; unless `is_result`, only whether it is true matters."""
        if isinstance(node, ast.BoolOp):
            return self.connective(node, isinstance(node.op, ast.And), node.values, is_result)
        return self.read(node)

    def operand(self, op: ast.unaryop, node: ast.expr) -> Value:
        """The operand of a unary operator. For `~`, what is a Python bool under CPython is refused: `~True` is -2,
        which is true."""
        match node:
            case _ if not isinstance(op, ast.Invert):
                return self.truth(node) if isinstance(op, ast.Not) else self.read(node)
            case ast.Compare(left=left, ops=[test], comparators=[right]):
                first = self.read(left)
                is_python = (
                    isinstance(test, ast.Is | ast.IsNot) or enum_number(lift(first, self.span(left))) is not None
                )
                found = self.binary(node, test, first, right)
            case _:
                is_python, found = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not), self.read(node)
        if is_python and not is_known(found):
            self.expected(node, "a Bool after `~`, found a bool of Python's own, e.g. `not a == b`, or `~Bool(x)`")
        return found

    def connective(self, node: ast.BoolOp, is_and: bool, values: Sequence[ast.expr], is_result: bool = True) -> Value:
        """`and` and `or`, short-circuited as in Python; a bitwise operation if the right operand can be evaluated
        speculatively."""
        span = self.span(node)
        known = self.read(values[0])
        if is_known(known):
            decides = len(values) == 1 or operators.is_true(self.builder, known, self.span(values[0])) is not is_and
            return known if decides else self.connective(node, is_and, values[1:], is_result)
        result = operators.truth(self.builder, known, self.span(values[0]))
        for right in values[1:]:
            if isinstance(result, ir.Const):
                if result.value is not is_and:
                    return result
                result = self.condition(right, is_result)
                continue
            with self.builder.nested() as block:
                then = self.condition(right, is_result)
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

    def choice(self, node: ast.IfExp) -> Value:
        """`a if c else b`."""
        span, condition = self.span(node), self.condition(node.test)
        if isinstance(condition, ir.Const):
            return self.read(node.body if condition.value else node.orelse)
        with self.builder.nested() as first:
            a = lift(self.read(node.body), span)
        with self.builder.nested() as second:
            b = lift(self.read(node.orelse), span)
        return if_else(self.builder, condition, (first, a), (second, b), span)

    def place(self, node: ast.AST, array: Value, index: ast.expr, example: str) -> tuple[MemoryValue, ir.Expression]:
        if not isinstance(array, MemoryValue):
            self.expected(node, f"an array before `[`, found {describe(array)}, e.g. `{example}`")
        if isinstance(index, ast.Slice):
            self.expected(index, "one index instead of a slice, e.g. a loop over `data[i]`")
        return array, index_in(array, self.given(index))

    def element(self, node: ast.AST, owner: ast.expr, index: ast.expr) -> Value:
        array = self.read(owner)
        if not is_tuple(array) and not is_known(array):
            return load(self.builder, *self.place(node, array, index, "data[i]"), self.span(node))
        if isinstance(index, ast.Slice):
            self.expected(index, "one compile-time index instead of a slice, e.g. `pair[0]`")
        position = self.read(index)
        if not is_known(position):
            self.expected(index, f"a compile-time index into a tuple or a table, found {describe(position)}, e.g. "
                                 "`pair[0]`, or a buffer in place of the table")  # fmt: skip
        return called(self.builder.captures, self.span(node), ops.operators.getitem, array, position)

    def name(self, node: ast.AST, name: str) -> Value:
        if name in self.names.values:
            value = self.names.values[name]
            if isinstance(value, Undecided):
                raise KernelError(self.span(node), value.reason)
            return value
        if name in self.source.stores:
            self.expected(node, f"{name!r} to be set on every path to here, e.g. `{name} = U32(0)` before the branch")
        try:
            return of_object(self.source.outer(name, self.builder.captures), self.span(node))
        except KeyError:
            self.expected(node, f"a name that is defined, found {name!r}, e.g. a parameter or an import")

    def attribute(self, node: ast.AST, owner: Value, name: str) -> Value:
        span = self.span(node)
        match owner:
            case InvocationValue():
                return self.builtin(node, name)
            case MemoryValue() if name == "length":
                return length_of(owner, span)
            case MemoryValue():
                if name not in _ATOMICS:
                    example = "counts.atomic_add(i, U32(1))" if name not in _ABOUT_LENGTH else "data.length"
                    self.expected(node, f"the length or a method of an array, found `.{name}`, e.g. `{example}`")
                return Method(owner, name)
            case StructValue() if (number := enum_number(owner)) is not None and name == "value":
                return MemberNumber.of(cast("type[Enum]", owner.element), number)
            case StructValue() if name in owner.fields:
                return owner.fields[name]
            case StructValue():
                return self.member(node, owner, name)
            case _ if is_known(owner):
                return self.known_attribute(node, owner, name)
            case _:
                self.expected(node, f"a field or method, found `.{name}` of {describe(owner)}, e.g. `stage.value`")

    def known_attribute(self, node: ast.AST, thing: object, name: str) -> Value:
        found = evaluated(self.span(node), getattr, thing, name, _MISSING)
        if found is _MISSING:
            self.expected(node, f"an attribute that exists, found `.{name}` of {describe(thing)}, e.g. a field")
        origin = typing.get_origin(thing)
        self.builder.captures.attribute(thing, name)
        if isinstance(found, Method) and found.owner is origin:  # of `Pair[U32]`, to whose origin CPython binds it
            return Method(thing, name, found.function)
        return found

    def member(self, node: ast.AST, owner: StructValue, name: str) -> Value:
        """A method, property or class attribute of a struct or enum."""
        cls = class_of(owner.element)
        self.builder.captures.attribute(cls, name)
        found: object = inspect.getattr_static(cls, name, None)
        if isinstance(found, property) and isinstance(found.fget, FunctionType):
            return self.apply_function(found.fget, [owner], self.span(node))
        if isinstance(found, FunctionType):
            return Method(owner, name, found)
        if hasattr(type(found), "__get__") and not isinstance(found, classmethod | staticmethod):
            # CPython would call its __get__, which the reader cannot
            example = "kind.value`" if issubclass(cls, Enum) else "@property` above its definition"
            self.expected(node, f"a field, a method or a property of {cls.__name__}, found `.{name}`, which is none, "
                                f"e.g. `{example}")  # fmt: skip
        if found is None:
            self.expected(
                node, f"a field or method of {cls.__name__}, found `.{name}`, e.g. `.{next(iter(owner.fields))}`"
            )
        return of_object(getattr(cls, name), self.span(node))

    def builtin(self, node: ast.AST, name: str) -> Value:
        span = self.span(node)
        if name in INVOCATION_METHODS:
            return Method(InvocationValue(), name)
        if name == "global_id":
            group, size = ir.BuiltinValue(ir.Builtin.GROUP_ID, span), ir.BuiltinValue(ir.Builtin.GROUP_SIZE, span)
            first = apply(ops.MUL, (group, size), span)
            return apply(ops.ADD, (first, ir.BuiltinValue(ir.Builtin.LOCAL_ID, span)), span)
        if name not in _BUILTINS:
            self.expected(node, f"something an invocation has, found `.{name}`, e.g. `cx.local_id` or `cx.barrier()`")
        return ir.BuiltinValue(ir.Builtin(name), span)
