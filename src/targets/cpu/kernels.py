"""Kernels on the CPU: read, checked, compiled by LLVM, and run on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...algos.sizes import LARGEST_U32
from ...kernel import ir
from ...kernel.launch import Schedule, Step
from ...kernel.passes.safe import Safety
from ...types.errors import CapabilityError
from ..base import given_buffers
from ..binding import Work, host_arrays
from ..needs import require_needs
from .binding import Binding
from .compiler.loading import Kernel, load_kernel
from .limits import CAPABILITIES, LIMITS, REGISTER_BYTES, subgroup_size
from .prepared import CpuPrepared, Ready, bytes_of, run_launches
from .text import module_text


class CpuKernels:
    """Those of one target, kept once they are compiled."""

    def __init__(self) -> None:
        self._kernels: dict[ir.Program, Kernel] = {}
        self._safety = Safety(subgroup_size, polls=True)

    def run(self, work: Work, arrays: Mapping[str, object]) -> None:
        """All is checked and compiled before anything is written."""
        safe = self._safe(work)
        binding = Binding.of(safe, host_arrays(safe, arrays))
        compiled = self._compiled(safe)
        memories = ([bytes_of(binding.arrays[buffer.name]) for buffer in step.buffers] for step in safe.steps)
        run_launches(zip(compiled, memories, strict=True), asks=any(ready.asks for ready in compiled))
        binding.hand_back()

    def prepare(self, schedule: Schedule) -> CpuPrepared:
        return CpuPrepared(self, schedule, given_buffers(schedule))

    def ready(self, work: Work) -> tuple[Ready, ...]:
        """All launches, checked and compiled."""
        return self._compiled(self._safe(work))

    def source(self, step: Step) -> str:
        return module_text(self._safety.safe(step).program)

    def _safe(self, work: Work) -> Work:
        for step in work.steps:
            _check_limits(step)
        return attrs.evolve(work, steps=tuple(self._safety.safe(step) for step in work.steps))

    def _compiled(self, safe: Work) -> tuple[Ready, ...]:
        return tuple(Ready.of(self._kernel(step.program), step) for step in safe.steps)

    def _kernel(self, program: ir.Program) -> Kernel:
        kernel = self._kernels.get(program)
        if kernel is None:
            kernel = self._kernels[program] = load_kernel(
                program.name, module_text(program), is_serial=program.group_size == 1
            )
        return kernel


def _check_limits(step: Step) -> None:
    """Refuses what this target does not go as far as, naming the kernel and the limit."""
    program = step.program
    kernel = f"{program.span}: kernel {program.name!r}"
    require_needs(kernel, program.needs, LIMITS, CAPABILITIES, "target 'cpu'")
    shared = [m for m in program.memories if m.space is ir.Space.WORKGROUP]
    registers = program.group_size * sum(
        m.type.size * (m.length or 0) for m in program.memories if m.space is ir.Space.REGISTERS
    )
    for what, asked, most in (
        ("invocations in a workgroup", program.group_size, LIMITS.group_size),
        (
            "bytes of workgroup memory",
            sum(m.type.size * (m.length or 0) for m in shared),
            LIMITS.workgroup_bytes,
        ),
        ("bytes of registers in a workgroup", registers, REGISTER_BYTES),
        ("workgroups", step.groups, LIMITS.groups),
        ("storage buffers", len(step.buffers), LIMITS.storage_buffers),
        (
            "bytes in a storage buffer",
            max((b.nbytes for b in step.buffers), default=0),
            LIMITS.storage_bytes,
        ),
        ("elements in a storage buffer", max((b.count for b in step.buffers), default=0), LARGEST_U32),
    ):
        if asked > most:
            raise CapabilityError(f"{kernel} asks for {asked} {what}, target 'cpu' has {most}")
