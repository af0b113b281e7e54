"""Exports kernels as PTX or cubin, for programs that use the CUDA driver API."""

from __future__ import annotations

import re

from ..kernel import ir
from ..kernel.passes.safe import guarded_outside_ours
from ..targets.cuda.compile import (
    INSTALL,
    ComputeCapability,
    assemble,
    compile_ptx,
    entry_name,
    has_assembler,
    text_of,
)
from ..targets.cuda.shipped import SHIPPED_FOR, portable
from ..targets.kernel_text import stored_type
from ..targets.wgsl.legalize import Origin
from ..targets.wgsl.uses import uses_of
from ..types.errors import InvalidArgumentError, TargetUnavailableError
from ..types.layout import Type
from .kernels import ExportedKernel

_WORD = 4


def capability_of(name: str) -> ComputeCapability:
    """Parses an architecture such as "sm_90"; the oldest supported one if empty. Raises InvalidArgumentError."""
    found = re.fullmatch(r"sm_(\d+)(\d)", name or f"sm_{SHIPPED_FOR[0]}{SHIPPED_FOR[1]}")
    if found is None or (int(found[1]), int(found[2])) < SHIPPED_FOR:
        raise InvalidArgumentError(f"arch: expected a card of sm_80 or later, e.g. 'sm_90', found {name!r}")
    return int(found[1]), int(found[2])


def ptx_kernel(program: ir.Program, capability: ComputeCapability) -> ExportedKernel:
    """Compiles a program to PTX. The kernel takes addresses of its storage, then its parameters, without a header."""
    tested = guarded_outside_ours(program)
    text, uses, ptx = text_of(tested), uses_of(tested), compile_ptx(tested, capability)
    if capability == SHIPPED_FOR:
        ptx = portable(ptx)
    fields = [(f"{memory.name}_length", Type.U32, Origin(length_of=memory)) for memory in text.lengths]
    fields += [(p.name, stored_type(p.type), Origin(p)) for p in tested.parameters]
    words = [
        Origin(origin.parameter, word, origin.length_of) for _, type, origin in fields for word in range(_words(type))
    ]
    return ExportedKernel(
        entry_name(tested), ptx, tested.group_size, text.workgroup_bytes,
        tuple(uses[memory].needs_write for memory in tested.storage),
        tuple((name, _NAMES[type]) for name, type, _ in fields), tested.needs,
        any(needs.lanes for needs in tested.needs), tuple(words),
    )  # fmt: skip


_NAMES: dict[Type, str] = {type: f"{type.dtype.kind}{type.bits}" for type in Type if type is not Type.BOOL}


def _words(type: Type) -> int:
    """The 32-bit words of a parameter."""
    return -(-type.size // _WORD)


def require_assembler() -> None:
    """Raises TargetUnavailableError if nvJitLink is not installed."""
    if not has_assembler():
        raise TargetUnavailableError(f"format: machine code is made by NVIDIA's assembler, nvjitlink: {INSTALL}")


def machine_code(ptx: str, capability: ComputeCapability) -> bytes:
    """Assembles PTX to a cubin."""
    return assemble(ptx, capability)[0]
