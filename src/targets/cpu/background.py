"""Background compilation: while compiled loops load in a thread, calls take NumPy's path, which gives the same bits.

A process's first long array is no reason to load anything: it may be the last. From the second on one thread loads LLVM
and compiles what was asked for, or finds it in the cache; a call that comes before it is done takes NumPy's way, which
gives the same bits. With one thread alone (GPUSORT_THREADS=1) everything happens in the caller.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TypeAlias

from ...forks import compiling, require_compiler
from ...types import real_threads
from ...types.import_lock import release_import_lock
from ..uninterrupted import import_uninterrupted
from .crew import load_crew
from .pool import thread_count

# What loads code, and what it is called with. It gives a kernel, or an iterator that loads one after the other: between
# two of them a fork, or the process's end, comes through.
Job: TypeAlias = tuple[Callable[..., object], *tuple[Hashable, ...]]

_COMPILER = "llvmlite.binding"

_WORTH_WAITING = 1 << 28  # bytes: here compiled loops save about as much time as loading them takes
_MANY = 1 << 10  # calls on so little that each saves some microseconds
_PAUSE = 0.001  # seconds between two looks whether all is loaded
_AT_EXIT = 20.0  # seconds that the end of a process waits for one kernel


class Background:
    """A queue of jobs that load compiled code, filled by calls that could use it."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.in_caller = False  # for tests and measurements of the compiled ways: whoever needs them loads them
        self._asked = False  # whether anything was asked for before
        self._done: dict[Job, bool] = {}  # whether it worked
        self._calls: dict[Job, int] = {}  # of those on little, while they are few; or as many, once it is loaded
        self.forget()

    def forget(self) -> None:
        """Resets the state in a forked child, where the loading thread does not exist."""
        self._lock = real_threads.Lock()
        self._pending: dict[Job, None] = {}  # in order, until they are done
        self._is_loading = False  # whether a thread is there
        self.is_stopping = False

    def has(self, job: Job, nbytes: int, *, is_little: bool = False) -> bool:
        """Whether a call on so many bytes should take the compiled path now; if not, its code is being loaded. Of calls
        on so little that each saves some microseconds only many are a reason to load anything."""
        done = self._done.get(job)
        if done is not None:
            return done
        if is_little:
            self._calls[job] = calls = self._calls.get(job, 0) + 1
            if calls <= _MANY and not self.in_caller:
                return False
        if self.in_caller or nbytes >= _WORTH_WAITING:
            return self._has_compiler(job)
        if not self._asked and _COMPILER not in sys.modules:
            self._asked = True
            return False
        if thread_count() < 2:
            self._calls[job] = _MANY  # what is loaded serves little ones, too
            return self._has_compiler(job)
        self._ask(job)
        return False

    def foresee(self, job: Job) -> None:
        """Loads what calls are going to need; these load it themselves where there is one thread alone."""
        if thread_count() > 1:
            self._ask(job)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until all requested code is loaded; returns whether it is."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self._pending and time.monotonic() < until:
            time.sleep(_PAUSE)
        return not self._pending

    @contextmanager
    def off(self) -> Generator[None]:
        """A context in which callers load code themselves: for tests and measurements of compiled paths."""
        before, self.in_caller = self.in_caller, True
        try:
            yield
        finally:
            self.in_caller = before

    def stop(self) -> None:
        """Stops loading at process exit: LLVM must not run while its library is unloaded."""
        self.is_stopping = True
        until = time.monotonic() + _AT_EXIT
        while self._is_loading and time.monotonic() < until:
            time.sleep(_PAUSE)

    def _has_compiler(self, job: Job) -> bool:
        """Whether the caller can compile what a job loads. It may not, as where memory is scarce, or after a fork."""
        try:
            require_compiler()
            import_uninterrupted(_COMPILER)
            return True
        except Exception as failure:
            self._done[job] = False
            self._tell(failure)
            return False

    def _ask(self, job: Job) -> None:
        """Enqueues a job. Safe to interrupt: the next request starts again; of two loading threads one leaves."""
        with self._lock:
            if self.is_stopping or job in self._done:  # by now
                return
            self._pending[job] = None
            if not self._is_loading:
                release_import_lock()
                # Not by `threading`, whose threads start by a lock that an interrupt would leak.
                real_threads.started(self._serve)

    def _serve(self) -> None:
        """The loading thread: runs jobs until the queue is empty."""
        with self._lock:
            if self._is_loading:
                return
            self._is_loading = True
        while (job := self._next()) is not None:
            worked = self._worked(job)
            with self._lock:
                self._pending.pop(job, None)
                self._done[job] = worked

    def _next(self) -> Job | None:
        with self._lock:
            if self._pending and not self.is_stopping:
                return next(iter(self._pending))
            self._is_loading = False
            return None

    def _worked(self, job: Job) -> bool:
        try:
            loading = chain(load_crew(), _steps(job))
            while not self.is_stopping:
                with compiling():
                    if next(loading, self) is self:
                        return True
            return False
        except BaseException as failure:
            self._tell(failure)
            return False

    def _tell(self, failure: BaseException) -> None:
        """Each failure once: a library that does not load is missed by every job."""
        import logging

        is_known = str(failure) in map(str, self.failures)
        self.failures.append(failure)
        if is_known:
            return
        logging.getLogger("gpusort").warning(
            "target 'cpu': compiled loops cannot be loaded, NumPy does without them", exc_info=failure
        )


def _steps(job: Job) -> Iterator[object]:
    load, *given = job
    loaded = load(*given)
    if isinstance(loaded, Iterator):
        yield from loaded


background = Background()
atexit.register(background.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.forget)
