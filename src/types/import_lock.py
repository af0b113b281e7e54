"""CPython's global import lock, which an interrupted import leaves held."""

from __future__ import annotations

import _imp
import sys
from collections.abc import Iterator
from types import FrameType

_IMPORTER = "<frozen importlib._bootstrap>"
_HOLDERS = frozenset(("_find_spec", "_get_module_lock", "cb"))  # its functions that hold the lock for a while


def release_import_lock() -> bool:
    """Releases the global import lock if an interrupt has left it held by this thread: one that strikes between
    CPython's acquisition and the `try` that releases it leaks it. Returns whether this thread is without it then:
    False in what an import itself is interrupted by, a signal handler or a `__del__`, to which it is to return."""
    while _imp.lock_held():
        if any(f.f_code.co_name in _HOLDERS and f.f_code.co_filename == _IMPORTER for f in _frames()):
            return False
        try:
            _imp.release_lock()
        except RuntimeError:  # held by another thread, which will release it
            return True
    return True


def _frames() -> Iterator[FrameType]:
    """Those of this thread, from the caller's on."""
    # the ignore: the public name is inspect's, which takes long to load
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        yield frame
        frame = frame.f_back
