"""Runs calls that an interrupt must not abort in a helper thread: Python runs signal handlers in the main thread only.
For example a large package whose import is interrupted is left half initialised, and cannot be imported any more in
that process."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from ..types import real_threads
from ..types.import_lock import release_import_lock

_T = TypeVar("_T")

_imported: set[str] = set()


def import_uninterrupted(name: str) -> ModuleType:
    """Imports a module in a helper thread and waits. If the wait is interrupted, the import continues."""
    if name not in _imported or sys.modules.get(name) is None:
        run_uninterrupted(lambda: importlib.import_module(name))
        _imported.add(name)
    return sys.modules[name]


def run_uninterrupted(call: Callable[[], _T]) -> _T:
    """Calls in a helper thread (directly, if not in the main thread, or in the midst of an import, for whose lock the
    helper would wait), waits, and returns its result or raises its exception. If the wait is interrupted, the call
    continues."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or sys.is_finalizing() or not release_import_lock():
        return call()
    found: list[_T] = []
    failures: list[BaseException] = []
    news: real_threads.SimpleQueue[None] = real_threads.SimpleQueue()

    def work() -> None:
        try:
            found.append(call())
        except BaseException as failure:
            failures.append(failure)
        news.put(None)

    try:
        real_threads.start(work, ())
    except (RuntimeError, MemoryError):  # no more threads can be started
        return call()
    while not (found or failures):
        news.get()
    if failures:
        raise failures[0]
    return found[0]
