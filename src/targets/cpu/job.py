"""A job of the thread pool: pieces that threads take one at a time (work stealing), safe against Ctrl-C in the caller.

Python runs signal handlers in the main thread, between two bytecodes; what a handler raises, Ctrl-C's
KeyboardInterrupt for one, comes from there. (CPython looks for signals when a Python function begins, after a call into
C and when a loop goes back; a debugger's trace function may raise at every bytecode.) So the caller of a job may be
stopped anywhere, also between a lock's `acquire` and the `try` that would release it, or between a queue's `get` and
the variable that would keep what it got. Hence the rules here:

- Nothing is held by the caller that another thread waits for. All that they share changes by one call into C
  (`append`, `next`, `put`) or one assignment.
- To wait is to look at counters that only grow. What comes through the queue is only a reason to look again: a message
  that an interrupt loses tells of a change that is there to be seen.
- Helpers are never interrupted: Python runs no handler in them.

Kernels that may never end are cancelled: they poll a flag, which Ctrl-C or any exception in the caller sets. Compiled
code runs no signal handlers, so another thread runs it, and the caller waits where Python raises what there is to
raise. Then a word of memory tells the kernel to end, and the caller goes on only once it has: until then it may write
to the caller's arrays.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count as counter
from typing import TypeAlias

import numpy as np

from ...types import real_threads
from ...types.real_threads import Empty, SimpleQueue
from ..addresses import address_of

_LOOK = 0.2  # seconds between two looks, where a wait cannot be interrupted


class Job:
    """Pieces 0 to count-1 of a job; a thread that is free takes the next (work stealing from a shared counter)."""

    def __init__(self, work: Callable[[int], None], count: int) -> None:
        self._work = work
        self._count = count
        self._numbers = counter()
        self._is_over = False  # nobody begins another piece
        self._came: list[None] = []  # a mark for each helper
        self._left: list[None] = []
        self._news: SimpleQueue[None] = SimpleQueue()  # a mark for each helper who left, to wake the caller
        self._failures: list[BaseException] = []

    def take_pieces(self) -> None:
        """Takes pieces until none is left or the job is cancelled."""
        while not self._is_over and (piece := next(self._numbers)) < self._count:
            self._work(piece)

    def help(self) -> None:
        """A worker thread's part. An exception of a piece is stored for the caller."""
        self._came.append(None)  # before it looks whether all is over: else the caller might not wait for it
        try:
            self.take_pieces()
        except BaseException as failure:
            self._failures.append(failure)
            self._is_over = True
        finally:
            self.leave()

    def leave(self) -> None:
        """A worker thread is done."""
        self._left.append(None)
        self._news.put(None)

    def wait(self) -> None:
        """Waits for a worker thread to do all of it."""
        while not self._left:
            with suppress(Empty):
                self._news.get(timeout=_LOOK)

    def cancel(self) -> None:
        """Nobody begins another piece."""
        self._is_over = True

    def end(self) -> None:
        """Cancels the job and waits for workers that are at a piece, even if interrupted meanwhile."""
        interruption: BaseException | None = None
        while True:
            try:
                interruption = self._waited() or interruption
                break
            except BaseException as failure:  # between the loops within and their `try`
                interruption = failure
        if interruption is not None:
            raise interruption

    def _waited(self) -> BaseException | None:
        interruption: BaseException | None = None
        while True:
            try:
                self.cancel()
                while len(self._left) < len(self._came):
                    self._news.get()
                return interruption
            except BaseException as failure:
                interruption = failure

    def see_through(self, take_part: Callable[[], None]) -> None:
        """Takes part in the job, and leaves it only when nobody is at it any more. An interrupt as `end` is called,
        before its own `try`, would skip it: so it is called once more, and twice more for interrupts in these calls, as
        where signals come faster than their handler returns."""
        real_threads.require_frames()
        try:
            try:
                try:
                    try:
                        take_part()
                    finally:
                        self.end()
                finally:
                    self.end()
            finally:
                self.end()
        finally:
            self.end()
        if self._failures:
            raise self._failures.pop()


class Helper:
    """A worker thread, which waits on a queue for jobs. Signal handlers never run in it."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self.is_busy = False

    def call(self, job: Job) -> None:
        self.is_busy = True  # by the caller: another who calls before the thread runs takes others
        self._jobs.put(job)

    def serve(self, name: str) -> None:
        threading.current_thread().name = name
        while True:
            self._jobs.get().help()
            self.is_busy = not self._jobs.empty()


# -- work that can be called off -----------------------------------------------------------------------------


class Flag:
    """Eight bytes that are 0 until work is to stop: compiled code is given their address."""

    def __init__(self) -> None:
        self._word = np.zeros(1, np.int64)
        self.address = address_of(self._word)

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
        return runner if real_threads.started(runner.serve, "gpusort-cpu-run") else None
