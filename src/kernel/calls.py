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
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.layout import Type
from ..types.memory import Registers
from ..types.monoids import Monoid
from ..types.scalars import Scalar
from . import ir, messages
from .arguments import members_of
from .compile_time import evaluated
from .expressions import ExpressionReader
from .kernel import Kernel
from .memories import invocation_method, memory_method, registers
from .messages import describe
from .operators import intrinsic, scalar_of_class
from .source import signature_of, source_of
from .span import KernelError, Span, expected
from .values import (
    Given,
    InvocationValue,
    MemoryValue,
    Method,
    Static,
    StructValue,
    TupleValue,
    Value,
    as_static,
    class_behind,
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
                found = self.call_function(node, callee.plain(), [callee.owner])
                self.require_returned(node, callee, lift(found, span))
                return found
            case Static(value=cls) if isinstance(cls, type) and issubclass(cls, Scalar):
                return scalar_of_class(cls, [given.value for given in self.positional(node)], span)
            case Static(value=cls) if _origin_of(cls) is Registers:
                return registers(self.builder, self.positional(node), span)
            case Static(value=cls) if isinstance(cls, type) and issubclass(cls, Enum):
                self.expected(node, f"a member of {cls.__name__}, e.g. `{cls.__name__}.{next(iter(cls)).name}`")
            case Static(value=function) if isinstance(function, FunctionType) and function in OPERATIONS:
                return intrinsic(self.builder, function, [given.value for given in self.positional(node)], span)
            case Static(value=function) if function is dynamic_range:
                self.expected(node, "`dynamic_range` in a for loop, e.g. `for i in dynamic_range(U32(0), n):`")
            case Static(value=function) if isinstance(function, FunctionType):
                return self.call_function(node, function, [])
            case Static(value=Kernel() as called):
                return self.call_function(node, called.function, [])
            case Static(value=cls) if inspect.isclass(_origin_of(cls)) and is_struct(cls):
                return self.struct(node, cls)
            case Static(value=function) if _is_foldable(function):
                return self.fold_call(node, function)
            case Static(value=function) if callable(function):
                self.expected(node, messages.callable_for(function))
            case _:
                self.expected(node, f"something to call, found {describe(callee)}, e.g. `partner_of(thread)`")

    def positional(self, node: ast.Call) -> list[Given]:
        if node.keywords:
            self.expected(node, "positional arguments, e.g. `minimum(a, b)`")
        return [self.given(argument) for argument in node.args]

    def fold_call(self, node: ast.Call, function: object) -> Value:
        """Evaluates one of Python's functions on compile-time values."""
        arguments = [Given(as_static(given.value), given.span) for given in self.positional(node)]
        cls = class_behind(arguments[0].value) if arguments else None
        if function in (isinstance, type) and cls is not None:
            # the class is known at compile time even where the value is not
            if function is type and len(arguments) == 1:
                return Static(cls)
            function, arguments[0] = issubclass, Given(Static(cls), arguments[0].span)
        if function is len and len(arguments) == 1 and isinstance(arguments[0].value, TupleValue):
            return Static(len(arguments[0].value.items))
        values: list[object] = []
        for given in arguments:
            if not isinstance(given.value, Static):
                name = getattr(function, "__name__", repr(function))
                hint = messages.instead_of(function, "e.g. a property of the key or the policy")
                expected(given.span, f"a compile-time value for {name!r}, found {describe(given.value)}, {hint}")
            values.append(given.value.value)
        called = cast("Callable[..., object]", function)
        found = evaluated(self.span(node), called, *values)
        self.builder.captures.call(called, *values)
        return found

    def call_function(self, node: ast.Call, function: FunctionType, leading: Sequence[Value]) -> Value:
        """Inlines what a call names, a helper or a method."""
        parameters = signature_of(function).parameters.values()
        is_foreign = messages.is_from_a_library(function)
        if is_foreign and any(p.kind in _ANY_NUMBER for p in parameters):
            self.expected(node, messages.callable_for(function))
        given, named = self.given_to(node, leading)
        try:
            return self.apply_function(function, given, self.span(node), named)
        except KernelError:  # its line is in the library: report the line of the call instead
            if is_foreign:
                self.expected(node, messages.callable_for(function))
            raise

    def apply_function(
        self, function: FunctionType, given: Sequence[Value], span: Span, named: Mapping[str, Value] = _NO_NAMES
    ) -> Value:
        """Inlines a function, its arguments bound to parameters as Python binds them."""
        if hasattr(function, "__wrapped__"):
            expected(span, f"a helper without a decorator around it, found {function.__name__!r}, "
                           "e.g. its body in the helper itself")  # fmt: skip
        arguments = list(_bound(function, signature_of(function), given, span, named).values())
        if function in OVERRIDABLE:
            return self.overridable(function, arguments, span)
        return self.inline(function, arguments, span)

    def require_returned(self, node: ast.Call, method: Method, found: Value) -> None:
        """Checks the class of the result of a key's, monoid's or finish's method against the one that the object
        declares. The KernelError is at the line of the method, which is the user's, not where the kernel uses the
        result."""
        function, owner = method.plain(), method.owner
        name, made = function.__name__, type(owner.value) if isinstance(owner, Static) else class_behind(owner)
        for trait, classes in _CLASSES.items():
            if made is not None and name in classes and all(_has(owner, member) for member in members_of(trait)):
                element = self.attribute(node, owner, classes[name])
                if isinstance(element, Static) and class_behind(found) is not class_of(element.value):
                    source, owned = source_of(function), f"the `{classes[name]}` of {made.__name__}"
                    expected(
                        source.span(source.tree), f"{shown(element.value)}, {owned}, from {function.__qualname__!r}, "
                        f"found {describe(found)}, e.g. `return {messages.element_of(element.value, found)}`",
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
        cls = class_of(element)
        fields = fields_of(element)
        parameters = self.parameters_of(node, cls)
        given, named = self.given_to(node)
        bound = _bound(cls, _signature_of_class(cls), given, self.span(node), named)
        made: dict[str, Value] = {}
        for name, annotation in fields.items():
            value = bound[parameters[name]]
            if isinstance(value, Static) and value.value is attrs.NOTHING:  # the default of a field with a factory
                self.expected(node, f"a default of {cls.__name__!r} that is known, found a factory's for {name!r}, "
                                f"e.g. each argument by itself, or `{name}: U32 = U32(0)`")  # fmt: skip
            if isinstance(annotation, EnumMeta):
                value = lift(value, self.span(node))
            if not _fits(value, annotation):
                wanted = getattr(annotation, "__name__", str(annotation))
                example = messages.element_of(annotation, value)
                self.expected(node, f"{wanted} for `{name}` of {cls.__name__}, found {describe(value)}, "
                                f"e.g. `{example}`")  # fmt: skip
            made[name] = value
        return StructValue(element, made)

    def parameters_of(self, node: ast.Call, cls: type[object]) -> dict[str, str]:
        """The `__init__` parameter of each field. Raises KernelError where `__init__` does more than set fields."""
        parameters: dict[str, str] = {}
        init = inspect.getattr_static(cls, "__init__", None)
        plain = isinstance(init, FunctionType) and "attrs generated" in init.__code__.co_filename
        odd = "" if plain and not hasattr(cls, "__attrs_post_init__") else " in `__init__`"
        for field in cast("tuple[Any, ...]", attrs.fields(cast("Any", cls))):
            parameters[field.name] = field.alias
            if field.converter is not None or not field.init:
                odd = f" of {field.name!r}"
        if odd:
            self.expected(node, f"{cls.__name__} to hold what it is given, without a conversion{odd}, "
                            f"e.g. a classmethod `{cls.__name__}.of(x)`")  # fmt: skip
        return parameters


def _bound(
    thing: FunctionType | type[object],
    signature: inspect.Signature,
    given: Sequence[Value],
    span: Span,
    named: Mapping[str, Value],
) -> dict[str, Value]:
    """The value of each parameter."""
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
    if isinstance(value, InvocationValue):
        return issubclass(Invocation, annotation)
    if (behind := class_behind(value)) is not None:
        return issubclass(behind, annotation)
    return isinstance(value, Static) and not issubclass(annotation, Scalar | Enum)


def _has(owner: Value, member: str) -> bool:
    """Whether an object has a member. One with scalar fields, as a key may be, is a StructValue to the reader."""
    if isinstance(owner, StructValue):
        return member in owner.fields or hasattr(class_of(owner.element), member)
    return isinstance(owner, Static) and hasattr(owner.value, member)


def _is_foldable(function: object) -> bool:
    """Whether Python computes it at compile time. Other objects may do anything where they are compared."""
    return isinstance(function, type | BuiltinFunctionType) and (function in _FOLDABLE or function.__module__ in _MATH)


# For each method, the member that declares the class of its result.
_CLASSES: Mapping[type, Mapping[str, str]] = {
    SortableKey: {"to_word": "word", "from_word": "element", "to_rank": "word", "mirrored": "word"},
    Monoid: {"identity": "state", "lift": "state", "combine": "state"},
    Finish: {"finish": "result"},
}
