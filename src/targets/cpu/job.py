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

import threading
from collections.abc import Callable
from itertools import count as counter

import numpy as np

from ...types import real_threads
from ...types.calls import uninterrupted
from ...types.real_threads import SimpleQueue
from ..addresses import address_of


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
            self._left.append(None)
            self._news.put(None)

    def end(self) -> None:
        """Cancels the job and waits for workers that are at a piece, even if interrupted meanwhile: also between the
        loop of `persist` and its `try`."""
        if not self._is_over or len(self._left) < len(self._came):
            real_threads.persist(lambda: real_threads.persist(self._wait))

    def _wait(self) -> None:
        self._is_over = True
        while len(self._left) < len(self._came):
            self._news.get()

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

    def serve(self) -> None:
        threading.current_thread().name = "gpusort-cpu"
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


def run_stoppable(work: Callable[[Flag], object]) -> None:
    """Calls `work` with a flag, at which it is to look from time to time: once it is set, work ends. It is done in a
    thread that no signal interrupts; where no thread can be had, as when the interpreter ends, by the caller."""
    stop = Flag()
    uninterrupted(lambda: work(stop), stop.set)
