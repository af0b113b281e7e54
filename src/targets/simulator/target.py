"""The target "simulator": interprets a kernel's IR in NumPy, and detects undefined behaviour. It reports data races,
barriers and subgroup operations in divergent control flow, out-of-bounds accesses, and uninitialised reads, each with
the kernel's source line and the invocations concerned. A kernel that runs without a report gives the same results on
every target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ...kernel import ir
from ...kernel.launch import Schedule, Step
from ...kernel.passes.walk import writers_in
from ...kernel.span import Span
from ...machine import Capability
from ..binding import work_of
from ..interpreters import Bytes, Interpreter, bytes_behind, starts_written
from ..needs import require_within
from .checks import Shape
from .lockstep import Lockstep
from .memory import Flags, Region
from .races import RaceDetector

_CHUNK = 1 << 16  # invocations that run in lockstep: enough to amortise NumPy's calls, few enough for the CPU's cache


# By name of the buffer: its memory, and for each byte whether it is initialised (None: all are).
_Bound: TypeAlias = Mapping[str, tuple[Bytes, Flags | None]]


class Simulator(Interpreter):
    """Simulates a device with subgroups of `subgroup_size` lanes. A loop that does not end raises IterationLimitError.
    Thread-safe."""

    def __init__(self, subgroup_size: int = 8) -> None:
        super().__init__("simulator", "lockstep interpreter", f"NumPy {np.__version__}", subgroup_size)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Checks all steps before anything is written."""
        work = work_of(schedule)
        # Kernels that need forward progress between workgroups are let through, though it is not guaranteed: the
        # workgroups of a chunk do advance together, and a spin loop without progress hits the iteration limit.
        capabilities = self.info.capabilities | {Capability.FORWARD_PROGRESS}
        for step in work.steps:
            require_within(step, self.info.limits, capabilities, f"target {self.info.name!r}")
        memory = bytes_behind(work, arrays)
        bound = {
            buffer.name: (memory[buffer.name], None if starts_written(buffer) else np.zeros(buffer.nbytes, np.uint8))
            for buffer in work.buffers
        }
        for step in work.steps:
            self._run_step(step, bound)

    def _run_step(self, step: Step, bound: _Bound) -> None:
        program = step.program
        storage = _storage_regions(step, bound)
        values = {parameter: np.full(1, value, parameter.type.dtype) for parameter, value in step.values.items()}
        sites: dict[int, Span] = {}
        together = max(1, _CHUNK // program.group_size)
        for first in range(0, step.groups, together):
            groups = min(together, step.groups - first)
            shape = Shape(first, groups, program.group_size, step.groups, self._subgroup_size)
            regions = {**storage, **_own_regions(program, shape)}
            Lockstep(shape, regions, values, sites).run(program)


def _storage_regions(step: Step, bound: _Bound) -> dict[str, Region]:
    """The kernel's storage. A buffer that is only read needs no race detector."""
    writers, regions = writers_in(step.program), dict[str, Region]()
    for memory, buffer in step.buffers.items():
        data, flags = bound[buffer.name]
        items = data.view(memory.type.dtype)
        written = None if flags is None or flags.all() else flags.view(f"u{memory.type.size}")
        detector = RaceDetector(len(items), step.groups == 1) if memory in writers else None
        regions[memory.name] = Region(items, len(items), written, detector)
    return regions


def _own_regions(program: ir.Program, shape: Shape) -> dict[str, Region]:
    """Workgroup memory and registers, which alone have a length; uninitialised, for each chunk of workgroups."""
    rows = {ir.Space.WORKGROUP: shape.groups, ir.Space.REGISTERS: shape.invocations}
    return {
        memory.name: Region.allocate(memory.type, memory.length, rows[memory.space], shape.invocations)
        for memory in program.memories
        if memory.length is not None
    }
