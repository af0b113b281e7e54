"""Calls made in other threads, in which no signal handler runs: Python runs them in the main thread.

Not by `concurrent.futures`: an exception that a handler raises in the main thread (Ctrl-C) leaks the locks of its
futures, executors and threads, so that others hang, or go on when their caller has long returned. Here the rules of
`targets/cpu/job.py` hold: the caller holds nothing that a thread waits for, what they share changes by one call into C,
and to wait is to look at lists that only grow.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from . import real_threads
from .import_lock import release_import_lock
from .real_threads import Empty, SimpleQueue

T = TypeVar("T")

_LOOK = 0.2  # seconds between two looks, where a wait cannot be interrupted
_WAITING = 2  # at most so many wait for one call: the caller, and the thread of a pipeline's next piece


class Cancelled(Exception):
    """The outcome of a call that was not begun when whoever wanted it had ended."""


class Call(Generic[T]):
    """A call that is made once, by the first thread that comes to it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._functions = {0: function}  # empty once it is called: calls may be held that hold large arguments
        self._results: list[T] = []  # one, or a failure
        self._failures: list[BaseException] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    @property
    def is_done(self) -> bool:
        return bool(self._results or self._failures)

    def begin(self) -> None:
        """Starts it, unless it has begun, in a thread in which no signal handler runs: this one, unless it is the main
        thread."""
        if self._functions and (
            threading.current_thread() is not threading.main_thread() or not start_thread(self.make)
        ):
            self.make()

    def make(self) -> None:
        """Makes it, unless somebody has begun to, or it is cancelled."""
        function = self._functions.pop(0, None)
        if function is not None:
            try:
                self._results.append(function())
            except BaseException as failure:
                self._failures.append(failure)
            self._tell()

    def cancel(self) -> None:
        """Cancels it, unless somebody has begun to make it."""
        if self._functions.pop(0, None) is not None:
            self._failures.append(Cancelled())
            self._tell()

    def _tell(self) -> None:
        for _ in range(_WAITING):
            self._news.put(None)

    def wait(self) -> None:
        while not self.is_done:
            with suppress(Empty):
                self._news.get(timeout=_LOOK)

    def result(self) -> T:
        """Waits for the call; returns its result, or raises its exception."""
        self.wait()
        if self._failures:
            raise self._failures[0]
        return self._results[0]


def uninterrupted(function: Callable[[], T], stop: Callable[[], object] = int, *, always: bool = False) -> T:
    """Runs a function in another thread, completely; but, unless it is to be run `always`, not at all if an exception
    arrives before it begins. An exception that a signal handler raises meanwhile, which happens in the main thread
    only, is raised when the function has ended: what `stop` does may have it end sooner."""
    real_threads.require_frames()
    call = Call(function)

    def end() -> None:
        stop()
        if always:
            call.begin()
        else:
            call.cancel()
        call.wait()

    try:
        try:
            call.begin()
            call.wait()
        finally:
            real_threads.persist(end)
    finally:
        real_threads.persist(end)  # an exception raised as a function begins skips all of it
    return call.result()


def start_thread(function: Callable[[], object]) -> bool:
    """Starts a thread. False where the system gives none, or none would run."""
    # A thread that imports would wait for the caller's lock, and the caller for the thread.
    return not sys.is_finalizing() and release_import_lock() and real_threads.started(function)
