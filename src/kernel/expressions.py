"""Reader, part 4: expressions. Names, attributes, subscripts and constants become values."""

from __future__ import annotations

import ast
import inspect
import typing
from abc import abstractmethod
from collections.abc import Mapping
from enum import Enum
from types import FunctionType
from typing import Any, cast

from ..types import ops
from ..types.elements import class_of, fields_of
from ..types.invocation import Invocation
from . import ir
from .builder import apply
from .memories import MemoryReader
from .span import KernelError
from .values import (
    EnumValue,
    InvocationMethod,
    InvocationValue,
    MemoryMethod,
    MemoryValue,
    Method,
    Static,
    StructValue,
    TupleValue,
    Undecided,
    Value,
    describe,
    of_object,
)  # fmt: skip

# What is expected in place of an expression that kernels do not have.
_CONTAINER = "a fixed-size array instead of a Python container, e.g. `Registers(U32, 8)`"
_WAIT = "no waiting but for the workgroup, e.g. `cx.barrier()`"
_YIELD = "a helper that gives one value, e.g. `return x` instead of `yield`"
_INSTEAD: Mapping[type[ast.expr], str] = {
    ast.Compare: "one comparison at a time, e.g. `low <= x and x < high`",
    ast.Lambda: "a named function instead of `lambda`, e.g. `def helper(x: U32) -> U32: …`",
    ast.ListComp: _CONTAINER,
    ast.GeneratorExp: _CONTAINER,
    ast.SetComp: _CONTAINER,
    ast.DictComp: _CONTAINER,
    ast.List: _CONTAINER,
    ast.Dict: _CONTAINER,
    ast.Set: _CONTAINER,
    ast.JoinedStr: "no text in a kernel: f-strings have no meaning on a device, e.g. store a U32 code",
    ast.NamedExpr: "an assignment of its own instead of `:=`, e.g. `x = data[i]`",
    ast.Await: _WAIT,
    ast.Yield: _YIELD,
    ast.YieldFrom: _YIELD,
    ast.Starred: "each value by itself instead of `*`, e.g. `f(pair.low, pair.high)`",
}


class ExpressionReader(MemoryReader):
    """Expressions in one inlined function."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value: ...

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
                return self.binary(node, type(op), self.read(left), self.read(right))
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
            case ast.Constant(value=value):
                self.expected(node, f"a number, a text or None as a literal, found {value!r}, e.g. `1`")
            case _:
                unknown = f"an expression of the kernel language, found {type(node).__name__}, e.g. `a + b`"
                self.expected(node, _INSTEAD.get(type(node), unknown))

    def name(self, node: ast.AST, name: str) -> Value:
        if name in self.names:
            value = self.names[name]
            if isinstance(value, Undecided):
                raise KernelError(self.source.span(node), value.reason)
            return value
        if name in self.source.stores:
            self.expected(node, f"{name!r} to be set on every path to here, e.g. `{name} = U32(0)` before the branch")
        try:
            return of_object(self.source.outer(name, self.builder.captures), self.source.span(node))
        except KeyError:
            self.expected(node, f"a name that is defined, found {name!r}, e.g. a parameter or an import")

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
                self.expected(node, f"a field or method, found `.{name}` of {describe(owner)}, e.g. `stage.value`")

    def static_attribute(self, node: ast.AST, owner: Static, thing: object, name: str) -> Value:
        is_class = isinstance(thing, type) or typing.get_origin(thing) is not None
        found = inspect.getattr_static(class_of(thing) if is_class else thing, name, None)
        own = name in getattr(thing, "__dict__", ())  # a function in the object's own dict takes no `self`
        is_method = isinstance(found, FunctionType) and not is_class and not own
        self.builder.captures.attribute(type(thing) if is_method else thing, name)
        if isinstance(found, FunctionType) and is_method:
            return Method(found, owner)
        if isinstance(found, classmethod):
            return Method(_function_of(found), owner if is_class else Static(type(thing)))
        if not hasattr(type(thing), name) and not hasattr(thing, name):
            self.expected(node, f"an attribute that exists, found `.{name}` of {describe(owner)}, e.g. a field")
        return self.evaluated(node, lambda: getattr(thing, name))

    def member(self, node: ast.AST, owner: Value, cls: type[object], name: str) -> Value:
        """A method, property or class attribute of a struct or enum."""
        self.builder.captures.attribute(cls, name)
        found = inspect.getattr_static(cls, name, None)
        is_descriptor = hasattr(cast("type[object]", type(found)), "__get__")
        if isinstance(found, property) and isinstance(found.fget, FunctionType):
            return self.inline(found.fget, [owner], self.source.span(node))
        if isinstance(found, classmethod):
            return Method(_function_of(found), Static(cls))
        if isinstance(found, staticmethod):
            return Static(found.__func__)
        if isinstance(found, FunctionType):
            return Method(found, owner)
        if is_descriptor:  # CPython would call its __get__, which is not read
            self.expected(node, f"a field, a method or a property of {cls.__name__}, found `.{name}`, which is none, "
                                "e.g. `@property` above its definition")  # fmt: skip
        if found is None:
            self.expected(node, f"a field or method of {cls.__name__}, found `.{name}`, e.g. `.{_first_of(cls)}`")
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
            if not hasattr(Invocation, name):
                self.expected(
                    node, f"something an invocation has, found `.{name}`, e.g. `cx.local_id` or `cx.barrier()`"
                )
            return InvocationMethod(name)

    def element(self, node: ast.AST, owner: ast.expr, index: ast.expr) -> Value:
        array = self.read(owner)
        if isinstance(array, TupleValue | Static):
            position = None if isinstance(index, ast.Slice) else self.read(index)
            if not isinstance(position, Static):
                self.expected(index, "one compile-time index, e.g. `pair[0]`")
            items: Any = array.items if isinstance(array, TupleValue) else array.value
            if (
                isinstance(array, TupleValue)
                and isinstance(position.value, int)
                and -len(items) <= position.value < len(items)
            ):
                return array.items[position.value]
            return self.evaluated(node, lambda: items[position.value])
        return self.load(*self.place(node, array, index, "data[i]"), self.source.span(node))


def _first_of(cls: type[object]) -> str:
    """The name of a struct's first field; `value` of an enum."""
    return "value" if issubclass(cls, Enum) else next(iter(fields_of(cls)))


def _function_of(method: Any) -> FunctionType:
    """The function that a classmethod wraps."""
    return cast("FunctionType", method.__func__)
