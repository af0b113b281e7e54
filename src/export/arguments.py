"""Argument checks of `export`: resolves names of types, keys, monoids and schedules to objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from ..algos.sizes import LARGEST_U32
from ..kernel.launch import Schedule
from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.keys import SortableKey
from ..types.monoids import Monoid
from .operations import OPERATIONS
from .variants import TYPES, Request, Rows, any_device

E = TypeVar("E")

_OF_KEYS = ("element", "word", "to_word", "from_word")
_MOST_LANES = 64  # the largest subgroup of any device


def checked_request(
    operations: Sequence[str], keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]], values: Sequence[str],
    monoids: Sequence[str] | Mapping[str, Monoid[Any, Any]],
    schedules: Sequence[str] | Mapping[str, Callable[[int], Schedule]], lanes: object, rows: Sequence[int | str] = (),
    k: int | Sequence[int] = (),
) -> Request:  # fmt: skip
    """Checks and resolves the arguments. Raises InvalidArgumentError."""
    if not isinstance(lanes, int):
        raise UnsupportedTypeError(f"lanes: expected an int, found {lanes!r}")
    values, rows, k = listed("values", values, str), listed("rows", rows, int, str), listed("k", k, int)
    for operation in operations:
        if operation not in OPERATIONS:
            raise InvalidArgumentError(f"operations: expected some of {', '.join(OPERATIONS)}, found {operation!r}")
    own: dict[str, dict[str, Any]] = {
        "monoids": _named("monoids", monoids),
        "schedules": _named("schedules", schedules),
    }
    for operation, what in (("reduce", "monoids"), ("scan", "monoids"), ("schedule", "schedules")):
        if operation in operations and not own[what]:
            raise InvalidArgumentError(f"{what}: expected some for {operation!r}, e.g. 'module:attribute'")
    _require("monoids", "a monoid", own["monoids"], ("element", "state", "identity", "lift", "combine"))
    for name, schedule in own["schedules"].items():
        if not callable(schedule):
            raise InvalidArgumentError(f"schedules: expected a function of a length for {name!r}, found {schedule!r}")
    if lanes < 0 or lanes > _MOST_LANES or lanes & (lanes - 1):
        raise InvalidArgumentError(f"lanes: expected 0, or a power of two up to {_MOST_LANES}, found {lanes}")
    if "top_k" in operations and not k:
        raise InvalidArgumentError("k: expected some for 'top_k', e.g. 10")
    sizes = tuple(dict.fromkeys(_size(value) for value in values))
    lengths = tuple(map(_row, rows))
    return Request(_keys(keys), sizes, any_device(lanes), own["monoids"], lengths, k, own["schedules"])


def listed(argument: str, given: object, *kinds: type[E]) -> tuple[E, ...]:
    """What may be one value of these kinds, or several, as a tuple. Raises UnsupportedTypeError for anything else."""
    if isinstance(given, kinds):
        return (given,)
    found = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else None
    if found is None or not all(isinstance(one, kinds) for one in found):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UnsupportedTypeError(f"{argument}: expected {expected}, or a sequence of these, found {given!r}")
    return cast("tuple[E, ...]", found)


def _require(argument: str, expected: str, things: Mapping[str, object], members: Sequence[str]) -> None:
    """Raises InvalidArgumentError for objects that lack one of the members."""
    for name, thing in things.items():
        missing = [member for member in members if not hasattr(thing, member)]
        if missing:
            raise InvalidArgumentError(
                f"{argument}: expected {expected} for {name!r}, found {thing!r}, which has no {', '.join(missing)}"
            )


def _row(row: int | str) -> int | Rows:
    if row == Rows.ANY.value:
        return Rows.ANY
    if isinstance(row, str) or not 1 <= row <= LARGEST_U32:
        raise InvalidArgumentError(f"rows: expected lengths of at least 1 and below 2**32, or 'any', found {row!r}")
    return row


def _keys(keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]]) -> dict[str, SortableKey[Any, Any]]:
    if isinstance(keys, Mapping):
        _require("keys", "a SortableKey", keys, _OF_KEYS)
        return dict(keys)
    keys = listed("keys", keys, str)
    for name in keys:
        if name not in TYPES and ":" not in name:
            raise InvalidArgumentError(
                f"keys: expected some of {', '.join(TYPES)}, or 'module:attribute' for one's own, found {name!r}"
            )
    built_in: dict[str, Any] = {name: key_for(TYPES[name]) for name in keys if name in TYPES}
    own = {name: _named("keys", (name,)) for name in keys if name not in TYPES}
    for made in own.values():
        _require("keys", "a SortableKey", made, _OF_KEYS)
    found: dict[str, SortableKey[Any, Any]] = {}
    for name in keys:
        found |= own.get(name) or {name: built_in[name]}
    return found


def _named(argument: str, things: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Objects by name. "module:attribute" is imported, and instantiated if it is a class."""
    if isinstance(things, Mapping):
        return dict(things)
    found: dict[str, Any] = {}
    for name in listed(argument, things, str):
        module, colon, attribute = name.partition(":")
        if not colon:
            raise InvalidArgumentError(f"{argument}: expected 'module:attribute', found {name!r}")
        try:
            thing = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise InvalidArgumentError(f"{argument}: {name!r} cannot be imported: {error}") from error
        found[attribute] = thing() if isinstance(thing, type) else thing
    return found


def _size(value: str) -> int:
    if value not in TYPES:
        raise InvalidArgumentError(f"values: expected some of {', '.join(TYPES)}, found {value!r}")
    return np.dtype(TYPES[value]).itemsize
