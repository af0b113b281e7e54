"""A cache of memory blocks that are reused once their reference count says that nobody else holds them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

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


class TimedShelf(Shelf[float, T]):
    """Of each block, since when it has been here."""

    def put_now(self, thing: T) -> None:
        self.put(monotonic(), thing)


def _count_alone() -> int:
    """The reference count of a block just taken out of the cache that nobody else references, measured once."""
    kept = deque([(None, object())])
    entry = kept.popleft()
    return sys.getrefcount(entry[1])


_ALONE = _count_alone()
