"""The command encoder into which launches are recorded, instead of being submitted to the device: of a thread, or of a
page's task."""

from __future__ import annotations

from contextvars import ContextVar

_ENCODER: ContextVar[object | None] = ContextVar("encoder", default=None)

current_encoder = _ENCODER.get  # None where nothing is recorded


class recording_into:
    """A context manager: within it, launches are recorded into an encoder. A class: entering it takes less time than a
    generator."""

    __slots__ = ("_before", "_encoder")

    def __init__(self, encoder: object) -> None:
        self._encoder = encoder

    def __enter__(self) -> None:
        self._before = _ENCODER.set(self._encoder)

    def __exit__(self, *_: object) -> None:
        _ENCODER.reset(self._before)
