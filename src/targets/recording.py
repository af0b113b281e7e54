"""Where launches go while a caller records them: into an encoder of his own, and not to the device."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class _Recording(threading.local):
    """Of each thread."""

    encoder: object | None = None


_RECORDING = _Recording()


def current_encoder() -> object | None:
    """What this thread records into, if it does."""
    return _RECORDING.encoder


@contextmanager
def recording_into(encoder: object) -> Generator[None]:
    """Within it, what this thread runs on a device is recorded instead."""
    before, _RECORDING.encoder = _RECORDING.encoder, encoder
    try:
        yield
    finally:
        _RECORDING.encoder = before
