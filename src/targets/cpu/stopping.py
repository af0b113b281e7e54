"""Cancels kernels that may never end: they poll a flag, which Ctrl-C or any exception in the caller sets.

Compiled code runs no signal handlers, so another thread runs it, and the caller waits where Python raises what there
is to raise. Then a word of memory tells the kernel to end, and the caller goes on only once it has: until then it
may write to the caller's arrays.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

_LOOK = 0.2  # seconds between two looks, where a wait cannot be interrupted


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


class _Run:
    """Work that another thread does, if it comes to that before it is called off."""

    def __init__(self, work: Work) -> None:
        self.failure: BaseException | None = None
        self._work = work
        self._stop = Flag()
        self._first: dict[str, str] = {}  # who came first, the worker or the caller: that decides whether it is done
        self._ended: list[bool] = []
        self._bell = _thread.allocate_lock()
        self._bell.acquire()

    def work(self) -> None:
        """The other thread's part."""
        try:
            if self._comes_first("worker"):
                self._work(self._stop)
        except BaseException as failure:
            self.failure = failure

    def tell(self) -> None:
        """The other thread is done."""
        self._ended.append(True)
        self._bell.release()

    def wait(self) -> None:
        while not self._ended:
            self._bell.acquire(timeout=_LOOK)

    def call_off(self) -> None:
        """Comes back when nothing is being done any more."""
        if self._ended:
            return
        self._stop.set()
        if not self._comes_first("caller"):
            self.wait()

    def _comes_first(self, who: str) -> bool:
        """The same answer each time, to whoever is interrupted and asks again."""
        return self._first.setdefault("who", who) == who


class _Runner:
    """A thread, asleep until it is given a run: to wake it takes a quarter of the time that starting one does."""

    def __init__(self) -> None:
        self.runs: SimpleQueue[_Run] = SimpleQueue()

    def serve(self) -> None:
        threading.current_thread().name = "gpusort-cpu-run"
        while True:
            run = self.runs.get()
            run.work()
            _asleep.append(self)  # before the caller knows, who may come again at once
            run.tell()
            del run  # and the arrays that it holds


_asleep: list[_Runner] = []  # whoever takes one of them has it alone
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_asleep.clear)  # where these threads do not exist


def run_stoppable(work: Work) -> None:
    """Calls `work` with a flag, at which it is to look from time to time: once it is set, work ends.

    Where no thread can be had, as when the interpreter ends, the caller works, and cannot be interrupted.
    """
    run = _Run(work)
    try:
        if _is_taken(run):
            run.wait()
        else:
            work(Flag())
            return
    finally:
        try:
            run.call_off()
        finally:
            run.call_off()  # interrupted once more
    if run.failure is not None:
        raise run.failure


def _is_taken(run: _Run) -> bool:
    """Gives a run to a thread that is asleep, or to a new one. What interrupts this may leave one that nobody calls."""
    if sys.is_finalizing():
        return False
    try:
        runner = _asleep.pop()
    except IndexError:
        runner = _Runner()
        try:
            _thread.start_new_thread(runner.serve, ())
        except (RuntimeError, MemoryError):
            return False
    runner.runs.put(run)
    return True
