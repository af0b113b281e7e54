"""`gpusort.export`: writes kernels and schedules for programs outside Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..types.errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..kernel.launch import Schedule
    from ..types.keys import SortableKey
    from ..types.monoids import Monoid


class Format(Enum):
    """What an export is written as."""

    JS = "js"  # an ES module with types for TypeScript
    WGSL = "wgsl"  # plain texts, and all else as JSON and as a C header; so are those below
    SPIRV = "spirv"  # for Vulkan
    MSL = "msl"  # Metal's language
    HLSL = "hlsl"  # Direct3D's
    PTX = "ptx"  # for CUDA's driver
    CUBIN = "cubin"  # the same as machine code, for one kind of card


def export(
    operations: str | Sequence[str],
    out: str | PathLike[str],
    *,
    keys: Sequence[str] | Mapping[str, SortableKey[Any, Any]] = ("u32", "f32"),
    values: Sequence[str] = (),
    rows: Sequence[int | str] = (),
    k: int | Sequence[int] = (),
    monoids: Sequence[str] | Mapping[str, Monoid[Any, Any]] = (),
    schedules: Sequence[str] | Mapping[str, Callable[[int], Schedule]] = (),
    format: Format | str = Format.JS,
    name: str = "gpusort",
    lanes: int = 0,
    unrolled: bool = False,
    arch: str = "",
) -> tuple[Path, ...]:
    """Writes operations, such as "sort", into a folder; gives the files that it wrote.

    `keys` are types of elements, such as "u32" and "f32", or "module:attribute" for a key of one's own; or keys by
    names. `values` are types of what sorts take along, of which only the size counts. `rows` are lengths of rows that
    are sorted each for itself, any number of them; "any" is for lengths that are not known yet. `k` says how many
    "top_k" selects. `monoids` are one's own, for "reduce" and "scan"; `schedules` are functions from a number of
    elements to a Schedule, for "schedule". With `lanes`, kernels use subgroups, of at least so many lanes, which not
    every device has. `unrolled` writes loops over registers out, for drivers that do not. `arch` is the card that PTX
    or machine code is for, as "sm_90"; else the oldest that there are kernels for. Lengths are known when the export
    runs, and no kernel is made for one.
    """
    from .asking import asked_for
    from .writing import write_export

    if format not in (*Format, *(known.value for known in Format)):
        raise InvalidArgumentError(f"format: expected {' or '.join(known.value for known in Format)}, found {format!r}")
    wanted = (operations,) if isinstance(operations, str) else operations
    ks = (k,) if isinstance(k, int) else k
    asked = asked_for(wanted, keys, values, monoids, schedules, lanes, rows, ks)
    return write_export(wanted, asked, Path(out), Format(format), name, unrolled=unrolled, arch=arch)
