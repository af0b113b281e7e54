"""Python's side of a page, in Pyodide: waiting for promises, and JavaScript's objects under names of Python's kind."""

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
    """Whether Python can wait here for a promise."""
    from pyodide.ffi import can_run_sync

    return can_run_sync()


def waited(answer: Awaitable[_T]) -> _T:
    """What comes of a promise. The page goes on until it does."""
    from pyodide.ffi import run_sync

    return run_sync(answer)


def require_waiting(what: str) -> None:
    if not can_wait():
        raise CapabilityError(f"{what}: Python cannot wait for the browser's GPU here; {HOW_TO_WAIT}")


class Owner(Generic[_J]):
    """Stands for an object of JavaScript's."""

    def __init__(self, js: _J) -> None:
        self.js = js


def owned(owner: object) -> Any:  # of any of JavaScript's classes
    """The object itself. A page's own, which is no object of ours, may be given too."""
    return owner.js if isinstance(owner, Owner) else owner  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # of any class


def described(given: object) -> object:
    """What a descriptor is in JavaScript: with names and objects of its own."""
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
    """A name as JavaScript writes it: max-buffer-size and max_buffer_size are maxBufferSize."""
    first, *others = name.replace("-", "_").split("_")
    return first + "".join(map(str.capitalize, others))
