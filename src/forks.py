"""What a forked child may count on. It has its parent's memory, and of the threads only the one that forked.

A lock that another thread held at that moment is held in the child for ever, and what it guards stays half done. So
whoever forks waits for compilers and imports of ours that are under way, and keeps the compilers' locks until the fork
is over. If that takes too long, the fork happens nevertheless, and the child gets an error where it would wait without
end. Devices survive no fork: a child refuses those that its parent opened, and never lets go of what belongs to them.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from abc import ABCMeta
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast
from weakref import WeakSet

from .types.errors import TargetUnavailableError

PATIENCE = 60.0  # seconds that a fork waits for other threads: a kernel takes one to compile, or ten on a busy machine
_PAUSE = 0.001  # seconds between two looks at imports
_COMPILERS = ("numba", "llvmlite")
_WAITED_FOR = (__name__.partition(".")[0], "numpy", *_COMPILERS)  # NumPy imports parts of itself as they are asked for
_LOCK, _IS_OWNED = "_lock", "_is_owned"  # names that no public ones stand for
_SPAWN = "start workers with multiprocessing.get_context('spawn')"


class _Lock(Protocol):
    """Python's reentrant lock."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> None: ...


class _Event(Protocol):
    """What Numba tells its listeners."""

    @property
    def is_start(self) -> bool: ...


class _Events(Protocol):
    """Numba's module of that name."""

    @property
    def Listener(self) -> ABCMeta: ...
    def register(self, kind: str, listener: object) -> None: ...


class _ModuleLock(Protocol):
    """What the import system holds while a thread imports a module."""

    @property
    def owner(self) -> object: ...


def _new_lock() -> _Lock:
    return cast(_Lock, threading.RLock())


