"""A loop of Numba's that is made of a text and kept: for tests of what is kept."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from gpusort.targets.cuda.host_keeping import keep


def load_kernel(text: str) -> Any:
    """The text's `kernel` for its SIGNATURE: compiled, or found compiled by an earlier process."""
    module = ModuleType("gpusort_kept_text")
    sys.modules[module.__name__] = module  # a compiled loop finds its globals by the module's name
    exec(compile(text, "<text>", "exec"), module.__dict__)
    kernel: Any = keep(module.__dict__["kernel"], text)
    kernel.compile(module.__dict__["SIGNATURE"])
    kernel.disable_compile()
    return kernel
