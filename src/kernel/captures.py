"""The free variables that a kernel was compiled with: globals, closure cells, attributes of classes and modules.
CPython looks them up at each run, so a cached program is valid only while they are unchanged. They are compared before
each use, like the guards of a JIT compiler. Variables of this package's own modules are taken to be constant."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from ..types.ops import operators
from ..types.scalars import Scalar
from ..types.specs import HostArray
from .launch import field_names

_PACKAGE = __name__.partition(".")[0]
_INSIDE = f"{_PACKAGE}."
_NOTHING = object()
_FLOATS: tuple[type[object], ...] = (float, complex, np.generic, Scalar)
_CONTAINERS = (list, dict, set, bytearray, deque)
_FROZEN: object = attrs.make_class("_Frozen", (), frozen=True).__setattr__  # that of every frozen attrs class

_Lookup: TypeAlias = tuple[Callable[..., object], tuple[object, ...], object]  # a function, its arguments, its result


def same(now: object, then: object) -> bool:
    """Whether a kernel compiled with one value is right for the other. To Python 0.0 is -0.0, 1 is True, and dicts are
    equal whatever their order."""
    if now is then:
        return True
    if type(now) is not type(then):
        return False
    if isinstance(now, MethodType):  # of one object, which is made anew each time it is looked up
        return bool(now == then)
    if isinstance(now, _FLOATS):
        return repr(now) == repr(then)
    if isinstance(now, np.ndarray):
        array, other = cast(HostArray, now), cast(HostArray, then)
        return (array.dtype, array.shape, array.tobytes()) == (other.dtype, other.shape, other.tobytes())
    try:
        parts = _parts(now), _parts(then)
        return bool(now == then) and (all(map(operators.is_, *parts)) or all(map(same, *parts)))
    except Exception:  # a comparison of the user's may do anything
        return False


def _parts(thing: object) -> Sequence[object]:
    """What is in a tuple, a list, a deque, a frozen set, a dict or a struct, in its order."""
    if isinstance(thing, dict):
        known = cast("dict[object, object]", thing)
        return [*known, *known.values()]
    if isinstance(thing, tuple | list | deque | frozenset):
        return [*cast("Iterable[object]", thing)]
    return [getattr(thing, name) for name in field_names(cast(Any, type(thing)))]


def _may_change(thing: object) -> bool:
    """Whether it may be changed in place: it has no hash, as a list or a tuple of lists, or is of a class of the
    user's."""
    try:
        hash(thing)
    except Exception:
        return True
    module = type(thing).__module__
    return not (isinstance(thing, type) or module == "builtins" or is_own(module))


@attrs.define
class Captures:
    """The free variables of one program with the values it was compiled for, recorded as the reader resolves them."""

    _lookups: dict[tuple[int, str], _Lookup] = attrs.field(factory=dict[Any, Any])  # by what is asked, and for what

    @property
    def is_empty(self) -> bool:
        return not self._lookups

    def name(self, names: dict[str, Any], name: str) -> None:
        """Records a module's global, or its absence: then the name means a builtin, until the module defines it."""
        if not is_own(names.get("__name__")):
            self._record(names, name, names.get, name, _NOTHING)

    def cell(self, cell: CellType) -> None:
        self._record(cell, "", contents_of, cell)

    def attribute(self, owner: object, name: str) -> None:
        """Records an attribute of a class, a module or another object; a field of what is frozen only by its
        content."""
        cls = owner if isinstance(owner, type) else type(owner)
        if is_own(getattr(owner, "__name__", None) if isinstance(owner, ModuleType) else cls.__module__):
            return
        if cast(Any, type(owner)).__setattr__ is _FROZEN and name in field_names(cast(Any, cls)):
            self._content(getattr(owner, name))
        else:
            self._record(owner, name, getattr, owner, name, _NOTHING)

    def function(self, function: FunctionType) -> None:
        """Records what a function is made of, which may be replaced in place, as IPython's autoreload does."""
        key = id(function), "()"
        if key not in self._lookups and not is_own(function.__module__):
            self._lookups[key] = is_made_of, (function, *made_of(function)), True

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Records the result of one of Python's functions or operators, if an argument may be changed in place. An
        element is one: a container's own record does not compare what is in containers inside it, nor in NumPy's
        arrays."""
        if any(map(_may_change, arguments)):
            self._record(function, str([id(argument) for argument in arguments]), function, *arguments)

    def hold(self) -> bool:
        """Whether all captured variables still have the values that the kernel was compiled with."""
        try:
            for look_up, arguments, then in self._lookups.values():
                now = look_up(*arguments)
                if now is not then and not same(now, then):
                    return False
        except Exception:  # e.g. a name was deleted: reading the kernel again reports it
            return False
        return True

    def _record(self, owner: object, name: str, look_up: Callable[..., object], *arguments: object) -> None:
        try:
            value = look_up(*arguments)
            if not same(look_up(*arguments), value):
                return  # a property or function that gives a new object each time cannot be compared later
        except Exception:  # e.g. of a property: the reader reports it
            return
        self._lookups[id(owner), name] = look_up, arguments, value
        self._content(value)

    def _content(self, value: object) -> None:
        """Records what is in a container or a struct that may be changed in place."""
        cls: Any = type(value)
        has_hash = getattr(cls, "__hash__", None) is not None
        if not has_hash and (issubclass(cls, _CONTAINERS) or field_names(cls)):
            held = copy(value)
            if same(value, held):
                self._lookups[id(value), "content"] = lambda: value, (), held


def contents_of(cell: CellType) -> object:
    """The value of a variable of an enclosing function; raises KeyError for one that has none, or none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        raise KeyError from None


Made: TypeAlias = "tuple[CodeType, tuple[object, ...] | None, dict[str, object] | None]"


def made_of(function: FunctionType) -> Made:
    """A function's code, and its defaults."""
    return function.__code__, function.__defaults__, copy(function.__kwdefaults__)


def is_made_of(function: FunctionType, code: CodeType, defaults: object, named: object) -> bool:
    return function.__code__ is code and function.__defaults__ is defaults and same(function.__kwdefaults__, named)


def is_own(module: object) -> bool:
    """Whether this is the name of a module of this package."""
    return isinstance(module, str) and (module == _PACKAGE or module.startswith(_INSIDE))
