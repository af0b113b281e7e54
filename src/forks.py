"""Fork safety: handlers (os.register_at_fork) for locks, imports and devices in forked children.

A child has its parent's memory but only the forking thread: a lock held by another thread stays held for ever, and what
it guards stays inconsistent. So a fork waits for compilations and imports in progress, and holds the compiler's locks
meanwhile. If that takes too long, the fork happens anyway, and in the child these locks raise instead of deadlocking.
Devices do not survive a fork: a child refuses targets that its parent opened, and never frees their resources.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import cast
from weakref import WeakSet

from .types.errors import TargetUnavailableError
from .types.real_threads import RLock

IMPORTED_AT = time.time()  # this package, of which every import loads this file
PATIENCE = 60.0  # seconds that a fork waits for other threads; a kernel takes 1 to compile, 10 on a busy machine
_PAUSE = 0.001  # polling interval for imports, in seconds
_COMPILER = "llvmlite"
# Whose imports are waited for: what a call may import. They end soon, where an application's own may run all of it.
_WAITED_FOR = {__name__.partition(".")[0], "numpy", _COMPILER, *sys.stdlib_module_names}
_LOCK, _IS_OWNED = "_lock", "_is_owned"  # private attributes, for which there are no public ones
_SPAWN = "start workers with multiprocessing.get_context('spawn')"


class _Abandoned:
    """Replaces a lock whose holder does not exist in this child: acquiring it raises instead of blocking for ever."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise TargetUnavailableError(
            "target 'cpu': this process was forked while another thread was compiling, and cannot compile any more: "
            f"fork before that or after it, or {_SPAWN}"
        )

    def release(self) -> None:
        """Does nothing: it cannot be acquired."""

    def _is_owned(self) -> bool:
        return False

    def __enter__(self) -> object:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        """Does nothing: it cannot be entered."""


_compiler = SimpleNamespace(**{_LOCK: RLock()})  # gpusort's own lock, in an attribute of the same name as llvmlite's
_lost: list[object] = []  # what holds an abandoned lock
_taken: dict[int, list[threading.RLock]] = {}  # locks held for a fork, by the forking thread, from its beginning on


def compiling() -> AbstractContextManager[object]:
    """The lock to hold while LLVM is loaded, or a kernel is compiled or loaded, so that no fork happens meanwhile. The
    lock itself as context manager: a signal handler cannot run between its acquisition and the block."""
    _let_forks_pass()
    return _lock_of(_compiler)


def require_compiler() -> None:
    """Raises TargetUnavailableError in a child that cannot compile."""
    if _lost:
        _Abandoned().acquire()


def _let_forks_pass() -> None:
    """Waits until no fork waits, for else threads could keep the lock among themselves for minutes; but not in a thread
    that a fork waits for."""
    if not _taken or any(_is_owned(_lock_of(holder)) for holder in _holders()):
        return
    if threading.get_ident() not in _imported().values():
        until = time.monotonic() + PATIENCE
        while _taken and time.monotonic() < until:
            time.sleep(_PAUSE)  # an Event has a lock of its own, which an interrupt could leak


def _lock_of(holder: object) -> threading.RLock:
    """The lock in a holder: gpusort's, or llvmlite's library."""
    return cast(threading.RLock, getattr(holder, _LOCK))


def _is_owned(lock: threading.RLock) -> bool:
    """Whether this thread holds a lock."""
    return bool(getattr(lock, _IS_OWNED)())


def _holders() -> list[object]:
    """The objects whose locks compilations hold, as far as they are loaded, in the order of acquisition."""
    llvm = getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), _LOCK, None)
    return [_compiler, llvm] if hasattr(getattr(llvm, _LOCK, None), _IS_OWNED) else [_compiler]


def _before() -> None:
    """Before a fork: waits for other threads' compilations and imports, and keeps them from starting new ones."""
    until = time.monotonic() + PATIENCE
    taken = _taken[threading.get_ident()] = []
    while True:
        while _imported_elsewhere() and time.monotonic() < until:
            time.sleep(_PAUSE)
        for lock in map(_lock_of, _holders()):
            if not _is_owned(lock):  # else this thread forks while it compiles
                taken.append(lock)
                lock.acquire(timeout=max(0.0, until - time.monotonic()))
        if not _imported_elsewhere() or time.monotonic() >= until:
            return
        _release(taken)  # an import began meanwhile, and may need the locks to finish


