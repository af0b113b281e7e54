"""What Python puts off: annotations, from 3.14 on, and imports that say `lazy`, from 3.15 on. A name in an annotation
may be imported for type checkers only, so it may have no value whenever it is asked for; and a module's namespace holds
a stand-in for what has not been imported yet."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

# The class of what stands for a module or a name whose import has not been run.
STAND_IN: type[Any] | None = getattr(types, "LazyImportType", None)


def call_signature(function: Callable[..., object]) -> inspect.Signature:
    """`inspect.signature`, whether or not the annotations have values."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    else:
        return inspect.signature(function)


def annotations_of(thing: type[object] | Callable[..., object]) -> dict[str, Any]:
    """The annotations of a function or a class itself: values, strings, and references for what has no value."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(thing, format=Format.FORWARDREF)
    else:
        return inspect.get_annotations(thing)


def text_of(annotation: object) -> str:
    """An annotation without a value, as it is written."""
    text = getattr(annotation, "__forward_arg__", annotation)
    return str(text).strip("'\"")


def hints_of(cls: type[object], known: Mapping[str, object]) -> dict[str, Any]:
    """`typing.get_type_hints` of a class, with names that its module may not have. Raises NameError for others."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        found = typing.get_type_hints(cls, localns=known, format=Format.FORWARDREF)
        holder: Any = types.SimpleNamespace(__annotations__=found)
        return typing.get_type_hints(holder, {})  # which raises for a reference that is left
    else:
        return typing.get_type_hints(cls, localns=known)


def load(names: dict[str, Any], name: str) -> None:
    """Makes of a stand-in in a module's namespace what it stands for, as Python does where the name is first used."""
    if type(names.get(name)) is STAND_IN:
        names[name] = names[name].resolve()
