"""The public function `gpusort.export`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

import attrs

from ..kernel import ir
from ..kernel.launch import Schedule
from ..kernel.passes.safe import guarded_outside_ours
from ..targets.cuda.compile import INSTALL, assemble, has_assembler
from ..targets.cuda.text import STATIC_BYTES
from ..targets.wgsl.defaults import DEFAULTS
from ..types.checks import checked_flag, checked_path
from ..types.errors import InvalidArgumentError, TargetUnavailableError, UnsupportedTypeError
from ..types.keys import SortableKey
from ..types.monoids import Monoid
from .kernels import ExportedKernel, capability_of, ptx_kernel, wgsl_kernel
from .module import module_of, types_of
from .naga import translated
from .native import native_files
from .operations import OPERATIONS
from .plans import exported_of
from .request import USUAL_NAME, Format, Request, checked_request, listed


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
    name: str = USUAL_NAME,
    lanes: int = 0,
    unrolled: bool = False,
    arch: str = "",
) -> tuple[Path, ...]:
    """Exports operations, such as "sort", to the folder `out`; returns the paths of the files written.

    `format` is "js" for a web page; "wgsl", "spirv", "msl", "hlsl", "ptx" or "cubin" for a native program. `name` is
    that of the files.

    `keys` are element types, such as "u32" and "f32", or "module:attribute" for a key of your own; or a dict of keys by
    name. `values` are types of values that sorts carry along, of which only the size counts. `rows` are lengths of
    independent rows, in any number; "any" makes the length a run-time parameter too. `k` are the numbers that "top_k"
    selects. `monoids` are your own, for "reduce" and "scan"; `schedules` are functions from a number of elements to a
    Schedule, for "schedule". With `lanes`, kernels use subgroups of at least that many lanes, which not every device
    has. `unrolled` unrolls loops over registers, for drivers that do not. `arch` is the architecture for PTX and
    machine code, such as "sm_90"; by default the oldest supported one. The number of elements is a run-time parameter:
    no kernel is compiled for one length.
    """
    try:
        chosen = Format(format)
    except ValueError as error:
        known = " or ".join(member.value for member in Format)
        raise InvalidArgumentError(f"format: expected {known}, found {format!r}") from error
    wanted = listed("operations", operations, str)
    for operation in wanted:
        if operation not in OPERATIONS:
            raise InvalidArgumentError(f"operations: expected some of {', '.join(OPERATIONS)}, found {operation!r}")
    request = checked_request(wanted, keys, values, monoids, schedules, lanes, rows, k)
    for parameter, given in (("name", name), ("arch", arch)):
        if not isinstance(cast(object, given), str):
            raise UnsupportedTypeError(f"{parameter}: expected a text, found {given!r}")
    unrolled = checked_flag("unrolled", unrolled)
    folder = Path(checked_path("out", out))
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        raise InvalidArgumentError(f"name: expected a file's name without its ending, found {name!r}")
    is_cuda = chosen in (Format.PTX, Format.CUBIN)
    if arch and not is_cuda:
        raise InvalidArgumentError(
            f"arch: expected none for {chosen.value!r}, which is for any machine; found {arch!r}"
        )
    if unrolled and is_cuda:
        raise InvalidArgumentError(f"unrolled: expected False for {chosen.value!r}, whose compiler unrolls; found True")
    for monoid in request.monoids:
        if monoid in OPERATIONS:
            raise InvalidArgumentError(f"monoids: {monoid!r} is the name of an operation; expected another one")
    contents = _contents(wanted, request, chosen, name, unrolled, arch)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, ValueError) as error:  # the last of a character that no name has
        raise InvalidArgumentError(f"out: expected a folder, or what can become one, found {out!r}") from error
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return tuple(folder / file for file in contents)


def _contents(
    operations: Sequence[str], request: Request, format: Format, name: str, unrolled: bool, arch: str
) -> dict[str, bytes]:
    """All files by name, before any is written."""
    capability, is_cuda = capability_of(arch), format in (Format.PTX, Format.CUBIN)
    # Of every card, whose kernels keep apart what legalized ones lay into one memory.
    limits = attrs.evolve(DEFAULTS, workgroup_bytes=STATIC_BYTES) if is_cuda else DEFAULTS
    if format is Format.CUBIN and not has_assembler():
        raise TargetUnavailableError(f"format: machine code is made by NVIDIA's assembler, nvjitlink: {INSTALL}")

    def made(program: ir.Program) -> ExportedKernel:
        if is_cuda:
            return ptx_kernel(program, capability)
        if format not in (Format.JS, Format.WGSL):  # the others' APIs make no bounds checks, as WebGPU does
            program = guarded_outside_ours(program)
        return wgsl_kernel(program, unrolled=unrolled)

    exported = exported_of(operations, request, made, limits)
    if not exported.schedules:
        raise InvalidArgumentError("operations: expected some, and keys, monoids or schedules; found nothing to export")
    texts = [kernel.text for kernel in exported.kernels.all]
    match format:
        case Format.JS:
            return {f"{name}.js": module_of(exported).encode(), f"{name}.d.ts": types_of(exported).encode()}
        case Format.SPIRV | Format.MSL | Format.HLSL:
            codes = translated(texts, format.value)
        case Format.CUBIN:
            codes = [assemble(text, capability)[0] for text in texts]
        case _:
            codes = [text.encode() for text in texts]
    return native_files(exported, name, format, codes)
