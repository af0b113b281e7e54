"""Cancels kernels that may never end: they poll a flag, which Ctrl-C or any exception in the caller sets.

Compiled code runs no signal handlers, so another thread runs it, and the caller waits where Python raises what there
is to raise. Then a word of memory tells the kernel to end, and the caller goes on only once it has: until then it
may write to the caller's arrays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...types import real_threads
from .job import Helper, Job


class Flag:
    """Eight bytes that are 0 until work is to stop: compiled code is given their address."""

    def __init__(self) -> None:
        self._word = np.zeros(1, np.int64)
        self.address: int = self._word.ctypes.data

    def set(self) -> None:
        self._word[0] = 1

    def is_set(self) -> bool:
        return bool(self._word[0])


Work: TypeAlias = Callable[[Flag], None]


class _Run(Job):
    """Work that another thread does, if it comes to that before it is called off."""

    def __init__(self, work: Work, runner: Helper) -> None:
        self._stop, self._runner = Flag(), runner
        super().__init__(lambda _: work(self._stop), 1)

    def cancel(self) -> None:
        super().cancel()
        self._stop.set()

    def leave(self) -> None:
        _idle.append(self._runner)  # before the caller knows, who may come again at once
        super().leave()


_idle: list[Helper] = []  # whoever takes one of them has it alone
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # where these threads do not exist


def run_stoppable(work: Work) -> None:
    """Calls `work` with a flag, at which it is to look from time to time: once it is set, work ends. Where no thread
    can be had, as when the interpreter ends, the caller works, and cannot be interrupted."""
    runner = _runner()
    if runner is None:
        work(Flag())
        return
    run = _Run(work, runner)

    def wait() -> None:
        runner.call(run)
        run.wait()

    run.see_through(wait)


def _runner() -> Helper | None:
    """An idle thread: to wake it takes a quarter of the time that starting one does. An interrupt here may leave one
    that nobody calls."""
    if sys.is_finalizing():
        return None
    try:
        return _idle.pop()
    except IndexError:
        runner = Helper()
        try:
            real_threads.start(runner.serve, ("gpusort-cpu-run",))
        except (RuntimeError, MemoryError):
            return None
        return runner
