"""What a kernel was read with from outside of it: names of modules and closures, attributes of classes and modules.

Under CPython a kernel finds these anew each time it runs. What was read from it holds as long as they are what they
were. The package's own modules do not change, and are not watched.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from enum import Enum
from types import CellType, ModuleType
from typing import Any, TypeAlias, cast

import attrs

from ..types.scalars import Scalar

_PACKAGE = __name__.partition(".")[0]
_NOTHING = object()
_SIGNED_ZEROS: tuple[type[object], ...] = (float, complex, tuple, Scalar)  # which may hold equals that are not alike
_CONTAINERS = (list, dict, set, bytearray)

_Look: TypeAlias = Callable[[], object]


def same(now: object, then: object) -> bool:
    """Whether two values are one to a kernel: -0.0 and 0.0 are not."""
    if now is then:
        return True
    if type(now) is not type(then):
        return False
    try:
        return bool(now == then) and (not isinstance(now, _SIGNED_ZEROS) or repr(now) == repr(then))
    except Exception:  # a comparison of the user's may do anything
        return False


@attrs.define
class Outside:
    """All that one reading took, noted as it is taken."""

    _names: dict[tuple[int, str], tuple[dict[str, Any], str, object]] = attrs.field(factory=dict[Any, Any])
    _looks: dict[tuple[int, str], tuple[_Look, object]] = attrs.field(factory=dict[Any, Any])

    @property
    def is_empty(self) -> bool:
        return not self._names and not self._looks

    def name(self, names: dict[str, Any], name: str) -> None:
        """A global of a module, or one that it does not have: then Python takes its own of that name."""
        if not _is_own(names.get("__name__")):
            value = names.get(name, _NOTHING)
            self._names[id(names), name] = (names, name, value)
            self._content(value)

    def cell(self, cell: CellType) -> None:
        """A name of the function around."""
        self._look(cell, "", lambda: cell.cell_contents)

    def attribute(self, owner: object, name: str) -> None:
        """An attribute of a class, a module or another object that can change."""
        cls = owner if isinstance(owner, type) else type(owner)
        frozen = not isinstance(owner, type | ModuleType) and cast(Any, cls).__setattr__ is not object.__setattr__
        own = _is_own(getattr(owner, "__name__", None) if isinstance(owner, ModuleType) else cls.__module__)
        if not (frozen or own or isinstance(owner, Enum)):
            self._look(owner, name, lambda: getattr(owner, name, _NOTHING))

    def holds(self) -> bool:
        """Whether all of it is as it was."""
        for names, name, then in self._names.values():
            now = names.get(name, _NOTHING)
            if now is not then and not same(now, then):
                return False
        return all(same(look(), then) for look, then in self._looks.values())

    def _look(self, owner: object, name: str, look: _Look) -> None:
        value = look()
        if same(look(), value):  # what is another each time says nothing
            self._looks[id(owner), name] = (look, value)
            self._content(value)

    def _content(self, value: object) -> None:
        """What a container holds may change in place."""
        if isinstance(value, _CONTAINERS):
            container = cast("list[object]", value)
            held = copy(container)
            if same(container, held):
                self._looks[id(container), "content"] = (lambda: container, held)


def _is_own(module: object) -> bool:
    return isinstance(module, str) and (module == _PACKAGE or module.startswith(f"{_PACKAGE}."))
