"""Launches whose kernels are programs already, as a target runs them: of a pass, or made by a test."""

from __future__ import annotations

from gpusort.kernel.launch import Step
from gpusort.targets.binding import Work


def work_of_steps(*steps: Step) -> Work:
    """The steps in order, on the buffers that they use."""
    buffers = {buffer.name: buffer for step in steps for buffer in step.buffers}
    return Work(tuple(buffers.values()), steps)
