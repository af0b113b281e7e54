"""Runs invocations that wait for each other: each in a thread of its own, only one of them at any time.

The one that holds the baton runs until it waits or ends, then the next takes over, in the order of the
local ids. So a run is the same every time, and the plain Python of a kernel needs no locks.
"""

from __future__ import annotations

import ctypes
import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import attrs

from ...kernel.span import Span

_PATIENCE = 0.1  # seconds that an invocation gets to end by itself


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
        self._mine = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, name=f"invocation {local}", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return self._body is None

    def begin(self, body: Callable[[], None]) -> None:
        """Take up an invocation; it starts at the next `go_on`."""
        self._body = body

    def go_on(self, result: object = None) -> None:
        """Hand over the baton until the invocation waits or ends; `result` is what it waited for."""
        self.waits, self.result = None, result
        self._mine.release()
        self._back.acquire()

    def wait(self, what: str, operands: tuple[object, ...]) -> object:
        """In the invocation's thread: hand the baton back until there is a result."""
        self.waits = Wait(what, _caller(), operands)
        self._back.release()
        self._mine.acquire()
        if self._abandoned:
            raise _Abandoned
        return self.result

    def dismiss(self) -> None:
        """End the thread, wherever its invocation is: one that runs, and may never end by itself, is interrupted."""
        self._abandoned = True
        self._mine.release()
        self._thread.join(_PATIENCE)
        while self._thread.is_alive():
            identity = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(_Abandoned))
            self._thread.join(_PATIENCE)

    def _work(self) -> None:
        with suppress(_Abandoned):
            self._serve()

    def _serve(self) -> None:
        while True:
            self._mine.acquire()
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
            self._back.release()


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


def _caller() -> Span:
    """The line of the kernel, or of its helper, that waits: above `wait` and the method of the invocation."""
    frame = inspect.currentframe()
    for _ in range(3):
        frame = frame.f_back if frame is not None else None
    assert frame is not None, "wait is called by a method of the invocation, that by the kernel"
    return Span(frame.f_code.co_filename, frame.f_lineno)
