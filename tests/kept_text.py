"""A loop that is made of a text and kept: for tests of what is kept."""

from __future__ import annotations

from gpusort.targets.cpu.compiler.loading import load_kernel, loaded
from gpusort.targets.cpu.loops import Kernel


def load_anew(text: str) -> Kernel:
    """The text's kernel as a new process would get it: compiled, or found compiled by an earlier one."""
    loaded.clear()
    return load_kernel("kept", text, is_serial=True)
