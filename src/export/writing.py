"""Checks what an export is asked for, and writes its files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError
from ..types.keys import SortableKey
from .exported import Exported, exported_of
from .exporting import Format
from .module import module_of, types_of
from .operations import OPERATIONS, TYPES, Asked, any_device
from .texts import texts_of


def write_export(
    operations: str | Sequence[str], out: Path, keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]],
    values: Sequence[str], format: Format, name: str, lanes: int, unrolled: bool,
) -> tuple[Path, ...]:  # fmt: skip
    """The files, each whole or not there."""
    wanted = (operations,) if isinstance(operations, str) else tuple(dict.fromkeys(operations))
    for operation in wanted:
        if operation not in OPERATIONS:
            raise InvalidArgumentError(f"operations: expected some of {', '.join(OPERATIONS)}, found {operation!r}")
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        raise InvalidArgumentError(f"name: expected a file's name without its ending, found {name!r}")
    sizes = tuple(dict.fromkeys(_size(value) for value in values))
    exported = exported_of(wanted, Asked(_keys(keys), sizes, any_device(lanes)), unrolled=unrolled)
    texts = _texts(exported, format, name)
    out.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (out / file).write_text(text, "utf-8")
    return tuple(out / file for file in texts)


def _texts(exported: Exported, format: Format, name: str) -> dict[str, str]:
    match format:
        case Format.JS:
            return {f"{name}.js": module_of(exported), f"{name}.d.ts": types_of(exported)}
        case Format.WGSL:
            return texts_of(exported, name)


def _keys(keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]]) -> dict[str, SortableKey[Any, Any]]:
    if isinstance(keys, Mapping):
        return dict(keys)
    return dict(_key(name) for name in keys)


def _key(name: str) -> tuple[str, SortableKey[Any, Any]]:
    if name in TYPES:
        return name, key_for(TYPES[name])
    if ":" not in name:
        raise InvalidArgumentError(
            f"keys: expected some of {', '.join(TYPES)}, or 'module:attribute' for a key of one's own, found {name!r}"
        )
    found: Any = attribute_of(name, "keys")
    return name.rpartition(":")[2], cast("SortableKey[Any, Any]", found() if isinstance(found, type) else found)


def attribute_of(name: str, argument: str) -> object:
    """What "module:attribute" names."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidArgumentError(f"{argument}: {name!r} cannot be imported: {error}") from error


def _size(value: str) -> int:
    if value not in TYPES:
        raise InvalidArgumentError(f"values: expected some of {', '.join(TYPES)}, found {value!r}")
    return np.dtype(TYPES[value]).itemsize
