"""Writes the files of an export, in any of its formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..kernel import ir
from ..kernel.passes.safe import guarded_outside_ours
from ..types.errors import InvalidArgumentError
from .exported import exported_of
from .exporting import Format
from .kernels import ExportedKernel, wgsl_kernel
from .module import module_of, types_of
from .native import native_files
from .variants import Request


def write_export(
    operations: Sequence[str], request: Request, out: Path, format: Format, name: str, *, unrolled: bool, arch: str
) -> tuple[Path, ...]:
    """Generates all files before it writes any; returns their paths."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        raise InvalidArgumentError(f"name: expected a file's name without its ending, found {name!r}")
    if arch and format not in (Format.PTX, Format.CUBIN):
        raise InvalidArgumentError(
            f"arch: expected none for {format.value!r}, which is for any machine; found {arch!r}"
        )
    contents = _contents(tuple(dict.fromkeys(operations)), request, format, name, unrolled, arch)
    out.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (out / file).write_bytes(content)
    return tuple(out / file for file in contents)


def _contents(
    operations: Sequence[str], request: Request, format: Format, name: str, unrolled: bool, arch: str
) -> dict[str, bytes]:
    match format:
        case Format.JS:
            exported = exported_of(operations, request, unrolled=unrolled)
            return {f"{name}.js": module_of(exported).encode(), f"{name}.d.ts": types_of(exported).encode()}
        case Format.WGSL:
            exported = exported_of(operations, request, unrolled=unrolled)
            return native_files(exported, name, format, [kernel.text.encode() for kernel in exported.kernels.all])
        case Format.SPIRV | Format.MSL | Format.HLSL:
            from .naga import translated

            exported = exported_of(operations, request, make=partial(_bounds_checked, unrolled=unrolled))
            texts = [kernel.text for kernel in exported.kernels.all]
            return native_files(exported, name, format, translated(texts, format.value))
        case Format.PTX | Format.CUBIN:
            from .cuda import capability_of, machine_code, ptx_kernel, require_assembler

            capability = capability_of(arch)
            if format is Format.CUBIN:
                require_assembler()
            exported = exported_of(operations, request, make=partial(ptx_kernel, capability=capability))
            made = [kernel.text for kernel in exported.kernels.all]
            codes = [text.encode() if format is Format.PTX else machine_code(text, capability) for text in made]
            return native_files(exported, name, format, codes)


def _bounds_checked(program: ir.Program, unrolled: bool) -> ExportedKernel:
    """A kernel with bounds checks of its own, for APIs that have none (WebGPU checks indices)."""
    return wgsl_kernel(guarded_outside_ours(program), unrolled=unrolled)
