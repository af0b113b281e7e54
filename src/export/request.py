"""What an export is asked for: the arguments of `export`, checked, with names of types, keys, monoids and schedules
resolved to objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar, cast

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..kernel.launch import Schedule
from ..machine import Capability, TargetInfo
from ..targets.wgsl.defaults import DEFAULTS
from ..types.checks import check_like, index_of, require_taken
from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.keys import SortableKey
from ..types.monoids import Monoid

E = TypeVar("E")

# Names of element types, and NumPy's codes for them.
TYPES = {
    name: f"{name[0]}{int(name[1:]) // 8}"
    for name in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
}
USUAL_NAME = "gpusort"  # of an export's files
MOST_LANES = 64  # the largest subgroup of any device


class Format(Enum):
    """The format of an export. All but JS have a file for each kernel, and schedules as JSON and as a C header."""

    JS = "js"  # an ES module, with TypeScript declarations
    WGSL = "wgsl"
    SPIRV = "spirv"  # for Vulkan
    MSL = "msl"  # Metal Shading Language
    HLSL = "hlsl"  # for Direct3D
    PTX = "ptx"  # for the CUDA driver
    CUBIN = "cubin"  # CUDA machine code, for one architecture


class Rows(Enum):
    """Rows of any length, known only when the export runs."""

    ANY = "any"


@attrs.frozen
class Request:
    keys: Mapping[str, SortableKey[Any, Any]]  # by the name of their type
    values: tuple[int, ...]  # sizes of values in bytes
    info: TargetInfo
    monoids: Mapping[str, Monoid[Any, Any]] = attrs.field(factory=dict[str, Monoid[Any, Any]])  # the user's, by name
    rows: tuple[int | Rows, ...] = ()  # lengths of independent rows
    k: tuple[int, ...] = ()  # of top_k
    schedules: Mapping[str, Callable[[int], Schedule]] = attrs.field(factory=dict[str, Callable[[int], Schedule]])


def any_device(lanes: int) -> TargetInfo:
    """A device with WebGPU's default limits; with subgroups of at least `lanes` lanes if not 0."""
    limits = attrs.evolve(DEFAULTS, subgroup_size=lanes, most_subgroup_size=max(lanes, 32)) if lanes else DEFAULTS
    return TargetInfo("webgpu", "any device", "", limits, frozenset({Capability.SUBGROUPS} if lanes else ()))


def checked_request(
    operations: Sequence[str], keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]], values: Sequence[str],
    monoids: Sequence[str] | Mapping[str, Monoid[Any, Any]],
    schedules: Sequence[str] | Mapping[str, Callable[[int], Schedule]], lanes: object, rows: Sequence[int | str] = (),
    k: int | Sequence[int] = (),
) -> Request:  # fmt: skip
    """Checks and resolves the arguments. Raises InvalidArgumentError."""
    lanes = index_of("lanes", lanes)
    values, rows, k = listed("values", values, str), listed("rows", rows, int, str), listed("k", k, int)
    own: dict[str, dict[str, Any]] = {
        "monoids": named("monoids", monoids),
        "schedules": named("schedules", schedules),
    }
    for what, given, example, takers in (
        ("monoids", own["monoids"], "'module:attribute'", ("reduce", "scan")),
        ("schedules", own["schedules"], "'module:attribute'", ("schedule",)),
        ("k", k, "10", ("top_k",)),
        ("values", values, None, ("sort",)),
        ("rows", rows, None, ("sort", "argsort", "top_k")),
    ):
        taking = [operation for operation in operations if operation in takers]
        if taking and example and not given:
            raise InvalidArgumentError(f"{what}: expected some for {taking[0]!r}, e.g. {example}")
        if given:
            require_taken(what, ", ".join(map(str, given)), takers, operations)
    for name, monoid in own["monoids"].items():
        check_like("monoid", monoid, f"monoids: {name!r}")
    for name, schedule in own["schedules"].items():
        if not callable(schedule):
            raise InvalidArgumentError(f"schedules: expected a function of a length for {name!r}, found {schedule!r}")
    if lanes < 0 or lanes > MOST_LANES or lanes & (lanes - 1):
        raise InvalidArgumentError(f"lanes: expected 0, or a power of two up to {MOST_LANES}, found {lanes}")
    for value in values:
        if value not in TYPES:
            raise InvalidArgumentError(f"values: expected some of {', '.join(TYPES)}, found {value!r}")
    sizes = tuple(dict.fromkeys(np.dtype(TYPES[value]).itemsize for value in values))
    lengths = tuple(map(_row, rows))
    return Request(_keys(keys), sizes, any_device(lanes), own["monoids"], lengths, k, own["schedules"])


def listed(argument: str, given: object, *kinds: type[E]) -> tuple[E, ...]:
    """What may be one value of these kinds, or several, as a tuple without duplicates; NumPy's integers as plain ints.
    Raises UnsupportedTypeError for anything else."""

    def plain(one: object) -> E:
        found = index_of(argument, one) if isinstance(one, int) or np.issubdtype(type(one), np.integer) else one
        return cast("E", found)

    if isinstance(one := plain(given), kinds):
        return (one,)
    found = tuple(map(plain, cast("Iterable[object]", given))) if isinstance(given, Iterable) else None
    if found is None or not all(isinstance(one, kinds) for one in found):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UnsupportedTypeError(f"{argument}: expected {expected}, or a sequence of these, found {given!r}")
    return tuple(dict.fromkeys(found))


def _row(row: int | str) -> int | Rows:
    if row == Rows.ANY.value:
        return Rows.ANY
    if isinstance(row, str) or not 1 <= row <= LARGEST_U32:
        raise InvalidArgumentError(f"rows: expected lengths of at least 1 and below 2**32, or 'any', found {row!r}")
    return row


def _keys(keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]]) -> dict[str, SortableKey[Any, Any]]:
    if isinstance(keys, Mapping):
        found = named("keys", keys)
    else:
        found = dict[str, Any]()
        for name in listed("keys", keys, str):
            if name in TYPES:
                found[name] = key_for(TYPES[name])
            elif ":" in name:
                found |= named("keys", (name,))
            else:
                raise InvalidArgumentError(
                    f"keys: expected some of {', '.join(TYPES)}, or 'module:attribute' for one's own, found {name!r}"
                )
    for name, key in found.items():
        check_like("key", key, f"keys: {name!r}")
        if name in TYPES and key != key_for(TYPES[name]):
            raise InvalidArgumentError(f"keys: {name!r} is the name of a type; expected another one for {key}")
    return found


def named(argument: str, things: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Objects by name. "module:attribute" is imported, and instantiated if it is a class."""
    if isinstance(things, Mapping):
        listed(argument, things, str)  # the names
        return dict(things)
    found: dict[str, Any] = {}
    for name in listed(argument, things, str):
        module, colon, attribute = name.partition(":")
        if not colon or not module or module.startswith("."):
            raise InvalidArgumentError(f"{argument}: expected 'module:attribute', found {name!r}")
        try:
            thing = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise InvalidArgumentError(f"{argument}: {name!r} cannot be imported: {error}") from error
        try:
            found[attribute] = thing() if isinstance(thing, type) else thing
        except TypeError as error:
            message = f"{argument}: expected an object, or a class that takes no arguments: {error}"
            raise InvalidArgumentError(message) from error
    return found
