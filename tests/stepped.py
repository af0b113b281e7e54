"""Launches whose kernels are programs already, as a target runs them: of a pass, or made by a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ref

from gpusort.kernel.ir import Program
from gpusort.kernel.launch import Buffer, Schedule, Step
from gpusort.targets import binding
from gpusort.targets.base import Target


def step_of(program: Program, buffers: Sequence[Buffer[Any]], values: Sequence[float] = (), groups: int = 1) -> Step:
    """A launch on buffers and with values in the program's order."""
    bound = dict(zip(program.storage, buffers, strict=True))
    return Step(program, bound, dict(zip(program.parameters, values, strict=True)), groups)


def run_step(target: Target, step: Step, arrays: Mapping[str, object]) -> None:
    """Runs it on the buffers that it uses, as if a schedule of one launch had been read to it."""
    schedule = Schedule(tuple(step.buffers.values()), ())
    binding._known[id(schedule), True] = ref(schedule), binding.Work(schedule.buffers, (step,)), ()
    target.run(schedule, arrays)
