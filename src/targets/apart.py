"""What must not be left half done is done in a thread of its own, in which no signal handler runs.

A large package whose import is interrupted cannot be imported any more in that process: what it has begun to set up
stays, half done.
"""

from __future__ import annotations

import _imp
import _thread
import importlib
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

_imported: set[str] = set()


def import_apart(name: str) -> None:
    """Imports a module, or waits until another thread has. Where this is interrupted, the import goes on."""
    if name not in _imported or sys.modules.get(name) is None:
        apart(lambda: importlib.import_module(name))
        _imported.add(name)


def apart(call: Callable[[], object]) -> None:
    """Calls it and waits; what it raises is raised here. Where this is interrupted, it goes on alone."""
    if threading.current_thread() is not threading.main_thread() or sys.is_finalizing():
        call()
        return
    let_go_of_imports()
    ended: list[BaseException | None] = []
    news: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        failure: BaseException | None = None
        try:
            call()
        except BaseException as raised:
            failure = raised
        finally:
            ended.append(failure)
            news.put(None)

    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # the system gives no more threads
        call()
        return
    while not ended:
        news.get()
    if ended[0] is not None:
        raise ended[0]


def let_go_of_imports() -> None:
    """Releases the lock of all imports, if an interrupt has left it taken by this thread.

    CPython takes it for a moment when a module is looked for, by a call of its own before the `try` that would release
    it. A signal that strikes between the two leaves it taken for ever, and no other thread could import anything.
    """
    while _imp.lock_held():
        try:
            _imp.release_lock()
        except RuntimeError:  # it is another thread's, who is at it
            return
