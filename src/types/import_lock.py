"""CPython's global import lock, which an interrupted import leaves held."""

from __future__ import annotations

import _imp


def release_import_lock() -> None:
    """Releases the global import lock if an interrupt has left it held by this thread.

    CPython acquires it before the `try` that releases it: a signal handler that raises between the two leaks it, and no
    other thread could import any more.
    """
    while _imp.lock_held():
        try:
            _imp.release_lock()
        except RuntimeError:  # held by another thread, which will release it
            return
