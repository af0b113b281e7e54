"""Cancels kernels that may never end: they poll a flag, which Ctrl-C or any exception in the caller sets.

Compiled code runs no signal handlers, so another thread runs it, and the caller waits where Python raises what there
is to raise. Then a word of memory tells the kernel to end, and the caller goes on only once it has: until then it
may write to the caller's arrays.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable

import numpy as np

_LOOK = 0.2  # seconds between two looks, where a wait cannot be interrupted


class _Run:
    """Work that another thread does, if it comes to that before it is called off."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self.failure: BaseException | None = None
        self._work = work
        self._stop = np.zeros(1, np.int64)
        self._first: dict[str, str] = {}  # who came first, the worker or the caller: that decides whether it is done
        self._ended: list[bool] = []
        self._bell = _thread.allocate_lock()
        self._bell.acquire()

    def work(self) -> None:
        """The other thread's part."""
        try:
            if self._comes_first("worker"):
                self._work(self._stop.ctypes.data)
        except BaseException as failure:
            self.failure = failure
        finally:
            self._ended.append(True)
            self._bell.release()

    def wait(self) -> None:
        while not self._ended:
            self._bell.acquire(timeout=_LOOK)

    def call_off(self) -> None:
        """Comes back when nothing is being done any more."""
        if self._ended:
            return
        self._stop[0] = 1
        if not self._comes_first("caller"):
            self.wait()

    def _comes_first(self, who: str) -> bool:
        """The same answer each time, to whoever is interrupted and asks again."""
        return self._first.setdefault("who", who) == who


def run_stoppable(work: Callable[[int], None]) -> None:
    """Calls `work` with the address of eight bytes that are 0 until it shall end."""
    run = _Run(work)
    try:
        try:
            _thread.start_new_thread(run.work, ())
        except (RuntimeError, MemoryError):  # the system gives no more threads: then nothing can call it off
            run.work()
        run.wait()
    finally:
        try:
            run.call_off()
        finally:
            run.call_off()  # interrupted once more
    if run.failure is not None:
        raise run.failure
