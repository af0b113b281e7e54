"""No looking for garbage while a compiler works."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Generator[None]:
    """A compiler makes a hundred thousand objects for a kernel, most of which live until it is done. To look for cycles
    among them, again and again, takes a sixth of its time."""
    collected = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collected:
            gc.enable()
