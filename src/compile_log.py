"""Logs slow compilations to the logger "gpusort", at level INFO."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

_SLOW = 1.0  # seconds


@contextmanager
def log_slow(target: str, kernel: str) -> Generator[None]:
    """Times a compilation, and logs it if it was slow."""
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    if seconds >= _SLOW:
        import logging

        logging.getLogger("gpusort").info("target %r: compiling %s took %.1f s", target, kernel, seconds)
