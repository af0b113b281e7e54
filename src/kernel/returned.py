"""What the methods of keys, monoids and finishes give back. It is checked where a kernel calls them, so that an error
names the method of the caller's own class, and not the kernel that has a use for its result."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType

from ..types.elements import class_of, shown
from ..types.finishes import Finish
from ..types.keys import SortableKey
from ..types.monoids import Monoid
from . import examples
from .arguments import members_of
from .source import source_of
from .span import expected
from .values import Static, Value, class_behind, describe

# By method, the member that names the class of its result.
_CLASSES: Mapping[type, Mapping[str, str]] = {
    SortableKey: {"to_word": "word", "from_word": "element", "to_rank": "word", "mirrored": "word"},
    Monoid: {"identity": "state", "lift": "state", "combine": "state"},
    Finish: {"finish": "result"},
}


def require_returned(function: FunctionType, owner: Value, found: Value) -> None:
    """Raises KernelError, at the line of a key's, a monoid's or a finish's method, if it gives back another class than
    its object says."""
    if not isinstance(owner, Static):
        return
    thing, name = owner.value, function.__name__
    for trait, classes in _CLASSES.items():
        if name in classes and all(hasattr(thing, member) for member in members_of(trait)):
            element: object = getattr(thing, classes[name])
            if class_behind(found) is not class_of(element):
                source, owned = source_of(function), f"the `{classes[name]}` of {type(thing).__name__}"
                expected(
                    source.span(source.tree), f"{shown(element)}, {owned}, from {function.__qualname__!r}, found "
                    f"{describe(found)}, e.g. `return {examples.element_of(element, found)}`",
                )  # fmt: skip
