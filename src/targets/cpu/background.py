"""Compiled code is loaded aside while NumPy serves: nobody waits for what saves some milliseconds a call.

A process's first long array is no reason to load anything: it may be the last. From the second on one thread loads
Numba and compiles what was asked for, or finds it in the cache; a call that comes before it is done takes NumPy's way,
which gives the same bits. With one thread alone (GPUSORT_THREADS=1) everything happens in the caller.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from ...forks import compiling
from ..apart import apart, import_apart
from .pool import thread_count

# What loads a job's code, one kernel after another: between two of them a fork, or the process's end, comes through.
Steps: TypeAlias = Callable[[], Iterator[object]]

_WORTH_WAITING = 1 << 28  # bytes: here compiled loops save about as much time as loading them takes
_AT_EXIT = 20.0  # seconds that the end of a process waits for one pass of the compiler


class _Stopped(BaseException):
    """Raised in the loading thread when the process ends."""


class Background:
    """Jobs of loading, each asked for by whoever could use what it loads."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.in_caller = False  # for tests and measurements of the compiled ways: whoever needs them loads them
        self._asked = False  # whether anything was asked for before
        self._done: dict[Hashable, bool] = {}  # whether it worked
        self.forget()

    def forget(self) -> None:
        """In a forked child there is no thread that loads, and none that holds the lock."""
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._jobs: deque[tuple[Hashable, Steps]] = deque()
        self._pending: set[Hashable] = set()
        self._thread: threading.Thread | None = None
        self.is_stopping = False

    def has(self, job: Hashable, steps: Steps, nbytes: int) -> bool:
        """Whether a caller with so many bytes should take the compiled way now. If not, it is being loaded."""
        done = self._done.get(job)
        if done is not None:
            return done
        if self.in_caller or nbytes >= _WORTH_WAITING:
            import_apart("numba")
            return True
        if not self._asked and "numba" not in sys.modules:
            self._asked = True
            return False
        if thread_count() < 2:
            import_apart("numba")
            return True
        self._ask(job, steps)
        return False

    def wait(self, timeout: float | None = None) -> bool:
        """Until all that was asked for is loaded. Whether it is."""
        return self._idle.wait(timeout)

    @contextmanager
    def off(self) -> Generator[None]:
        """Within this nothing is loaded aside: for measurements of the compiled ways."""
        before, self.in_caller = self.in_caller, True
        try:
            yield
        finally:
            self.in_caller = before

    def go_on(self) -> None:
        """Called by whoever compiles, now and then: ends the loading thread when the process ends."""
        if self.is_stopping and threading.current_thread() is self._thread:
            raise _Stopped

    def stop(self) -> None:
        """At the end of the process: LLVM must not be at work while its library is taken down."""
        thread, self.is_stopping = self._thread, True
        if thread is not None:
            thread.join(_AT_EXIT)

    def _ask(self, job: Hashable, steps: Steps) -> None:
        """By a thread that no signal handler runs in: events, and the start of threads, leave a lock taken where one
        raises."""
        if job not in self._pending:
            apart(lambda: self._begin(job, steps))

    def _begin(self, job: Hashable, steps: Steps) -> None:
        with self._lock:
            if job in self._pending or self.is_stopping:
                return
            self._pending.add(job)
            self._jobs.append((job, steps))
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="gpusort-loads", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is shutting down, or there are too many threads
                    self.forget()

    def _serve(self) -> None:
        """Loads until nothing is left to load."""
        while (found := self._next()) is not None:
            job, steps = found
            worked = self._worked(steps)
            with self._lock:
                self._pending.discard(job)
                self._done[job] = worked

    def _next(self) -> tuple[Hashable, Steps] | None:
        with self._lock:
            if self._jobs and not self.is_stopping:
                return self._jobs.popleft()
            self._thread = None
            self._idle.set()
            return None

    def _worked(self, steps: Steps) -> bool:
        try:
            loading = steps()
            while True:
                self.go_on()
                with compiling():
                    if next(loading, self) is self:
                        return True
        except _Stopped:
            return False
        except BaseException as failure:
            import logging

            self.failures.append(failure)
            logging.getLogger("gpusort").warning(
                "target 'cpu': compiled loops cannot be loaded, NumPy does without them", exc_info=failure
            )
            return False


background = Background()
atexit.register(background.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.forget)
