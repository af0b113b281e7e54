"""Threads of a pipeline, which end before the pipeline does, whatever strikes the caller.

Not by `concurrent.futures`: an exception that a signal handler raises in the main thread (Ctrl-C) leaks the locks of
its futures, executors and threads, so that others hang, or go on when their caller has long returned. Here the rules
of `targets/cpu/job.py` hold: the caller holds nothing that a thread waits for, what they share changes by one call into
C, and to wait is to look at lists that only grow.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

import attrs

from ..types.import_lock import release_import_lock

T = TypeVar("T")

_WAITING = 2  # at most so many wait for one call: the caller, and the thread of the next piece


class Cancelled(Exception):
    """The outcome of a call that was not begun when the pipeline ended."""


@attrs.frozen(eq=False)
class _Outcome(Generic[T]):
    values: tuple[T, ...]  # one, or none after an exception
    failure: BaseException | None = None


class Call(Generic[T]):
    """A call that a thread is to make."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._functions = [function]  # empty once it is called: calls may be held that hold large arguments
        self._outcome: list[_Outcome[T]] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    @property
    def is_done(self) -> bool:
        return bool(self._outcome)

    def make(self) -> None:
        try:
            self._end(_Outcome((self._functions.pop()(),)))
        except BaseException as failure:
            self._end(_Outcome((), failure))

    def cancel(self) -> None:
        self._functions.clear()
        self._end(_Outcome((), Cancelled()))

    def _end(self, outcome: _Outcome[T]) -> None:
        self._outcome.append(outcome)
        for _ in range(_WAITING):
            self._news.put(None)

    def wait(self) -> None:
        while not self._outcome:
            self._news.get()

    def result(self) -> T:
        """Waits for the call; returns its result, or raises its exception."""
        self.wait()
        outcome = self._outcome[0]
        if outcome.failure is not None:
            raise outcome.failure
        return outcome.values[0]


class _Work(Protocol):
    """A call, whatever its result is."""

    def make(self) -> None: ...
    def cancel(self) -> None: ...


class Crew:
    """A number of threads that make calls in the order in which they come. It is to be closed."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._calls: SimpleQueue[_Work | None] = SimpleQueue()
        self._is_over = False
        self._wanted: list[None] = []  # marks for threads: told to start, come, and left
        self._came: list[None] = []
        self._left: list[None] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """Has a thread make a call; makes it at once where the system gives no thread."""
        call = Call(function)
        if len(self._wanted) < self._most and not self._is_over:
            self._wanted.append(None)
            release_import_lock()  # else a thread that imports would wait for the caller, and the caller for the thread
            try:
                _thread.start_new_thread(self._serve, ())
            except (RuntimeError, MemoryError):
                self._wanted.pop()
        if self._wanted:
            self._calls.put(call)
        else:
            call.make()
        return call

    def _serve(self) -> None:
        self._came.append(None)  # before it looks whether all is over: else `close` might not wait for it
        while not self._is_over and (call := self._calls.get()) is not None:
            self._make_or_cancel(call)
        self._left.append(None)
        self._news.put(None)

    def _make_or_cancel(self, call: _Work) -> None:
        if self._is_over:
            call.cancel()
        else:
            call.make()

    def close(self) -> None:
        """Cancels calls that are not begun, and waits for the others, even if interrupted meanwhile."""
        struck: BaseException | None = None
        while True:
            try:
                self._close()
                break
            except BaseException as failure:
                struck = failure
        if struck is not None:
            raise struck

    def _close(self) -> None:
        self._is_over = True
        release_import_lock()
        for _ in self._wanted:
            self._calls.put(None)
        while len(self._left) < len(self._came):
            self._news.get()
        while not self._calls.empty():
            call = self._calls.get_nowait()
            if call is not None:
                call.cancel()


def uninterrupted(function: Callable[[], T]) -> T:
    """Makes a call, wholly or, if something strikes before it is begun, not at all. What strikes the caller meanwhile
    is raised when the call has ended: signal handlers run in the main thread alone, and another makes it."""
    crew = Crew(int(threading.current_thread() is threading.main_thread()))
    try:
        try:
            return crew.submit(function).result()
        finally:
            crew.close()
    finally:
        crew.close()  # what strikes as a function begins skips all of it


def always_uninterrupted(function: Callable[[], object]) -> None:
    """Makes a call that may be made twice: wholly, whatever strikes the caller before or meanwhile, and then raises
    that."""
    done: list[None] = []

    def make() -> None:
        if not done:
            function()
            done.append(None)

    try:
        try:
            _persistently(make)
        finally:
            _persistently(make)  # what strikes as a function begins skips all of it
    finally:
        _persistently(make)


def _persistently(function: Callable[[], None]) -> None:
    """Waits for a call in another thread, also one that is not begun when something strikes."""
    crew = Crew(int(threading.current_thread() is threading.main_thread()))
    calls: list[Call[None]] = []
    struck: BaseException | None = None
    try:
        while not (calls and calls[0].is_done):
            try:
                calls = calls or [crew.submit(function)]
                calls[0].wait()
            except BaseException as failure:
                struck = failure
        calls[0].result()
    finally:
        crew.close()
    if struck is not None:
        raise struck


@attrs.frozen(eq=False)
class OnFailure:
    """A context manager whose function is called when its block fails, whatever strikes meanwhile. To be entered
    several times, as in `with undo, undo`: what strikes as an exit begins is left to the next."""

    function: Callable[[], object]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            always_uninterrupted(self.function)
