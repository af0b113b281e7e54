"""The public function `gpusort.export`, and the formats it writes."""

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
    """The format of an export. All but JS have a file for each kernel, and schedules as JSON and as a C header."""

    JS = "js"  # an ES module, with TypeScript declarations
    WGSL = "wgsl"
    SPIRV = "spirv"  # for Vulkan
    MSL = "msl"  # Metal Shading Language
    HLSL = "hlsl"  # for Direct3D
    PTX = "ptx"  # for the CUDA driver
    CUBIN = "cubin"  # CUDA machine code, for one architecture


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
    """Exports operations, such as "sort", to a folder; returns the paths of the files written.

    `keys` are element types, such as "u32" and "f32", or "module:attribute" for a key of your own; or a dict of keys by
    name. `values` are types of values that sorts carry along, of which only the size counts. `rows` are lengths of
    independent rows, in any number; "any" makes the length a run-time parameter too. `k` are the numbers that "top_k"
    selects. `monoids` are your own, for "reduce" and "scan"; `schedules` are functions from a number of elements to a
    Schedule, for "schedule". With `lanes`, kernels use subgroups of at least that many lanes, which not every device
    has. `unrolled` unrolls loops over registers, for drivers that do not. `arch` is the architecture for PTX and
    machine code, such as "sm_90"; by default the oldest supported one. The number of elements is a run-time parameter:
    no kernel is compiled for one length.
    """
    from .arguments import checked_request, listed
    from .writing import write_export

    try:
        chosen = Format(format)
    except ValueError as error:
        known = " or ".join(member.value for member in Format)
        raise InvalidArgumentError(f"format: expected {known}, found {format!r}") from error
    wanted = listed("operations", operations, str)
    request = checked_request(wanted, keys, values, monoids, schedules, lanes, rows, k)
    return write_export(wanted, request, Path(out), chosen, name, unrolled=unrolled, arch=arch)
