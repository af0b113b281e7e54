"""Generated modules, run from memory; their compiled code is kept in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import attrs

from ...compile_log import log_slow
from ...forks import compiling
from ...types.errors import TargetUnavailableError
from ..gc_pause import gc_paused
from ..uninterrupted import import_uninterrupted

# A compiled kernel takes arrays and NumPy scalars by position; Numba checks them against its signature.
Kernel: TypeAlias = Callable[..., None]


@attrs.define
class _Loaded:
    """The kernels of this process, by module."""

    kernels: dict[str, Kernel] = attrs.field(factory=dict[str, Kernel])


_loaded = _Loaded()


def load_kernel(name: str, text: str) -> Kernel:
    """The function `kernel` of a generated module, compiled; or found compiled by an earlier process."""
    module = f"_gpusort_{name}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    with compiling():
        kernel = _loaded.kernels.get(module)
        if kernel is None:
            with log_slow("cpu", f"kernel {name!r}"), gc_paused():
                kernel = _loaded.kernels[module] = _compiled(module, text)
        return kernel


def _compiled(name: str, text: str) -> Kernel:
    """Runs the module, from memory: nobody can put other text in its place. Its kernel is compiled, or loaded."""
    if importlib.util.find_spec("numba") is None:
        raise TargetUnavailableError("the cpu target needs numba, which is not installed: pip install numba")
    import_uninterrupted("numba")
    from .keeping import keep

    module = ModuleType(name)
    place = f"<{name}>"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)  # for tracebacks
    sys.modules[name] = module  # a compiled kernel finds its globals by the module's name
    exec(compile(text, place, "exec"), module.__dict__)
    kernel: Any = keep(module.__dict__["kernel"], text)
    kernel.compile(module.__dict__["SIGNATURE"])
    kernel.disable_compile()
    loaded: Kernel = kernel
    return loaded
