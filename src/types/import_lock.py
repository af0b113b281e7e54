"""CPython's global import lock, which an interrupted import leaves held."""

from __future__ import annotations

import _imp


def release_import_lock() -> None:
    """Releases the global import lock if an interrupt has left it held by this thread: one that strikes between
    CPython's acquisition and the `try` that releases it leaks it."""
    while _imp.lock_held():
        try:
            _imp.release_lock()
        except RuntimeError:  # held by another thread, which will release it
            return