def _after() -> None:
    _release(_taken.pop(threading.get_ident(), []))


def _release(taken: list[threading.RLock]) -> None:
    """Releases this thread's locks, as far as they are held (an acquisition may have timed out)."""
    while taken:
        lock = taken.pop()
        if _is_owned(lock):
            lock.release()


def _after_in_child() -> None:
    _opened_before_fork.update(_opened)
    is_lost = False
    for name in _imported_elsewhere():
        _module_locks().pop(name, None)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]  # half imported by another thread; to be imported again
            is_lost |= name.startswith(_COMPILER)
    for holder in _holders():
        if not is_lost and _lock_of(holder).acquire(blocking=False):
            _lock_of(holder).release()
        else:
            setattr(holder, _LOCK, _Abandoned())
            _lost.append(holder)
            is_lost = True
    _after()
    _taken.clear()
    for lock in list(_own_locks):
        lock.renew()
    _leak_device_resources()


def _module_locks() -> dict[str, Callable[[], object]]:
    return getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})


def _imported() -> dict[str, object]:
    """The modules of gpusort, NumPy, LLVM and Python itself that are being imported, with the importing threads."""
    found: dict[str, object] = {}
    for name, reference in list(_module_locks().items()):
        owner: object = getattr(reference(), "owner", None)
        if owner is not None and name.partition(".")[0] in _WAITED_FOR:
            found[name] = owner
    return found


def _imported_elsewhere() -> list[str]:
    """The modules that other threads are importing."""
    me = threading.get_ident()
    return [name for name, thread in _imported().items() if thread != me]


class OwnLock:
    """A reentrant lock that is renewed in forked children, for state that is consistent whenever a fork happens."""

    def __init__(self) -> None:
        self.renew()
        _own_locks.add(self)

    def renew(self) -> None:
        self.held: AbstractContextManager[object] = RLock()  # the lock itself, as in `compiling`


_own_locks: WeakSet[OwnLock] = WeakSet()


# Sets and a fork hook, not process ids: os.getpid() is a system call, and warm calls of some microseconds check twice.
_opened: set[str] = set()  # targets that this process has opened
_opened_before_fork: set[str] = set()  # targets that a parent had opened when it forked this process
_on_devices: WeakSet[object] = WeakSet()


def mark_opened(target: str) -> None:
    """Records that this process opens a target; to be called first. Raises TargetUnavailableError in a forked child of
    a process that has opened it."""
    require_own_process(target)
    _opened.add(target)


def require_own_process(target: str) -> None:
    """Raises TargetUnavailableError in a forked child of a process that has opened the target, as the driver's threads
    do not exist there."""
    if target in _opened_before_fork:
        raise opened_before_fork(target)


def opened_before_fork(target: str) -> TargetUnavailableError:
    return TargetUnavailableError(
        f"target {target!r} was opened before this process was forked, and a device does not survive that: {_SPAWN}, "
        "or let only the children use the target"
    )


def require_running(target: str) -> None:
    """Raises TargetUnavailableError while the interpreter goes away: the threads for which results would wait are gone
    then. What calls so late is a `__del__`."""
    if sys.is_finalizing():
        raise TargetUnavailableError(
            f"target {target!r} ends with the interpreter, which is shutting down; use it earlier, e.g. in a function "
            "that is registered by `atexit`"
        )


def never_released_in_children(owner: object) -> None:
    """Registers an owner of device resources, which a forked child must never free, not even at exit."""
    importlib.import_module("ctypes")  # not to be imported in a child
    _on_devices.add(owner)


def _leak_device_resources() -> None:
    """In a child: keeps owners of device resources alive for ever, and skips the drivers' exit handlers."""
    owners = list(_on_devices)
    if not owners:
        return
    import ctypes

    for owner in owners:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit") and hasattr(libc, "fcloseall"):
        # Exit handlers run last to first: C's streams are flushed, then the process exits at once. Those that the
        # drivers registered before would join threads that do not exist here, and Mesa's crash.
        libc.on_exit(libc._exit, None)
        libc.on_exit(libc.fcloseall, None)


# logging registers fork handlers itself. Loaded now, so that they are not registered while a fork waits.
importlib.import_module("logging")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
