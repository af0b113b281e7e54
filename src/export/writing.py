"""Writes the files of an export."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..types.errors import InvalidArgumentError
from .exported import Exported, exported_of
from .exporting import Format
from .module import module_of, types_of
from .texts import texts_of
from .variants import Asked


def write_export(
    operations: Sequence[str], asked: Asked, out: Path, format: Format, name: str, *, unrolled: bool
) -> tuple[Path, ...]:
    """The files, once all of them are made."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        raise InvalidArgumentError(f"name: expected a file's name without its ending, found {name!r}")
    texts = _texts(exported_of(tuple(dict.fromkeys(operations)), asked, unrolled=unrolled), format, name)
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
