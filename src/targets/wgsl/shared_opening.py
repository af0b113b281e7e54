"""Coalesces concurrent requests for the browser's GPU: calls that await at the same time share one device."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

_J = TypeVar("_J")
_P = TypeVar("_P")


class Answer(Generic[_J, _P]):
    """A promise whose result is converted once: all who await it get the same object."""

    def __init__(self, promise: Awaitable[_J], made_of: Callable[[_J], _P]) -> None:
        self._promise, self._made_of = promise, made_of
        self._made: list[_P] = []

    async def awaited(self) -> _P:
        found = await self._promise
        if not self._made:
            self._made.append(self._made_of(found))
        return self._made[0]


class SharedOpening(Generic[_J, _P]):
    """While an opening is in progress, its request's answer is shared with all others."""

    def __init__(self, ask: Callable[[], Answer[_J, _P]]) -> None:
        self._ask, self._under_way = ask, 0
        self._answer: Answer[_J, _P] | None = None

    def answer(self) -> Answer[_J, _P]:
        found = self._answer or self._ask()
        if self._under_way:
            self._answer = found
        return found

    @contextmanager
    def one(self) -> Generator[None, None, None]:
        """Spans one opening, from the request of an adapter to a usable device."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._answer = None
