"""Generated modules as files in the user's cache, where Numba keeps the compiled code beside them."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from ...types.errors import TargetUnavailableError
from ..apart import import_apart
from ..cache import cache_directory, write_atomically

# A compiled kernel takes arrays and NumPy scalars by position; Numba checks them against its signature.
Kernel: TypeAlias = Callable[..., None]


@attrs.define
class _Loaded:
    """The kernels of this process, by file."""

    kernels: dict[Path, Kernel] = attrs.field(factory=dict[Path, Kernel])
    loading: threading.Lock = attrs.field(factory=threading.Lock)

    def unlock(self) -> None:
        """In a forked child the lock may be held by a thread that does not exist there."""
        self.loading = threading.Lock()


_loaded = _Loaded()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loaded.unlock)


def load_kernel(name: str, text: str) -> Kernel:
    """The function `kernel` of a generated module, compiled; or found compiled by an earlier process."""
    content = text.encode()
    path = cache_directory() / "cpu" / f"{name}_{hashlib.sha256(content).hexdigest()[:20]}.py"
    with _loaded.loading:
        kernel = _loaded.kernels.get(path)
        if kernel is None:
            _ensure(path, content)
            kernel = _loaded.kernels[path] = _import(path)
        return kernel


def _import(path: Path) -> Kernel:
    if importlib.util.find_spec("numba") is None:
        raise TargetUnavailableError("the cpu target needs numba, which is not installed: pip install numba")
    import_apart("numba")
    try:
        return _execute(path)
    except Exception:
        # What Numba keeps may be damaged, or of a version that it cannot read: compile once more without it.
        kept = list(path.parent.glob(f"__pycache__/{path.stem}.*.nb[ci]"))
        if not kept:
            raise
        for file in kept:
            file.unlink(missing_ok=True)
        return _execute(path)


def _execute(path: Path) -> Kernel:
    """Runs the module: that compiles its kernel, or loads it from Numba's cache."""
    linecache.checkcache(str(path))
    name = f"_gpusort_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba's cache finds the module by its name
    spec.loader.exec_module(module)
    kernel: Kernel = module.kernel
    return kernel


def _ensure(path: Path, content: bytes) -> None:
    """The file with this content. A right one is left alone: Numba's cache looks at its time of change."""
    try:
        if path.read_bytes() == content:
            return
    except OSError:
        pass
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(path, content)
