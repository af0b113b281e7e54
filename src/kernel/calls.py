"""Reader, part 2: calls. Helpers and methods are inlined, constructors make structs and literals, and some of Python's
functions are evaluated at compile time."""

from __future__ import annotations

import ast
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, EnumMeta
from functools import cache
from types import BuiltinFunctionType, FunctionType
from typing import Any, cast

import attrs

from ..types.deferred import call_signature
from ..types.elements import class_of, fields_of, is_struct, shown
from ..types.finishes import Finish
from ..types.intrinsics import OPERATIONS, OVERRIDABLE, dynamic_range
from ..types.keys import SortableKey
from ..types.layout import Type
from ..types.memory import Registers
from ..types.monoids import Monoid
from ..types.scalars import Scalar
from . import ir, messages
from .arguments import members_of
from .compile_time import called, require_numbers
from .expressions import ExpressionReader
from .kernel import Kernel
from .memories import invocation_method, memory_method, registers
from .messages import describe
from .operators import intrinsic, is_generated, scalar_of_class
from .source import signature_of, source_of
from .span import KernelError, ResultError, Span, expected
from .values import (
    Given,
    InvocationValue,
    MemoryValue,
    Method,
    StructValue,
    Value,
    class_behind,
    is_known,
    is_tuple,
    lift,
    of_object,
)

_PLAIN = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Python functions that are evaluated at compile time, on compile-time values.
_FOLDABLE: tuple[object, ...] = (int, bool, float, len, min, max, sum, abs, ord, range, type, isinstance, issubclass)
_NO_NAMES: Mapping[str, Value] = {}
_MATH = ("math", "math.integer")  # modules; the second has the functions of integers from Python 3.15 on

_signature_of_class = cast("Callable[[type[object]], inspect.Signature]", cache(call_signature))


