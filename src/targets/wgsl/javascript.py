"""Pyodide helpers: waiting for promises, wrapping JavaScript objects, and converting descriptors to JavaScript."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar, cast

from ...types.errors import CapabilityError
from ...types.libraries import ffi, js

_T = TypeVar("_T")
_J = TypeVar("_J")
_P = TypeVar("_P")

HOW_TO_WAIT = (
    "it can where WebAssembly may be suspended (JavaScript Promise Integration) and Python was entered by "
    "runPythonAsync; elsewhere use gpusort.webgpu: `await open_device()`, `await x.fetch()`"
)


def can_wait() -> bool:
    """Whether Python can wait for a promise here (JavaScript Promise Integration)."""
    return ffi.can_run_sync()


def waited(answer: Awaitable[_T]) -> _T:
    """Suspends Python until a promise resolves; returns its result. The page's event loop keeps running."""
    with _collector.rests_beside_others():
        return ffi.run_sync(answer)


class _Collector:
    """CPython's garbage collector, which rests while calls wait side by side. From 3.14 on it looks through the frames
    of the stack that runs. Of several that were suspended in turn, one's frames lead into those of another, which
    Pyodide (314.0.3) has moved elsewhere meanwhile: a collection there is a fatal error. So none begins from the moment
    that a second call waits until all have ended."""

    def __init__(self) -> None:
        self._suspended = 0
        self._rests = False

    @contextmanager
    def rests_beside_others(self) -> Generator[None, None, None]:
        """Spans one wait."""
        if self._suspended and gc.isenabled():
            gc.disable()
            self._rests = True
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1
            if self._rests and not self._suspended:
                # The event loop has its turn where this call waits again, or has ended.
                asyncio.get_event_loop().call_soon(self._goes_on)

    def _goes_on(self) -> None:
        if self._rests and not self._suspended:
            self._rests = False
            gc.enable()


_collector = _Collector()


def require_waiting(what: str) -> None:
    if not can_wait():
        raise CapabilityError(f"{what}: Python cannot wait for the browser's GPU here; {HOW_TO_WAIT}")


class Owner(Generic[_J]):
    """A wrapper of a JavaScript object. What it does not define is the object's method of that name, in camelCase, of
    which keywords make the descriptor; what that gives is wrapped too."""

    def __init__(self, js: _J) -> None:
        self.js = js

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "js" or name.startswith("_"):
            raise AttributeError(name)
        method: Callable[..., Any] = getattr(self.js, camel(name))

        def call(*given: object, **descriptor: object) -> Any:
            made = method(*map(described, given), *([described(descriptor)] if descriptor else ()))
            return None if made is None else Owner(made)

        return call


def owned(owner: object) -> Any:  # of any of JavaScript's classes
    """The JavaScript object of a wrapper; other objects, such as the page's own, are returned as they are."""
    return owner.js if isinstance(owner, Owner) else owner  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # of any class


def described(given: object) -> object:
    """A descriptor or a sequence as a JavaScript object, with camelCase names and unwrapped objects."""
    plain = _plain(given)
    if not isinstance(plain, dict | list):
        return plain
    return ffi.to_js(cast(object, plain), dict_converter=js.Object.fromEntries)


def _plain(given: object) -> object:
    match given:
        case dict():
            entries = cast("dict[str, object]", given)
            return {camel(name): _plain(value) for name, value in entries.items() if value is not None}
        case list() | tuple():
            return [_plain(value) for value in cast("Sequence[object]", given)]
        case _:
            return owned(given)


@cache
def camel(name: str) -> str:
    """A name in camelCase: max-buffer-size and max_buffer_size become maxBufferSize."""
    first, *others = name.replace("-", "_").split("_")
    return first + "".join(map(str.capitalize, others))


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


class Turn:
    """A page's lock. Calls that wait side by side share one thread, so a call that finds it taken waits for a promise;
    one that cannot wait goes on."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()

    def __enter__(self) -> None:
        while not self._free.is_set() and can_wait():
            waited(self._free.wait())
        self._free.clear()

    def __exit__(self, *_: object) -> None:
        self._free.set()


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
