"""A cache of memory blocks that are reused once their reference count says that nobody else holds them."""

from __future__ import annotations

import os
import sys
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from ..types import real_threads

O = TypeVar("O")  # noqa: E741  (who the memory is from)
T = TypeVar("T")


class Shelf(Generic[O, T]):
    """A bounded cache of the blocks put here last. A block is reused only if nothing but the cache references it."""

    def __init__(self, most: int) -> None:
        self._kept: deque[tuple[O, T]] = deque(maxlen=most)  # appending and popping need no lock

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, owner: O, thing: T) -> None:
        self._kept.append((owner, thing))

    def clear(self) -> None:
        self._kept.clear()

    def take(self, suits: Callable[[O, T], bool | None]) -> T | None:
        """Takes a free block for which `suits` is true; drops those for which it is None."""
        for _ in range(len(self._kept)):
            try:
                entry = self._kept.popleft()
            except IndexError:  # another thread was faster
                break
            # By its place: whether a variable's value counts once more on its way to a call is for the compiler to say
            # from Python 3.14 on, and depends on the code around.
            is_alone = sys.getrefcount(entry[1]) == _ALONE
            owner, thing = entry
            answer = suits(owner, thing) if is_alone else False
            if answer:
                return thing
            if answer is not None:
                self._kept.append(entry)
        return None


SECONDS = 30.0
_watched: set[int] = set()  # the ids of shelves for which a thread waits


class TimedShelf(Shelf[float, T]):
    """Of each block, since when it has been here. One that is watched is let go of when it was idle for `SECONDS`."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._lent: deque[weakref.ref[Any]] = deque()  # what blocks are lent as, with which they come back

    def put_now(self, thing: T) -> None:
        self.put(monotonic(), thing)

    def clear(self) -> None:
        super().clear()
        _watched.discard(id(self))

    def lend(self, thing: object) -> None:
        """Watches from now on for a block that comes back when a thing goes. It may go in any thread and at any moment,
        when nothing should be done that waits for a lock."""
        self._lent.append(weakref.ref(thing))
        self.watch()

    def watch(self) -> None:
        """Has a thread let go of what was idle, unless one waits for it to be, or none is to be had."""
        if id(self) not in _watched:
            real_threads.started(self._look)

    def _look(self) -> None:
        if id(self) in _watched:  # callers that came at once have started several
            return
        _watched.add(id(self))
        sleep(SECONDS)
        _watched.discard(id(self))
        self.take(lambda since, _: monotonic() - since >= SECONDS)
        with suppress(IndexError):
            for _ in range(len(self._lent)):  # one by one, as others append meanwhile
                thing = self._lent.popleft()
                if thing() is not None:
                    self._lent.append(thing)
        if self._lent or self:
            self.watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watched.clear)  # the threads are the parent's


def _count_alone() -> int:
    """The reference count of a block just taken out of the cache that nobody else references, measured once."""
    kept = deque([(None, object())])
    entry = kept.popleft()
    return sys.getrefcount(entry[1])


_ALONE = _count_alone()