class CallReader(ExpressionReader, ABC):
    """Calls in one inlined function."""

    @abstractmethod
    def inline(self, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value: ...

    def call(self, node: ast.Call) -> Value:
        callee, span = self.read(node.func), self.span(node)
        match callee:
            case Method(owner=InvocationValue()):
                return invocation_method(self.builder, callee.name, self.positional(node), span)
            case Method(owner=MemoryValue() as array):
                return memory_method(self.builder, array, callee.name, self.positional(node), span)
            case Method():
                found = self.call_function(node, callee.function, [callee.owner])
                self.require_returned(node, callee, lift(found, span))
                return found
            case type() if issubclass(callee, Scalar):
                return scalar_of_class(callee, [given.value for given in self.positional(node)], span)
            case _ if _origin_of(callee) is Registers:
                return registers(self.builder, self.positional(node), span)
            case type() if issubclass(callee, Enum):
                self.expected(node, f"a member of {callee.__name__}, e.g. `{messages.element_of(callee, None)}`")
            case FunctionType() if callee in OPERATIONS:
                return intrinsic(self.builder, callee, [given.value for given in self.positional(node)], span)
            case FunctionType() if callee is dynamic_range:
                self.expected(node, "`dynamic_range` in a for loop, e.g. `for i in dynamic_range(U32(0), n):`")
            case FunctionType():
                return self.call_function(node, callee, [])
            case Kernel():
                return self.call_function(node, callee.function, [])
            case _ if inspect.isclass(_origin_of(callee)) and is_struct(callee):
                return self.struct(node, callee)
            case _ if _is_foldable(callee):
                return self.fold_call(node, callee)
            case _ if is_known(callee) and callable(callee):
                self.expected(node, messages.callable_for(callee))
            case _:
                self.expected(node, f"something to call, found {describe(callee)}, e.g. `partner_of(thread)`")

    def positional(self, node: ast.Call) -> list[Given]:
        if node.keywords:
            self.expected(node, "positional arguments, e.g. `minimum(a, b)`")
        return [self.given(argument) for argument in node.args]

    def fold_call(self, node: ast.Call, function: object) -> Value:
        """Evaluates one of Python's functions on compile-time values."""
        arguments = self.positional(node)
        cls = class_behind(arguments[0].value) if arguments else None
        if function in (isinstance, type) and cls is not None and not is_known(arguments[0].value):
            # the class is known at compile time even where the value is not
            if function is type and len(arguments) == 1:
                return cls
            function, arguments[0] = issubclass, Given(cls, arguments[0].span)
        if function is len and len(arguments) == 1 and is_tuple(items := arguments[0].value):
            return len(items)
        for given in arguments:
            if not is_known(given.value):
                name = getattr(function, "__name__", repr(function))
                hint = messages.instead_of(function, "e.g. a property of the key or the policy")
                expected(given.span, f"a compile-time value for {name!r}, found {describe(given.value)}, {hint}")
        values = [given.value for given in arguments]
        return called(self.builder.captures, self.span(node), cast("Callable[..., object]", function), *values)

    def call_function(self, node: ast.Call, function: FunctionType, leading: Sequence[Value]) -> Value:
        """Inlines what a call names, a helper or a method."""
        given, named = self.given_to(node, leading)
        try:
            return self.apply_function(function, given, self.span(node), named)
        except KernelError:
            if messages.is_from_a_library(function):  # where its line is: report the line of the call instead
                self.expected(node, messages.callable_for(function))
            raise

    def apply_function(
        self, function: FunctionType, given: Sequence[Value], span: Span, named: Mapping[str, Value] = _NO_NAMES
    ) -> Value:
        """Inlines a function, its arguments bound to parameters as Python binds them."""
        if hasattr(function, "__wrapped__"):
            expected(span, f"a helper without a decorator around it, found {function.__name__!r}, "
                           "e.g. its body in the helper itself")  # fmt: skip
        arguments = list(_bound(function, given, span, named).values())
        if function in OVERRIDABLE:
            return self.overridable(function, arguments, span)
        return self.inline(function, arguments, span)

    def require_returned(self, node: ast.Call, method: Method, found: Value) -> None:
        """Checks the class of the result of a key's, monoid's or finish's method against the one that the object
        declares. The KernelError is at the line of the method, which is the user's, not where the kernel uses the
        result."""
        function, owner = cast("FunctionType", method.function), method.owner
        name, made = function.__name__, class_behind(owner)
        for trait, classes in _CLASSES.items():
            if made is not None and name in classes and all(_has(owner, member) for member in members_of(trait)):
                element = self.attribute(node, owner, classes[name])
                if is_known(element) and class_behind(found) is not class_of(element):
                    source, owned = source_of(function), f"the `{classes[name]}` of {made.__name__}"
                    raise ResultError(
                        source.span(source.tree), f"expected {shown(element)}, {owned}, from "
                        f"{function.__qualname__!r}, found {describe(found)}, e.g. "
                        f"`return {messages.element_of(element, found)}`",
                    )  # fmt: skip

    def overridable(self, function: FunctionType, arguments: Sequence[Value], span: Span) -> Value:
        """Inlines an overridable helper into a block of its own, which a target may replace by its name."""
        name = function.__name__
        held = [self.builder.hold(name, a, span) if isinstance(a, ir.Expression) else a for a in arguments]
        with self.builder.nested() as body:
            result = self.inline(function, held, span)
            if not isinstance(result, ir.Expression):
                raise KernelError(span, f"expected the helper {name!r} to give a scalar, found {describe(result)}")
            variable = self.builder.variable(name, result.type)
            self.builder.emit(ir.Assign(variable, result, span))
        memories = tuple(value.memory for value in held if isinstance(value, MemoryValue))
        operands = tuple(value for value in held if isinstance(value, ir.Expression))
        always = ir.Const(True, Type.BOOL, span)
        self.builder.emit(ir.If(always, tuple(body), (), span, ir.Overridable(name, variable, memories, operands)))
        return ir.Read(variable, span)

    def given_to(self, node: ast.Call, leading: Sequence[Value] = ()) -> tuple[list[Value], dict[str, Value]]:
        """A call's arguments: by position, behind the leading ones, and by name."""
        given = [*leading, *(self.read(argument) for argument in node.args)]
        named = {keyword.arg: self.read(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        if len(named) != len(node.keywords):
            self.expected(node, "each argument by itself instead of `**`, e.g. `f(low=a, high=b)`")
        return given, named

    def struct(self, node: ast.Call, element: Any) -> Value:
        """`Pair(low, high)`: its fields, checked against their annotations."""
        cls, fields = class_of(element), attrs.fields(cast("Any", class_of(element)))
        self.require_plain_init(node, cls, fields)
        given, named = self.given_to(node)
        bound = _bound(cls, given, self.span(node), named)
        made: dict[str, Value] = {}
        for field, (name, annotation) in zip(fields, fields_of(element).items(), strict=True):
            value = bound[field.alias]
            if value is attrs.NOTHING:  # the default of a field with a factory
                self.expected(node, f"a default of {cls.__name__!r} that is known, found a factory's for {name!r}, "
                                f"e.g. each argument by itself, or `{name}: U32 = U32(0)`")  # fmt: skip
            if isinstance(annotation, EnumMeta):
                value = lift(value, self.span(node))
                require_numbers((value,), self.span(node))
            if not _fits(value, annotation):
                wanted = getattr(annotation, "__name__", str(annotation))
                example = messages.element_of(annotation, value)
                self.expected(node, f"{wanted} for `{name}` of {cls.__name__}, found {describe(value)}, "
                                f"e.g. `{example}`")  # fmt: skip
            made[name] = value
        return StructValue(element, made)

    def require_plain_init(self, node: ast.Call, cls: type[object], fields: tuple[Any, ...]) -> None:
        """Raises KernelError where `__init__` does more than set fields."""
        odd = [f" of {field.name!r}" for field in fields if field.converter is not None or not field.init]
        init = inspect.getattr_static(cls, "__init__", None)
        if not (isinstance(init, FunctionType) and is_generated(init)) or hasattr(cls, "__attrs_post_init__"):
            odd.append(" in `__init__`")
        if odd:
            self.expected(node, f"{cls.__name__} to hold what it is given, without a conversion{odd[0]}, "
                            f"e.g. a classmethod `{cls.__name__}.of(x)`")  # fmt: skip


def _bound(
    thing: FunctionType | type[object], given: Sequence[Value], span: Span, named: Mapping[str, Value]
) -> dict[str, Value]:
    """The value of each parameter."""
    signature = signature_of(thing) if isinstance(thing, FunctionType) else _signature_of_class(thing)
    parameters = signature.parameters.values()
    if not named and len(given) == len(parameters) and all(p.kind in _PLAIN for p in parameters):
        return dict(zip(signature.parameters, given, strict=True))
    try:
        bound = signature.bind(*given, **named)
    except TypeError as error:
        call = f"{thing.__qualname__}{signature}"
        expected(span, f"a call that fits `{call}` ({error}), e.g. each argument by its name")
    found: dict[str, Value] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind in _ANY_NUMBER:
            expected(span, f"a helper with named parameters, found `*{name}`, e.g. `x: U32`")
        found[name] = bound.arguments[name] if name in bound.arguments else of_object(parameter.default, span)
    return found


def _origin_of(thing: object) -> object:
    """The class of a generic alias such as `Pair[U32]`; other objects unchanged."""
    return typing.get_origin(thing) or thing


def _fits(value: Value, annotation: object) -> bool:
    if not isinstance(annotation, type):
        return True  # a type variable or alias: the type checkers' matter; operations check scalars again
    if is_known(value):
        return not issubclass(annotation, Scalar | Enum)
    behind = class_behind(value)
    return behind is not None and issubclass(behind, annotation)


def _has(owner: Value, member: str) -> bool:
    """Whether an object has a member. One with scalar fields, as a key may be, is a StructValue to the reader."""
    if isinstance(owner, StructValue):
        return member in owner.fields or hasattr(class_of(owner.element), member)
    return is_known(owner) and hasattr(owner, member)


def _is_foldable(function: object) -> bool:
    """Whether Python computes it at compile time. Other objects may do anything where they are compared."""
    return isinstance(function, type | BuiltinFunctionType) and (function in _FOLDABLE or function.__module__ in _MATH)


# For each method, the member that declares the class of its result.
_CLASSES: Mapping[type, Mapping[str, str]] = {
    SortableKey: {"to_word": "word", "from_word": "element", "to_rank": "word", "mirrored": "word"},
    Monoid: {"identity": "state", "lift": "state", "combine": "state"},
    Finish: {"finish": "result"},
}
