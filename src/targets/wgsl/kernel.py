"""Lowers a program to WGSL, compiles it to a compute pipeline, and lays out its uniform parameters."""

from __future__ import annotations

import re
import struct
from typing import Literal, TypeAlias

import attrs

from ...kernel import ir
from ...kernel.launch import Step
from ...kernel.passes.overlay import overlaid
from ...kernel.verify import verify
from ...machine import Capability
from ...types.errors import CapabilityError, DeviceLostError, GpusortError
from ...types.params import WIDE_MASK_LANES
from ..needs import kernel_named, require_limits
from .device import Device
from .errors import COMPUTE, innermost, is_loss
from .legalize import Legalized, Origin, legalize
from .loops import has_loops, instrumented, unrolled
from .runtime import IN_BROWSER, wgpu
from .text import Shader, wgsl_of

PARAMETER_STEP = 256  # bytes: the alignment of dynamic offsets that every adapter allows


_Binding: TypeAlias = Literal["uniform", "storage", "read-only-storage"]


@attrs.frozen(eq=False)
class Kernel:
    """A compiled program. Its parameters are a uniform struct of 4-byte members, after a header of two (text.py)."""

    origins: tuple[Origin, ...]  # of the parameters behind the header
    reports_overrun: bool  # whether there is one more storage buffer, the overrun flag, behind the program's own
    layout: wgpu.GPUBindGroupLayout
    pipeline: wgpu.GPUComputePipeline

    def parameters(self, step: Step, groups_in_row: int) -> bytes:
        """The uniform struct's bytes for one launch."""
        words = [origin.word_in(step) for origin in self.origins]
        return struct.pack(f"<{2 + len(words)}I", step.groups, groups_in_row, *words)


def lower_to_wgsl(
    program: ir.Program, *, enable_line: bool = False, in_registers: bool = False, lanes: int = WIDE_MASK_LANES
) -> tuple[Legalized, Shader]:
    """Lowers a program: legalised to 32-bit words, and as WGSL. `in_registers` unrolls loops over register arrays,
    which GPU compilers would else keep in memory."""
    legalized = _legalized(program, in_registers, lanes)
    return legalized, _shader_of(legalized, enable_line)


def _legalized(program: ir.Program, in_registers: bool, lanes: int) -> Legalized:
    legalized = legalize(unrolled(program) if in_registers else program, lanes)
    return attrs.evolve(legalized, program=overlaid(legalized.program))


def _shader_of(legalized: Legalized, enable_line: bool) -> Shader:
    verify(legalized.program)
    return wgsl_of(legalized.program, enable_line=enable_line)


def compile_kernel(program: ir.Program, device: Device) -> Kernel:
    """Compiles a program to a pipeline. Raises CapabilityError that names the limit or capability it exceeds."""
    legalized = _legalized(program, in_registers=not device.cuts_loops, lanes=device.most_lanes)
    _require_fits(legalized.program, device)
    reports_overrun = device.cuts_loops and has_loops(program)
    if reports_overrun:
        legalized = attrs.evolve(legalized, program=instrumented(legalized.program))
    shader = _shader_of(legalized, enable_line=IN_BROWSER)
    if shader.uses_subgroups and Capability.SUBGROUPS not in device.info.capabilities:
        can_open = device.is_callers and not device.has_subgroups
        hint = "; open the device with required_features=['subgroup']" if can_open else ""
        raise CapabilityError(
            f"{kernel_named(program)} uses subgroup operations, which adapter {device.info.adapter!r} lacks{hint}"
        )
    handle, uses = device.handle, [shader.uses[memory] for memory in legalized.program.storage]
    kinds: list[_Binding] = ["uniform", *("storage" if use.needs_write else "read-only-storage" for use in uses)]
    layout = handle.create_bind_group_layout(
        entries=[
            {
                "binding": binding,
                "visibility": COMPUTE,
                "buffer": {"type": kind, "has_dynamic_offset": kind == "uniform"},
            }
            for binding, kind in enumerate(kinds)
        ]
    )
    pipeline = _pipeline(program, shader.text, handle, layout)
    return Kernel(legalized.origins, reports_overrun, layout, pipeline)


def _pipeline(
    program: ir.Program, text: str, device: wgpu.GPUDevice, layout: wgpu.GPUBindGroupLayout
) -> wgpu.GPUComputePipeline:
    try:
        module = device.create_shader_module(label=program.name, code=text)
        return device.create_compute_pipeline(
            label=program.name,
            layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module},
        )
    except wgpu.GPUError as error:
        if is_loss(error):
            raise DeviceLostError(f"kernel {program.name!r}: the device was lost while it was compiled") from error
        raise GpusortError(_refusal(program, text, error)) from error


def _refusal(program: ir.Program, text: str, error: Exception) -> str:
    """A message for a shader compilation error, with the line of WGSL it is about."""
    found = re.search(r":(\d+):(\d+)", str(error))
    place = ""
    if found and 0 < int(found[1]) <= text.count("\n"):
        place = f"\n    line {found[1]} of the generated WGSL: {text.splitlines()[int(found[1]) - 1].strip()}"
    return f"{program.span}: wgpu refuses the WGSL of kernel {program.name!r}: {innermost(error)}{place}"


def _require_fits(program: ir.Program, device: Device) -> None:
    limits, spaces = device.info.limits, (ir.Space.WORKGROUP, ir.Space.REGISTERS)
    workgroup, registers = ([4 * (m.length or 0) for m in program.memories if m.space is space] for space in spaces)
    require_limits(
        kernel_named(program), limits, f"adapter {device.info.adapter!r}", device.hint, group_size=program.group_size,
        workgroup_bytes=sum(workgroup), storage_buffers=len(program.storage), register_bytes=max(registers, default=0),
    )  # fmt: skip