class _Abandoned:
    """In place of a lock that nobody is left to release: an error where there would be no end."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise _refusal()

    def release(self) -> None:
        """Nobody holds it."""

    def _is_owned(self) -> bool:
        return False

    def __enter__(self) -> object:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        """Nobody entered."""


class _Compiler:
    """Our own lock, held as those are. No attrs here: whoever imports gpusort imports this file."""

    def __init__(self) -> None:
        self._lock = _new_lock()


class _Gate:
    """Closed while a fork waits: of those who want a lock, it comes first. Else others might pass it on for minutes.

    A flag that is looked at, and no Event: whoever closes it may be interrupted, and an Event's own lock leak.
    """

    def __init__(self) -> None:
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True

    def open(self) -> None:
        self._is_closed = False

    def is_open(self) -> bool:
        return not self._is_closed

    def notify(self, event: _Event) -> None:
        """Numba tells its listeners before it waits for its lock, and after it is done."""
        if event.is_start:
            self.pass_through()

    def pass_through(self) -> None:
        """Waits where it is closed; but not a thread that the fork waits for."""
        if self.is_open() or any(_is_owned(_lock_of(holder)) for holder in _holders()):
            return
        if threading.get_ident() not in _imported().values():
            until = time.monotonic() + PATIENCE
            while not self.is_open() and time.monotonic() < until:
                time.sleep(_PAUSE)


_compiler = _Compiler()
_gate = _Gate()
_listens: list[bool] = []  # not empty once Numba tells the gate
_taken: dict[int, list[_Lock]] = {}  # by the thread that forks


def compiling() -> AbstractContextManager[object]:
    """Around all that loads Numba, compiles a kernel or loads a compiled one: no fork catches it half done.

    This is the lock itself, which no signal can strike between its being taken and the block that it guards.
    """
    _gate.pass_through()
    return _lock_of(_compiler)


def _refusal() -> TargetUnavailableError:
    return TargetUnavailableError(
        "target 'cpu': this process was forked while another thread was compiling, and cannot compile any more: fork "
        f"before that or after it, or {_SPAWN}"
    )


def _lock_of(holder: object) -> _Lock:
    """Numba's compiler lock and llvmlite's library have one each, by one name."""
    return cast(_Lock, getattr(holder, _LOCK))


def _is_owned(lock: _Lock) -> bool:
    """Whether it is this thread that holds a lock."""
    return bool(getattr(lock, _IS_OWNED)())


def _holders() -> list[object]:
    """All whose locks are held by those who compile, in the order in which they take them; as far as they are there."""
    numba = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    llvm = getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), _LOCK, None)
    known = [found for found in (numba, llvm) if hasattr(getattr(found, _LOCK, None), _IS_OWNED)]
    return [_compiler, *known]


def _before() -> None:
    """Waits for what other threads have begun. They begin nothing new before the fork is over."""
    until = time.monotonic() + PATIENCE
    _close_gate()
    while True:
        while _imported_elsewhere() and time.monotonic() < until:
            time.sleep(_PAUSE)
        _take_locks(until)
        if not _imported_elsewhere() or time.monotonic() >= until:
            return
        _let_go()  # an import began meanwhile, and may need the locks to end


def _close_gate() -> None:
    _gate.close()
    found = sys.modules.get("numba.core.event")
    if not _listens and hasattr(found, "register"):
        events = cast(_Events, found)
        _listens.append(True)
        events.Listener.register(_Gate)
        events.register("numba:compiler_lock", _gate)


def _take_locks(until: float) -> None:
    taken = _taken[threading.get_ident()] = []
    for holder in _holders():
        lock = _lock_of(holder)
        if not _is_owned(lock):  # or else this thread forks in the midst of compiling
            taken.append(lock)
            lock.acquire(timeout=max(0.0, until - time.monotonic()))


def _after() -> None:
    _let_go()
    if not _taken:
        _gate.open()


def _let_go() -> None:
    """Whatever came between: only of locks that are held."""
    for lock in reversed(_taken.pop(threading.get_ident(), [])):
        if _is_owned(lock):
            lock.release()


def _after_in_child() -> None:
    _opened_before_fork.update(_opened)
    is_lost = False
    for name in _imported_elsewhere():
        _module_locks().pop(name, None)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]  # it can be imported anew
            is_lost |= name.startswith(_COMPILERS)
    for holder in _holders():
        if not is_lost and _lock_of(holder).acquire(blocking=False):
            _lock_of(holder).release()
        else:
            setattr(holder, _LOCK, _Abandoned())
            is_lost = True
    _let_go()
    _taken.clear()
    _gate.open()
    for lock in list(_own_locks):
        lock.renew()
    _keep_for_ever()


def _module_locks() -> dict[str, Callable[[], _ModuleLock | None]]:
    return getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})


def _imported() -> dict[str, object]:
    """The modules of ours, NumPy's and the compilers' that are being imported, and by which thread."""
    found: dict[str, object] = {}
    for name, reference in list(_module_locks().items()):
        lock = reference()
        if lock is not None and lock.owner is not None and name.partition(".")[0] in _WAITED_FOR:
            found[name] = lock.owner
    return found


def _imported_elsewhere() -> list[str]:
    """Those of them that other threads import."""
    me = threading.get_ident()
    return [name for name, thread in _imported().items() if thread != me]


class OwnLock:
    """A reentrant lock that is free in a forked child, whoever held it in the parent: for what is never half done."""

    def __init__(self) -> None:
        self.renew()
        _own_locks.add(self)

    def renew(self) -> None:
        self.held: AbstractContextManager[object] = _new_lock()  # for a with statement, as above


_own_locks: WeakSet[OwnLock] = WeakSet()


# -- devices ----------------------------------------------------------------------------------------------

# Sets and a hook, not process numbers: to ask for one is a system call, several in each call of some microseconds.
_opened: set[str] = set()  # the targets that this process has opened
_opened_before_fork: set[str] = set()  # those that a process did from which this one was forked
_on_devices: WeakSet[object] = WeakSet()


def opens(target: str) -> None:
    """To be called before a target touches its device: from then on it is this process's. Refuses in a forked child."""
    require_own_process(target)
    _opened.add(target)


def require_own_process(target: str) -> None:
    """Refuses to go on in a forked child of a process that has opened the target: threads and locks of its driver are
    not here."""
    if target in _opened_before_fork:
        raise opened_before_fork(target)


def opened_before_fork(target: str) -> TargetUnavailableError:
    return TargetUnavailableError(
        f"target {target!r} was opened before this process was forked, and a device does not survive that: {_SPAWN}, "
        "or let only the children use the target"
    )


def never_released_in_children(owner: object) -> None:
    """Says that what belongs to this object must not be given back by a forked child, not even at its end."""
    importlib.import_module("ctypes")  # so that it is there in a child
    _on_devices.add(owner)


def _keep_for_ever() -> None:
    """In a child: nothing on a device is given back, and no driver waits for its threads as the process ends."""
    owners = list(_on_devices)
    if not owners:
        return
    import ctypes

    for owner in owners:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit") and hasattr(libc, "fcloseall"):
        # Called last to first, once Python is done: what C has buffered is written, then the process ends with its
        # status. The drivers' own exit handlers would join threads that do not exist here: Mesa's crash.
        libc.on_exit(libc._exit, None)
        libc.on_exit(libc.fcloseall, None)


# It has hooks of its own: loaded while a fork waits, they would be called out of turn.
importlib.import_module("logging")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
