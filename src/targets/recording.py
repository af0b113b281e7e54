"""Where launches go while a caller records them: into an encoder of his own, and not to the device."""

from __future__ import annotations

import threading


class _Recording(threading.local):
    """Of each thread."""

    encoder: object | None = None


_RECORDING = _Recording()


def current_encoder() -> object | None:
    """What this thread records into, if it does."""
    return _RECORDING.encoder


class recording_into:
    """Within it, what this thread runs on a device is recorded instead. A class, which is entered sooner than a
    generator."""

    __slots__ = ("_before", "_encoder")

    def __init__(self, encoder: object) -> None:
        self._encoder = encoder

    def __enter__(self) -> None:
        self._before, _RECORDING.encoder = _RECORDING.encoder, self._encoder

    def __exit__(self, *_: object) -> None:
        _RECORDING.encoder = self._before
