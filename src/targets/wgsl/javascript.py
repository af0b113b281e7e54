"""Pyodide helpers: waiting for promises, wrapping JavaScript objects, and converting descriptors to JavaScript."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Generic, TypeVar, cast

from ...types.errors import CapabilityError

_T = TypeVar("_T")
_J = TypeVar("_J")

HOW_TO_WAIT = (
    "it can where WebAssembly may be suspended (JavaScript Promise Integration) and Python was entered by "
    "runPythonAsync; elsewhere use gpusort.webgpu: `await open_device()`, `await x.fetch()`"
)


def can_wait() -> bool:
    """Whether Python can wait for a promise here (JavaScript Promise Integration)."""
    from pyodide.ffi import can_run_sync

    return can_run_sync()


def waited(answer: Awaitable[_T]) -> _T:
    """Suspends Python until a promise resolves; returns its result. The page's event loop keeps running."""
    from pyodide.ffi import run_sync

    return run_sync(answer)


def require_waiting(what: str) -> None:
    if not can_wait():
        raise CapabilityError(f"{what}: Python cannot wait for the browser's GPU here; {HOW_TO_WAIT}")


class Owner(Generic[_J]):
    """A wrapper of a JavaScript object."""

    def __init__(self, js: _J) -> None:
        self.js = js


def owned(owner: object) -> Any:  # of any of JavaScript's classes
    """The JavaScript object of a wrapper; other objects, such as the page's own, are returned as they are."""
    return owner.js if isinstance(owner, Owner) else owner  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # of any class


def described(given: object) -> object:
    """A descriptor as a JavaScript object, with camelCase names and unwrapped objects."""
    from js import Object
    from pyodide.ffi import to_js

    return to_js(_plain(given), dict_converter=Object.fromEntries)


def _plain(given: object) -> object:
    match given:
        case dict():
            entries = cast("dict[str, object]", given)
            return {camel(name): _plain(value) for name, value in entries.items() if value is not None}
        case list() | tuple():
            return [_plain(value) for value in cast("Sequence[object]", given)]
        case _:
            return owned(given)


def camel(name: str) -> str:
    """A name in camelCase: max-buffer-size and max_buffer_size become maxBufferSize."""
    first, *others = name.replace("-", "_").split("_")
    return first + "".join(map(str.capitalize, others))
