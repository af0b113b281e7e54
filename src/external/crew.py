"""The thread pool of a pipeline: its threads end before the pipeline does, whatever interrupts the caller.

Not by `concurrent.futures`: an exception that a signal handler raises in the main thread (Ctrl-C) leaks the locks of
its futures, executors and threads, so that others hang, or go on when their caller has long returned. Here the rules
of `targets/cpu/job.py` hold: the caller holds nothing that a thread waits for, what they share changes by one call into
C, and to wait is to look at lists that only grow. And where signals come so fast that whatever the
caller does to end its threads is interrupted, they end as soon as the caller's frame is gone.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Generic, ParamSpec, Self, TypeVar

import attrs

from ..types import real_threads
from ..types.import_lock import release_import_lock
from ..types.real_threads import SimpleQueue

T = TypeVar("T")
P = ParamSpec("P")

_WAITING = 2  # at most so many wait for one call: the caller, and the thread of the next piece


class Cancelled(Exception):
    """The outcome of a call that was not begun when the pipeline ended."""


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

    @property
    def is_begun(self) -> bool:
        return not self._functions

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
            self._news.get()

    def result(self) -> T:
        """Waits for the call; returns its result, or raises its exception."""
        self.wait()
        if self._failures:
            raise self._failures[0]
        return self._results[0]


class _Shared:
    """What threads share with their crew, and hold when it is gone."""

    def __init__(self, crew: Crew) -> None:
        self.calls: SimpleQueue[object] = SimpleQueue()  # anything but a call is the end
        self.came: list[None] = []  # a mark for each thread
        self.left: list[None] = []
        self.news: SimpleQueue[None] = SimpleQueue()
        self.is_closed = False
        self._crew = weakref.ref(crew, self.calls.put)  # the end comes of itself, by C, when the crew is freed

    def serve(self) -> None:
        """A thread's part."""
        self.came.append(None)  # before it looks whether all is over: else `close` might not wait for it
        while isinstance(call := self.calls.get(), Call):
            if self.is_closed or self._crew() is None:
                call.cancel()
            else:
                call.make()
        self.calls.put(None)  # for the next thread
        self.left.append(None)
        self.news.put(None)


class Crew:
    """A number of threads that make calls in the order in which they come. It is to be closed: as a context manager,
    which is entered several times, since an exception that is raised as a function begins skips all of an exit."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._started: list[None] = []
        self._shared = _Shared(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """Has a thread make a call; makes it at once where the system gives no thread."""
        call = Call(function)
        if len(self._started) < self._most and not self._shared.is_closed:
            self._started.append(None)
            if not _start(self._shared.serve):
                self._started.pop()
        if self._started:
            self._shared.calls.put(call)
        else:
            call.make()
        return call

    def close(self) -> None:
        """Cancels calls that are not begun, and waits for the others, even if interrupted meanwhile."""
        real_threads.persist(self._close)

    def _close(self) -> None:
        shared = self._shared
        shared.is_closed = True
        release_import_lock()
        shared.calls.put(None)
        # At the interpreter's end threads are gone, and none says so: what is left of a generator is closed then.
        while len(shared.left) < len(shared.came) and not sys.is_finalizing():
            shared.news.get()


def _start(function: Callable[[], object]) -> bool:
    """Starts a thread. False where the system gives none, or none would run."""
    # A thread that imports would wait for the caller's lock, and the caller for the thread.
    if sys.is_finalizing() or not release_import_lock():
        return False
    try:
        real_threads.start(function, ())
    except (RuntimeError, MemoryError):
        return False
    return True


def uninterrupted(function: Callable[[], T]) -> T:
    """Runs a function in another thread, completely, or not at all if an exception arrives before it begins. An
    exception that a signal handler raises meanwhile, which happens in the main thread only, is raised when the function
    has ended."""
    call = Call(function)
    try:
        try:
            _begin(call)
            call.wait()
        finally:
            _see_through(call, call.cancel)
    finally:
        _see_through(call, call.cancel)  # an exception raised as a function begins skips all of it
    return call.result()


def whole(function: Callable[P, T]) -> Callable[P, T]:
    """A function that is always run `uninterrupted`."""

    @wraps(function)
    def wrapped(*given: P.args, **named: P.kwargs) -> T:
        return uninterrupted(lambda: function(*given, **named))

    return wrapped


def always_uninterrupted(function: Callable[[], object]) -> None:
    """Runs a function completely, whatever a signal handler raises before or meanwhile, and then raises that."""
    call = Call(function)
    begin = partial(_begin, call)
    try:
        try:
            _see_through(call, begin)
        finally:
            _see_through(call, begin)  # an exception raised as a function begins skips all of it
    finally:
        _see_through(call, begin)
    call.result()


def _begin(call: Call[T]) -> None:
    """Starts a call that has not begun, in a thread in which no signal handler runs."""
    if call.is_begun:
        return
    if threading.current_thread() is not threading.main_thread() or not _start(call.make):
        call.make()


def _see_through(call: Call[T], step: Callable[[], None]) -> None:
    """Runs a step, and waits until a call has ended. What a signal handler raises meanwhile is raised then."""

    def end() -> None:
        step()
        call.wait()

    real_threads.persist(end)


@attrs.frozen(eq=False)
class OnFailure:
    """A context manager whose function is called when its block fails, whatever a signal handler raises meanwhile.
    Enter it several times, as in `with undo, undo`: if an exception arrives as an exit begins, the next exit runs."""

    function: Callable[[], object]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            always_uninterrupted(self.function)
