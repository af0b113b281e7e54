"""The thread-local command encoder into which launches are recorded, instead of being submitted to the device."""

from __future__ import annotations

import threading


class _Recording(threading.local):
    """Thread-local state."""

    encoder: object | None = None


_RECORDING = _Recording()


def current_encoder() -> object | None:
    """The encoder into which this thread records; None if it does not."""
    return _RECORDING.encoder


class recording_into:
    """A context manager: within it, this thread's launches are recorded into an encoder. A class: entering it takes
    less time than a generator."""

    __slots__ = ("_before", "_encoder")

    def __init__(self, encoder: object) -> None:
        self._encoder = encoder

    def __enter__(self) -> None:
        self._before, _RECORDING.encoder = _RECORDING.encoder, self._encoder

    def __exit__(self, *_: object) -> None:
        _RECORDING.encoder = self._before
