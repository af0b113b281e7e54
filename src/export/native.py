"""Emits an export for native programs: a file for each kernel, and schedules both as JSON and as a C header."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from .c_header import header_of
from .kernels import ExportedKernel
from .plans import Exported, Json, Plan, plain
from .request import Format

_SUFFIXES = {
    Format.WGSL: "wgsl", Format.SPIRV: "spv", Format.MSL: "metal", Format.HLSL: "hlsl", Format.PTX: "ptx",
    Format.CUBIN: "cubin",
}  # fmt: skip
_WORD, _METAL_STEP = 4, 16
_TERMS = (
    "terms are numbers, 'n', 'r' for how many rows there are, or [operator, term, term] with '/' rounded down and '^' "
    "rounded up; "
)
_OF_SHADERS = "the first two parameters are a launch's workgroups, and how many of them are in a row of the dispatch"
_OF_CUDA = (
    "a kernel's arguments are the addresses of its buffers, then its parameters: each begins at its offset among a "
    "launch's parameters, which are given as words of 32 bits"
)


def native_files(exported: Exported, name: str, format: Format, codes: Sequence[bytes]) -> dict[str, bytes]:
    """The files' contents by name. `codes` are the kernels', in order."""
    kernels = exported.kernels.all
    files = [f"{kernel.name}_{number}.{_SUFFIXES[format]}" for number, kernel in enumerate(kernels)]
    is_cuda = format in (Format.PTX, Format.CUBIN)
    document = {
        "about": _TERMS + (_OF_CUDA if is_cuda else _OF_SHADERS),
        "format": format.value,
        "kernels": [
            {"file": file, **_described(kernel, is_cuda), **(_of_metal(kernel, code) if format is Format.MSL else {})}
            for file, kernel, code in zip(files, kernels, codes, strict=True)
        ],
        "schedules": {
            name: [*map(_plan, plans)] for schedule in exported.schedules for name, plans in schedule.by_name.items()
        },
    }
    return {
        **dict(zip(files, codes, strict=True)),
        f"{name}.json": f"{json.dumps(document, indent=1)}\n".encode(),
        f"{name}.h": header_of(exported, name, format.value, files, 0 if is_cuda else 2).encode(),
    }


def _described(kernel: ExportedKernel, is_cuda: bool) -> dict[str, object]:
    parameters: list[Json] = [
        {"name": field, "type": type, "offset": _WORD * place}
        for (field, type), place in zip(kernel.parameters, kernel.places, strict=True)
    ]
    bindings: list[str] = [*([] if is_cuda else ["uniform"]), *kernel.bindings]
    return {
        "entry": kernel.name,
        "workgroup_size": kernel.group_size,
        "workgroup_bytes": kernel.workgroup_bytes,
        "subgroups": kernel.uses_subgroups,
        "lanes": kernel.lanes,
        "bindings": bindings,
        "parameters": parameters,
    }


def _of_metal(kernel: ExportedKernel, code: bytes) -> dict[str, object]:
    """What a Metal host needs besides: lengths of threadgroup memories, and the binding of the buffer sizes."""
    lengths = map(int, re.findall(r"^var<workgroup> \w+: array<[^,]*, (\d+)>;", kernel.text, re.MULTILINE))
    memories = [-(-_WORD * length // _METAL_STEP) * _METAL_STEP for length in lengths]
    has_sizes = b"_mslBufferSizes" in code
    return {"threadgroup_memories": memories, "sizes_binding": 1 + len(kernel.writes) if has_sizes else None}


def _plan(plan: Plan) -> dict[str, object]:
    return {
        "first": plan.first,
        "last": plan.last,
        "buffers": [
            {"name": buffer.name, "role": buffer.role.value, "bytes": plain(buffer.bytes)} for buffer in plan.buffers
        ],
        "launches": [
            {
                "kernel": launch.kernel,
                "buffers": [plan.buffers[number].name for number in launch.buffers],
                "groups": plain(launch.groups),
                "parameters": [plain(word) for word in launch.words],
            }
            for launch in plan.launches
        ],
    }
