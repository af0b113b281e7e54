"""Kernels on the CPU: read, checked, compiled by LLVM, and run on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from ...kernel import ir
from ...kernel.launch import Role, Schedule, Step
from ...kernel.passes.safe import Safety
from ..base import given_buffers
from ..binding import Work, host_arrays
from ..needs import kernel_named, require_at_most, require_within
from .compiler.loading import Kernel, load_kernel
from .limits import CAPABILITIES, LIMITS, REGISTER_BYTES, subgroup_size
from .prepared import CpuPrepared, Ready, bytes_of, run_launches
from .text import module_text

_NAME = "target 'cpu'"


class CpuKernels:
    """Those of one target, kept once they are compiled."""

    def __init__(self) -> None:
        self._kernels: dict[ir.Program, Kernel] = {}
        self._safety = Safety(subgroup_size, polls=True)

    def run(self, work: Work, arrays: Mapping[str, object]) -> None:
        """All is checked and compiled before anything is written."""
        safe = self._safe(work)
        given = host_arrays(safe, arrays)
        # Kernels load elements where these are aligned: others are copied, and what is written is copied back.
        unaligned = {name: array.copy() for name, array in given.items() if not array.flags.aligned}
        scratch = {b.name: np.empty(b.count, b.dtype) for b in safe.buffers if b.name not in given}
        bound = {**given, **scratch, **unaligned}
        compiled = self._compiled(safe)
        memories = ([bytes_of(bound[buffer.name]) for buffer in step.buffers] for step in safe.steps)
        run_launches(zip(compiled, memories, strict=True), asks=any(ready.asks for ready in compiled))
        for buffer in safe.buffers:
            if buffer.name in unaligned and buffer.role is not Role.INPUT:
                given[buffer.name][...] = unaligned[buffer.name]

    def prepare(self, schedule: Schedule) -> CpuPrepared:
        return CpuPrepared(self.ready, schedule, given_buffers(schedule))

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
    program = step.program
    bytes_of_space = dict.fromkeys(ir.Space, 0)
    for memory in program.memories:
        bytes_of_space[memory.space] += memory.type.size * (memory.length or 0)
    require_within(step, LIMITS, CAPABILITIES, _NAME, bytes_of_space[ir.Space.WORKGROUP])
    registers = program.group_size * bytes_of_space[ir.Space.REGISTERS]
    require_at_most(kernel_named(program), "bytes of registers in a workgroup", registers, REGISTER_BYTES, _NAME)
