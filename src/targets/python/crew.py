"""Runs invocations that wait for each other: each in a thread of its own, only one of them at any time.

The one that holds the baton runs until it waits or ends, then the next takes over, in the order of the
local ids. So a run is the same every time, and the plain Python of a kernel needs no locks.
"""

from __future__ import annotations

import _thread
import ctypes
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import attrs

from ...kernel.span import Span
from ...types.errors import CapabilityError


class _Abandoned(BaseException):
    """Thrown into the invocations that still wait once another one has failed."""


@attrs.frozen
class Wait:
    """What an invocation waits for: the barrier, or a subgroup operation with what it brings along."""

    what: str
    span: Span
    operands: tuple[object, ...] = ()

    @property
    def is_barrier(self) -> bool:
        return self.what == "barrier"


class Member:
    """One thread, which runs one invocation after another as the workgroups come."""

    def __init__(self, local: int) -> None:
        self.local = local
        self.waits: Wait | None = None
        self.result: object = None
        self.error: BaseException | None = None
        self._body: Callable[[], None] | None = None
        self._abandoned = False
        # The baton goes through queues: to put and to get is one call into C each. A semaphore of `threading` is
        # Python code, in which an interrupt may leave a lock taken for ever; so is the start of its threads.
        self._mine: SimpleQueue[None] = SimpleQueue()
        self._back: SimpleQueue[None] = SimpleQueue()
        self._thread: int | None = None  # once it runs
        self._is_gone = False

    def start(self) -> None:
        try:
            _thread.start_new_thread(self._come_and_go, ())
        except RuntimeError as error:  # as in WebAssembly
            raise CapabilityError(
                "target 'python' runs invocations that wait for each other in threads, of which none can be started "
                f"here ({error}); use target='simulator'"
            ) from error

    @property
    def ended(self) -> bool:
        return self._body is None

    def begin(self, body: Callable[[], None]) -> None:
        """Take up an invocation; it starts at the next `go_on`."""
        self._body = body

    def go_on(self, result: object = None) -> None:
        """Hand over the baton until the invocation waits or ends; `result` is what it waited for."""
        self.waits, self.result = None, result
        self._mine.put(None)
        self._back.get()

    def wait(self, what: str, operands: tuple[object, ...]) -> object:
        """In the invocation's thread: hand the baton back until there is a result."""
        self.waits = Wait(what, _caller(), operands)
        self._back.put(None)
        self._mine.get()
        if self._abandoned:
            raise _Abandoned
        return self.result

    def abandon(self) -> None:
        """Have the thread end, wherever its invocation is: in a wait, or in a loop that has no end."""
        self._abandoned = True
        self._mine.put(None)
        is_running = self.waits is None and not self.ended and not self._is_gone
        if self._thread is not None and is_running:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(_Abandoned))

    def await_end(self) -> None:
        """A thread that comes later finds that it is abandoned, and goes."""
        while self._thread is not None and not self._is_gone:
            self._back.get()

    def _come_and_go(self) -> None:
        sys.settrace(threading.gettrace())  # as threads of `threading` do: for debuggers
        try:
            try:
                self._thread = threading.get_ident()
                self._work()
            finally:
                self._go()
        except _Abandoned:  # which may strike anywhere here
            self._go()

    def _go(self) -> None:
        self._is_gone = True
        self._back.put(None)

    def _work(self) -> None:
        while True:
            self._mine.get()
            if self._abandoned or self._body is None:
                return
            try:
                self._body()
            except _Abandoned:
                return
            except BaseException as error:  # the caller's thread raises it
                self.error = error
            finally:
                self._body = None
            self._back.put(None)


def run_group(members: Sequence[Member], resolve: Callable[[Sequence[Member]], dict[int, object]]) -> None:
    """Run one workgroup. `resolve` is asked when all wait or have ended: who goes on, with what result."""
    results: dict[int, object] = {member.local: None for member in members}
    while results:
        for member in members:
            if member.local in results:
                member.go_on(results[member.local])
                if member.error is not None:
                    raise member.error
        results = resolve(members)


def dismiss(members: Sequence[Member]) -> None:
    """Ends their threads and waits for that, whatever strikes meanwhile: they may still write what the caller gave."""
    struck: BaseException | None = None
    while True:
        try:
            for member in members:
                member.abandon()
            for member in members:
                member.await_end()
            break
        except BaseException as failure:
            struck = failure
    if struck is not None:
        raise struck


def _caller() -> Span:
    """The line of the kernel, or of its helper, that waits: above `wait` and the method of the invocation."""
    frame = inspect.currentframe()
    for _ in range(3):
        frame = frame.f_back if frame is not None else None
    assert frame is not None, "wait is called by a method of the invocation, that by the kernel"
    return Span(frame.f_code.co_filename, frame.f_lineno)
