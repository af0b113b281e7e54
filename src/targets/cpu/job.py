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
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count as counter

from ...types.real_threads import Empty, SimpleQueue

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
