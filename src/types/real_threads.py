"""Threads, queues and locks as CPython has them, also in a program where gevent or eventlet has put its own in their
place: there a thread is a coroutine, which runs while the others wait by that library's means. Who waits in compiled
code, or for what is computed there, would wait for ever."""

from __future__ import annotations

import _thread
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
start: Callable[[Callable[..., object], tuple[object, ...]], int] = _built.start_new_thread
identity: Callable[[], int] = _built.get_ident
Lock: Callable[[], threading.Lock] = _built.allocate_lock
RLock: Callable[[], threading.RLock] = _built.RLock


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
