"""Interrupts wait while a rank is in a collective call.

A rank that Ctrl-C took out of the midst of one would leave the others in it for good: kernels of NCCL wait on the
device, and a process that waits for them can only be killed. So an interrupt is raised between collective calls, where
the rank can still tell the others. A second one is raised at once, for it may be that another process is gone, and
then the call never ends. The communicator is of no use afterwards.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]  # what it returns, Python drops


class Interrupts:
    """Of SIGINT, as the caller's handler raises them: from `held` on only within `let_in`, but for a second one."""

    def __init__(self) -> None:
        self._handler: Handler | None = None
        self._waiting: list[int] = []
        self._are_let_in = False

    @contextmanager
    def held(self) -> Generator[None]:
        """Raises at its end what waits then."""
        handler = signal.getsignal(signal.SIGINT)
        # Handlers run in the main thread, which alone may set them. One that is no function of Python's raises nothing.
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            yield
            return
        self._handler = handler
        own = self._come
        signal.signal(signal.SIGINT, own)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGINT) is own:
                signal.signal(signal.SIGINT, handler)
            self._raise_waiting()

    @contextmanager
    def let_in(self) -> Generator[None]:
        self._are_let_in = True
        try:
            self._raise_waiting()
            yield
        finally:
            self._are_let_in = False

    def _come(self, number: int, frame: FrameType | None) -> None:
        if self._handler is not None and (self._are_let_in or self._waiting):
            self._handler(number, frame)
        else:
            self._waiting.append(number)

    def _raise_waiting(self) -> None:
        if self._waiting and self._handler is not None:
            self._handler(self._waiting.pop(), None)
