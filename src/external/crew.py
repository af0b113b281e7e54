"""The thread pool of a pipeline: its threads end before the pipeline does, whatever interrupts the caller.

The rules are those of `types/calls.py`. And where signals come so fast that whatever the caller does to end its threads
is interrupted, they end as soon as the caller's frame is gone.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec, TypeVar

import attrs

from ..types import real_threads
from ..types.calls import Call, start_thread, uninterrupted
from ..types.import_lock import release_import_lock
from ..types.real_threads import SimpleQueue

T = TypeVar("T")
P = ParamSpec("P")


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


class Crew(AbstractContextManager["Crew"]):
    """A number of threads that make calls in the order in which they come. It is to be closed: as a context manager,
    which is entered several times, since an exception that is raised as a function begins skips all of an exit."""

    def __init__(self, threads: int) -> None:
        real_threads.require_frames()
        self._most = threads
        self._started: list[None] = []
        self._shared = _Shared(self)

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """Has a thread make a call; makes it at once where the system gives no thread."""
        call = Call(function)
        if len(self._started) < self._most and not self._shared.is_closed:
            self._started.append(None)
            if not start_thread(self._shared.serve):
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


def whole(function: Callable[P, T]) -> Callable[P, T]:
    """A function that is always run `uninterrupted`."""

    @wraps(function)
    def wrapped(*given: P.args, **named: P.kwargs) -> T:
        return uninterrupted(lambda: function(*given, **named))

    return wrapped


@attrs.frozen(eq=False)
class OnFailure:
    """A context manager whose function is called when its block fails, whatever a signal handler raises meanwhile.
    Enter it several times, as in `with undo, undo`: if an exception arrives as an exit begins, the next exit runs."""

    function: Callable[[], object]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            uninterrupted(self.function, always=True)
