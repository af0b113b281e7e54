"""Runs the invocations of a workgroup that use barriers or subgroup operations: threads as coroutines. Each invocation
has a thread, but only one runs at a time, until it synchronises or ends; then the next, in the order of local ids. So
runs are deterministic, and kernels need no locks. Each wakes the next itself: by way of the caller's thread it would be
two switches between threads, which take most of a run's time."""

from __future__ import annotations

import ast
import ctypes
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType, MethodType

import attrs

from ...kernel.captures import Captures
from ...kernel.ir import Builtin
from ...kernel.source import Source, source_of
from ...kernel.span import KernelError, Span
from ...types import real_threads
from ...types.errors import CapabilityError
from ...types.real_threads import Empty, SimpleQueue, persist

_LOOK = 0.2  # seconds between two looks at what signals have come


class _Cancelled(BaseException):
    """Raised in the threads of other invocations once one has failed."""


@attrs.frozen
class Wait:
    """What an invocation waits for: the barrier, or a subgroup operation with its operands."""

    what: str
    span: Span
    operands: tuple[object, ...] = ()

    @property
    def is_barrier(self) -> bool:
        return self.what == "barrier"


class InvocationThread:
    """A thread that runs the invocations of one local id, workgroup after workgroup. `caller`: what all threads of the
    workgroup tell the caller's thread by."""

    def __init__(self, local: int, caller: SimpleQueue[None]) -> None:
        self.local = local
        self.waits: Wait | None = None
        self.result: object = None  # of the operation that it waits for
        self.error: BaseException | None = None
        self.body: Callable[[], None] | None = None  # the invocation, until it has ended
        self._cancelled = False
        # These are C code. The primitives of `threading` are Python code, in which an interrupt could
        # leave a lock held for ever.
        self._resumed: SimpleQueue[None] = SimpleQueue()
        self._exited: SimpleQueue[None] = SimpleQueue()
        self._caller = caller
        self.next: InvocationThread | None = None  # the one that goes on when this waits or ends, if any
        self._thread: int | None = None  # its identifier, once it runs
        self._has_exited = False

    def start(self) -> None:
        try:
            real_threads.start(self._run, ())
        except (RuntimeError, MemoryError) as error:  # as in WebAssembly
            raise CapabilityError(
                "target 'python' runs invocations that wait for each other in threads, of which no more can be started "
                f"here ({error}); use target='simulator'"
            ) from error

    def resume(self) -> None:
        """Lets the invocation run until it waits or ends."""
        self.waits = None
        self._resumed.put(None)

    def _hand_on(self) -> None:
        """Resumes the next invocation, or the caller where there is none or this one has failed."""
        if self.next is None or self.error is not None:
            self._caller.put(None)
        else:
            self.next.resume()

    def wait(self, what: str, operands: tuple[object, ...]) -> object:
        """Called in the thread: suspends the invocation until `resume`, and returns its result."""
        self.waits = Wait(what, _caller(), operands)
        self._hand_on()
        self._resumed.get()
        if self._cancelled:
            raise _Cancelled
        return self.result

    def cancel(self) -> None:
        """Makes the thread exit, whether its invocation waits or runs, even in an endless loop."""
        self._cancelled = True
        self._resumed.put(None)
        is_running = self.waits is None and self.body is not None and not self._has_exited
        if self._thread is not None and is_running:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(_Cancelled))

    def join(self) -> None:
        """Waits for the thread's exit; not for one that has not begun to run, which will exit at once."""
        while self._thread is not None and not self._has_exited:
            _has_news(self._exited)

    def _run(self) -> None:
        sys.settrace(threading.gettrace())  # as threads of `threading` do, for debuggers
        try:
            try:
                self._thread = real_threads.identity()
                self._run_invocations()
            finally:
                self._exit()
        except _Cancelled:  # asynchronous: it may be raised anywhere here
            self._exit()

    def _exit(self) -> None:
        self._has_exited = True
        self._exited.put(None)

    def _run_invocations(self) -> None:
        while True:
            self._resumed.get()
            if self._cancelled or self.body is None:
                return
            try:
                self.body()
            except _Cancelled:
                return
            except BaseException as error:  # raised again by the caller's thread
                self.error = error
            finally:
                self.body = None
            self._hand_on()


