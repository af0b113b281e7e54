"""Checks a launch's arguments against its kernel's annotations, as a type checker would. Memories are matched by
element, scalars and structs by class, keys and monoids structurally, by the members of their Protocol. A type variable
is unified with one class throughout a launch."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any, Literal, NoReturn, Protocol, TypeVar, Union, cast

import attrs

from ..types.bounded import Bounded
from ..types.deferred import annotations_of
from ..types.elements import class_of, fields_of, shown
from ..types.memory import Array, Workgroup
from ..types.scalars import Scalar
from .launch import Buffer, kind_of
from .signature import UNKNOWN, Parameter
from .span import KernelError, Span, expected

# Kernels and kinds of arguments that passed the check: most launches repeat an earlier one.
_checked: Bounded[object, None] = Bounded(4096)


def check_arguments(function: FunctionType, parameters: tuple[Parameter, ...], arguments: tuple[object, ...]) -> None:
    """Raises KernelError, with the parameter's line, for an argument that does not match its annotation."""
    kinds = function, *map(kind_of, arguments)
    with suppress(TypeError):  # not hashable: reported below, with the parameter's name
        if kinds in _checked:
            return
    bound: dict[TypeVar, object] = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        matcher = _Matcher(function.__name__, parameter.span, bound)
        matcher.value(parameter.annotation, argument, parameter.name)
        matcher.require_hashable(argument, parameter.name)
    _checked[kinds] = None


