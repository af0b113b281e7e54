"""`gpusort.export`: writes kernels and schedules for programs outside Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..types.errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..types.keys import SortableKey


class Format(Enum):
    """What an export is written as."""

    JS = "js"  # an ES module with types for TypeScript
    WGSL = "wgsl"  # plain texts, and all else as JSON


def export(
    operations: str | Sequence[str],
    out: str | PathLike[str],
    *,
    keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]] = ("u32", "f32"),
    values: Sequence[str] = (),
    format: Format | str = Format.JS,
    name: str = "gpusort",
    lanes: int = 0,
    unrolled: bool = False,
) -> tuple[Path, ...]:
    """Writes operations, such as "sort", into a folder; gives the files that it wrote.

    `keys` are types of elements, such as "u32" and "f32", or "module:attribute" for a key of one's own; or keys by
    names. `values` are types of what sorts take along, of which only the size counts. With `lanes`, kernels use
    subgroups, of at least so many lanes, which not every device has. `unrolled` writes loops over registers out, for
    drivers that do not. Lengths are known when the export runs, and no kernel is made for one.
    """
    from .writing import write_export

    if format not in (*Format, *(known.value for known in Format)):
        raise InvalidArgumentError(f"format: expected {' or '.join(known.value for known in Format)}, found {format!r}")
    return write_export(operations, Path(out), keys, values, Format(format), name, lanes, unrolled)