def _has_news(queue: SimpleQueue[None]) -> bool:
    """Waits for another thread, for a while: what a signal has to say is heard between two waits. It ends a wait only
    if the system happens to give it to the waiting thread."""
    try:
        queue.get(timeout=_LOOK)
        return True
    except Empty:
        return False


def run_group(
    threads: Sequence[InvocationThread],
    caller: SimpleQueue[None],
    resolve: Callable[[Sequence[InvocationThread]], dict[int, object]],
) -> None:
    """Runs one workgroup. When all threads wait or have ended, `resolve` returns the local ids of those to resume, with
    the results of their operations."""
    results: dict[int, object] = {thread.local: None for thread in threads}
    while results:
        resumed = [thread for thread in threads if thread.local in results]
        for thread, after in zip(resumed, [*resumed[1:], None], strict=True):
            thread.result, thread.next = results[thread.local], after
        resumed[0].resume()
        while not _has_news(caller):
            pass
        for thread in resumed:
            if thread.error is not None:
                raise thread.error
        results = resolve(threads)


def stop(threads: Sequence[InvocationThread]) -> None:
    """Cancels and joins threads, even when interrupted meanwhile: they could still write to the caller's arrays."""

    def end() -> None:
        for thread in threads:
            thread.cancel()
        for thread in threads:
            thread.join()

    persist(end)


def _caller() -> Span:
    """The line of the kernel or helper that waits: three frames up, above `wait` and the invocation's method."""
    frame = inspect.currentframe()
    for _ in range(3):
        frame = frame.f_back if frame is not None else None
    assert frame is not None, "wait is called by a method of the invocation, that by the kernel"
    return Span(frame.f_code.co_filename, frame.f_lineno)


_IDS = frozenset({"global_id", *(builtin.value for builtin in Builtin)})


@cache
def may_wait(function: FunctionType, position: int = 0) -> bool:
    """Whether a function may synchronise (barriers, subgroup operations) through its parameter at this position, the
    `cx`, and so needs threads. If each use of it reads an id, or passes it to a helper that does no more, invocations
    can run one after another. Whatever is not understood counts as synchronising (conservative). Memoised."""
    try:
        source = source_of(function)
    except KernelError:
        return True
    if position >= len(source.parameters):
        return True
    name = source.parameters[position]
    harmless = sum(_harmless_uses(node, name, source, function) for node in ast.walk(source.tree))
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(source.tree))
    return harmless < uses


def _harmless_uses(node: ast.AST, name: str, source: Source, function: FunctionType) -> int:
    """The number of uses of the parameter directly below this node that do not synchronise."""
    if isinstance(node, ast.Attribute):
        return int(_is(node.value, name) and node.attr in _IDS)
    if isinstance(node, ast.Call):
        positions = [i for i, argument in enumerate(node.args) if _is(argument, name)]
        helper = _resolved(node.func, source) if positions else None
        if isinstance(helper, MethodType):  # a classmethod, e.g. `ThreadId.of(cx)`: its first parameter is the class
            bound: object = helper.__func__
            helper, positions = bound, [position + 1 for position in positions]
        if isinstance(helper, FunctionType) and helper is not function:
            return sum(not may_wait(helper, position) for position in positions)
    return 0


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _resolved(node: ast.expr, source: Source) -> object:
    """The global object that a name or dotted name refers to; None if unknown."""
    if isinstance(node, ast.Name):
        try:
            return source.outer(node.id, Captures())
        except (KeyError, ValueError):
            return None
    if isinstance(node, ast.Attribute):
        return getattr(_resolved(node.value, source), node.attr, None)
    return None