@attrs.frozen
class _Matcher:
    """Matches an argument with the annotation of a kernel's parameter; `bound` has the classes that type variables are
    unified with."""

    kernel: str
    span: Span  # of the parameter
    bound: dict[TypeVar, object]

    def require_hashable(self, argument: object, name: str) -> None:
        """Compile-time arguments are part of the cache key of compiled kernels, so they must be hashable."""
        try:
            hash(kind_of(argument))
        except TypeError:
            example = "Buffer('data', U32, 8, Role.INOUT)" if hasattr(argument, "dtype") else "(a, b)"
            from .messages import shown_value  # of the compiler, which no launch loads

            self.refuse(name, "something that does not change", shown_value(argument), example)

    def value(self, annotation: object, value: object, path: str) -> None:
        """Matches an argument, or a part of one at `path`."""
        origin, parts = cast(object, typing.get_origin(annotation) or annotation), typing.get_args(annotation)
        if _accepts_anything(annotation):
            return
        if isinstance(annotation, TypeVar):
            self.type(annotation, type(value), path)
        elif _is_union(origin):
            self._any_of(annotation, parts, value, path)
        elif origin is Literal:
            named = any(type(part) is type(value) and part == value for part in parts)
            self._require(named, annotation, value, path)
        elif origin is typing.Annotated:
            self.value(parts[0], value, path)
        elif origin is tuple:
            self._tuple(annotation, parts, value, path)
        elif origin is type:
            self._require(isinstance(typing.get_origin(value) or value, type), annotation, value, path)
            if parts:
                self.type(parts[0], value, path)
        elif isinstance(origin, type):
            self._instance(annotation, cast("type[object]", origin), parts, value, path)

    def _instance(self, annotation: object, cls: Any, parts: tuple[object, ...], value: object, path: str) -> None:
        if issubclass(cls, Array):
            self._memory(annotation, cast("type[object]", cls), parts, value, path)
        elif issubclass(cls, Scalar):
            self._require(type(value) is cls, annotation, value, path)
        elif getattr(cls, "_is_protocol", False):
            kind = type(value)  # the class first: a property of the object may be slow to compute
            members = members_of(cls)
            missing = [name for name in members if not (hasattr(kind, name) or hasattr(value, name))]
            if missing or isinstance(value, type):
                said = f", which has {missing[0]!r}," if 0 < len(missing) < len(members) else ""
                self.fail(annotation, value, path, said)
            for name, pattern in _classes_named(annotation):
                self.type(pattern, getattr(value, name), f"{path}.{name}")
        elif attrs.has(cls):
            self._require(isinstance(value, cls), annotation, value, path)
            self._struct(cls, parts, value, path)
        else:
            self._require(isinstance(value, (int, float) if cls is float else cls), annotation, value, path)

    def _memory(self, annotation: object, cls: type, parts: tuple[object, ...], value: object, path: str) -> None:
        kinds = tuple(kind for kind in (Buffer, Workgroup) if issubclass(kind, cls) or issubclass(cls, kind))
        is_memory = isinstance(cast(Any, value), kinds)
        fits = is_memory and (not parts or self._fits(parts[0], cast("Array[object]", value).kind))
        self._require(fits, annotation, value, path)

    def _struct(self, cls: type, parts: tuple[object, ...], value: object, path: str) -> None:
        try:
            fields = fields_of(cls)
        except (NameError, TypeError):
            return  # an annotation that does not resolve: the reader reports what it cannot read
        variables = getattr(cls, "__parameters__", ())
        inner = (
            self if parts else attrs.evolve(self, bound={})
        )  # annotated without arguments: its type variables are its own
        filled = dict(zip(variables, parts, strict=False))
        for name, field in fields.items():
            inner.value(_substituted(field, filled), getattr(value, name), f"{path}.{name}")

    def _tuple(self, annotation: object, parts: tuple[object, ...], value: object, path: str) -> None:
        self._require(isinstance(value, tuple), annotation, value, path)
        items = cast("tuple[object, ...]", value)
        wanted = [parts[0]] * len(items) if len(parts) == 2 and parts[1] is Ellipsis else [*parts]
        self._require(not parts or len(wanted) == len(items), annotation, value, path)
        for number, (part, item) in enumerate(zip(wanted, items, strict=False)):
            self.value(part, item, f"{path}[{number}]")

    def _any_of(self, annotation: object, parts: tuple[object, ...], value: object, path: str) -> None:
        for part in parts:
            attempt = attrs.evolve(self, bound=dict(self.bound))
            try:
                attempt.value(type(None) if part is None else part, value, path)
            except KernelError:
                continue
            self.bound.update(attempt.bound)
            return
        self.fail(annotation, value, path)

    def type(self, pattern: object, found: object, path: str) -> None:
        """Matches a class: an argument itself, or one that an argument's member names."""
        if not self._fits(pattern, found):
            meaning = _substituted(pattern, self.bound)
            allowed = getattr(meaning, "__constraints__", ())
            self.refuse(path, self._named(pattern), shown(found), shown(allowed[0] if allowed else meaning))

    def _fits(self, pattern: object, found: object) -> bool:
        if _accepts_anything(pattern) or found is Any:
            return True
        if isinstance(pattern, TypeVar):
            if not isinstance(typing.get_origin(found) or found, type):
                return False
            if pattern in self.bound:
                return _same(self.bound[pattern], found)
            if not _is_allowed(pattern, found):
                return False
            self.bound[pattern] = found
            return True
        origin, parts = typing.get_origin(pattern) or pattern, typing.get_args(pattern)
        if _is_union(origin):
            return any(self._fits(part, found) for part in parts)
        if (typing.get_origin(found) or found) is not origin:
            return False
        return all(map(self._fits, parts, typing.get_args(found)))

    def _named(self, annotation: object) -> str:
        """An annotation in an error message: with its type variables replaced by the classes that they are bound to,
        and then as it was written."""
        meaning = _substituted(annotation, self.bound)
        if isinstance(meaning, TypeVar) and meaning.__constraints__:
            return f"{_choices(meaning)} ({shown(annotation)})"
        name = shown(annotation) if meaning == annotation else f"{shown(meaning)} ({shown(annotation)})"
        return name + "".join(f", {shown(variable)} being {_choices(variable)}," for variable in _constrained(meaning))

    def _require(self, holds: bool, annotation: object, value: object, path: str) -> None:
        if not holds:
            self.fail(annotation, value, path)

    def fail(self, annotation: object, value: object, path: str, said: str = "") -> NoReturn:
        """Raises KernelError; `said` is appended to what was expected."""
        from .messages import example_of, shown_value  # of the compiler, which no launch loads

        meaning = _substituted(annotation, self.bound)
        first = {variable: variable.__constraints__[0] for variable in _constrained(meaning)}
        example = example_of(_substituted(meaning, first), value)
        kind = cast("Array[object]", value).kind if isinstance(cast(Any, value), Array) else type(value)
        named = (meaning, *typing.get_args(meaning))
        is_namesake = kind not in named and shown(kind) in map(shown, named)  # a module or a cell that ran twice
        found = shown_value(value) + (f", of another class named {shown(kind)}" if is_namesake else "")
        self.refuse(path, self._named(annotation) + said, found, example)

    def refuse(self, path: str, wanted: str, found: str, example: str) -> NoReturn:
        expected(self.span, f"{wanted} for {path!r} of kernel {self.kernel!r}, found {found}, e.g. `{example}`")


