"""Where generated and compiled kernels outlive a process: the user's cache directory."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path


def cache_directory() -> Path:
    """$GPUSORT_CACHE_DIR, else gpusort in $XDG_CACHE_HOME, else in ~/.cache.

    Where that cannot be written, a directory of this process alone: what lies in it is run, so never a
    shared one.
    """
    wanted = os.environ.get("GPUSORT_CACHE_DIR")
    if wanted:
        return _usable(wanted)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return _usable(os.path.join(base, "gpusort"))
    return _usable(os.path.join(os.path.expanduser("~"), ".cache", "gpusort"))


@lru_cache(maxsize=8)
def _usable(wanted: str) -> Path:
    """The directory, made if need be; or a temporary one in its place."""
    path = Path(wanted)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError:
        return Path(tempfile.mkdtemp(prefix="gpusort-"))


def write_atomically(path: Path, content: bytes) -> None:
    """Readers see the whole file or none, whatever other processes write at the same time."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
