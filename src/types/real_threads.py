"""Threads, queues and locks as CPython has them, also in a program where gevent or eventlet has put its own in their
place: there a thread is a coroutine, which runs while the others wait by that library's means. Who waits in compiled
code, or for what is computed there, would wait for ever."""

from __future__ import annotations

import _thread
import atexit
import time
from _queue import Empty, SimpleQueue
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import threading
    from importlib.machinery import ModuleSpec

__all__ = ["Empty", "Lock", "RLock", "SimpleQueue", "identity", "persist", "require_frames", "start", "started"]


def _as_built() -> ModuleType:
    """The module `_thread`, or where that was patched another of its kind, with all that it was built with."""
    if isinstance(_thread.start_new_thread, BuiltinFunctionType):
        return _thread
    import _imp
    from importlib.util import find_spec

    made = _imp.create_builtin(cast("ModuleSpec", find_spec(_thread.__name__)))
    _imp.exec_builtin(made)
    return made


# Taken now: the program may be patched later.
_built = _as_built()
_start: Callable[[Callable[..., object], tuple[object, ...]], int] = _built.start_new_thread
identity: Callable[[], int] = _built.get_ident
Lock: Callable[[], threading.Lock] = _built.allocate_lock
RLock: Callable[[], threading.RLock] = _built.RLock


_beginning: list[None] = []  # a mark for each thread that is started and has not begun


def start(function: Callable[..., object], given: tuple[object, ...]) -> None:
    """Starts a thread. RuntimeError or MemoryError where the system gives none."""
    _beginning.append(None)
    try:
        _start(_begin, (function, given))
    except (RuntimeError, MemoryError):
        _beginning.pop()
        raise


def _begin(function: Callable[..., object], given: tuple[object, ...]) -> None:
    _beginning.pop()
    function(*given)


@atexit.register
def _let_all_begin() -> None:
    """An interpreter that ends frees the state of a thread that has not begun, which begins all the same, with a
    segmentation fault. It waits a moment: a mark stays where Ctrl-C came before a thread was started, or a fork."""
    until = time.monotonic() + 0.5
    while _beginning and time.monotonic() < until:
        time.sleep(0.0001)


def started(function: Callable[..., object], *given: object) -> bool:
    """Starts a thread. False where the system gives none: there are too many, too little memory for one, or the
    interpreter ends."""
    try:
        start(function, given)
    except (RuntimeError, MemoryError):
        return False
    return True


def require_frames(left: int = 12) -> None:
    """Raises RecursionError where hardly another call can be nested. To be called before there is what `persist` and
    the like would wait for: they could not, and would try for ever."""
    if left:
        require_frames(left - 1)


def persist(step: Callable[[], object]) -> None:
    """Calls a step until it has returned. What a signal handler raises meanwhile is raised then."""
    interruption: BaseException | None = None
    while True:
        try:
            step()
            break
        except BaseException as failure:
            interruption = failure
    if interruption is not None:
        raise interruption
