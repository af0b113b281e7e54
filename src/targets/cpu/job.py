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

from collections.abc import Callable
from itertools import count as counter
from queue import SimpleQueue


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
        """Cancels the job and waits for workers that are at a piece, even if interrupted meanwhile."""
        struck: BaseException | None = None
        while True:
            try:
                struck = self._waited() or struck
                break
            except BaseException as failure:  # between the loops within and their `try`
                struck = failure
        if struck is not None:
            raise struck

    def _waited(self) -> BaseException | None:
        struck: BaseException | None = None
        while True:
            try:
                self._is_over = True
                while len(self._left) < len(self._came):
                    self._news.get()
                return struck
            except BaseException as failure:
                struck = failure

    def raise_failure(self) -> None:
        if self._failures:
            raise self._failures.pop()


class WholeJob(Job):
    """A job that workers do wholly or not at all; the caller only waits."""

    def take_pieces(self) -> None:
        """A worker that starts before cancellation finishes all pieces."""
        if self._is_over:
            return
        while (piece := next(self._numbers)) < self._count:
            self._work(piece)

    def wait(self) -> None:
        """Waits until at least one worker has come and all have left."""
        while not self._left or len(self._left) < len(self._came):
            self._news.get()