def _constrained(memory: object) -> list[TypeVar]:
    """The type variables in a memory's annotation that have constraints."""
    cls: object = typing.get_origin(memory)
    found: tuple[Any, ...] = getattr(memory, "__parameters__", ())
    is_memory = isinstance(cls, type) and issubclass(cls, Array)
    return [variable for variable in found if is_memory and isinstance(variable, TypeVar) and variable.__constraints__]


def _choices(variable: TypeVar) -> str:
    return " or ".join(map(shown, variable.__constraints__))


def _is_union(origin: object) -> bool:
    return origin is Union or origin is types.UnionType


def _accepts_anything(annotation: object) -> bool:
    return annotation is UNKNOWN or annotation is Any or annotation is object


def _same(a: object, b: object) -> bool:
    """Whether two annotations mean the same class. `Pair` matches any `Pair[U32]`, as objects do not have their type
    arguments."""
    return a == b or (class_of(a) is class_of(b) and (isinstance(a, type) or isinstance(b, type)))


def _is_allowed(variable: TypeVar, found: object) -> bool:
    """Whether a class is within a type variable's constraints or bound."""
    cls: Any = typing.get_origin(found) or found
    if variable.__constraints__:
        return cls in variable.__constraints__
    bound: Any = variable.__bound__
    if isinstance(bound, type) and isinstance(cls, type) and not getattr(bound, "_is_protocol", False):
        return issubclass(cls, bound)
    return True


def _substituted(annotation: object, meanings: Mapping[Any, object]) -> object:
    """An annotation with its type variables replaced."""
    if isinstance(annotation, TypeVar):
        return meanings.get(annotation, annotation)
    variables: tuple[Any, ...] = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not any(variable in meanings for variable in variables):
        return annotation
    generic = cast(Any, annotation)
    return cast(object, generic[tuple(meanings.get(variable, variable) for variable in variables)])


@cache
def members_of(protocol: type) -> tuple[str, ...]:
    """The public members of a Protocol, inherited ones included."""
    found: dict[str, None] = {}
    for cls in protocol.__mro__:
        if getattr(cls, "_is_protocol", False):
            names = (*vars(cls), *annotations_of(cls))
            found |= dict.fromkeys(name for name in names if not name.startswith("_"))
    return tuple(found)


@cache
def _classes_named(annotation: object) -> tuple[tuple[str, object], ...]:
    """The members of a Protocol that hold classes, each with its type argument: element is E in SortableKey[E, W]."""
    cls: Any = typing.get_origin(annotation) or annotation
    filled = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(annotation), strict=False))
    found: list[tuple[str, object]] = []
    for name in members_of(cls):
        member = cast("dict[str, object]", vars(cls)).get(name)
        getter = member.fget if isinstance(member, property) else None
        try:
            hints = typing.get_type_hints(cls if getter is None else getter)
        except (NameError, TypeError):
            continue
        hint = hints.get(name if getter is None else "return")
        if typing.get_origin(hint) is type:
            word = _substituted(typing.get_args(hint)[0], filled)
            if not isinstance(word, TypeVar) or filled:
                found.append((name, word))
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if getattr(origin, "_is_protocol", False) and origin is not Protocol:
            found += _classes_named(_substituted(base, filled))
    return tuple(found)
