"""A loop that is made of a text and kept: for tests of what is kept."""

from __future__ import annotations

from gpusort.targets.cpu.compiler.loading import Kernel, load_kernel, loaded


def load_anew(text: str) -> Kernel:
    """The text's kernel as a new process would get it: compiled, or found compiled by an earlier one."""
    loaded.kernels.clear()
    return load_kernel("kept", text, is_serial=True)
