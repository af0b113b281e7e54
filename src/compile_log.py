"""A line in the log for each compilation that a user may have wondered about."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

_WORTH_A_LINE = 1.0  # seconds


@contextmanager
def told(target: str, kernel: str) -> Generator[None]:
    """Around a compilation: tells the logger "gpusort" if it takes long."""
    start = time.perf_counter()
    yield
    tell(target, kernel, time.perf_counter() - start)


def tell(target: str, kernel: str, seconds: float) -> None:
    if seconds >= _WORTH_A_LINE:
        import logging

        logging.getLogger("gpusort").info("target %r: compiling %s took %.1f s", target, kernel, seconds)
