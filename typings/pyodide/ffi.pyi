# What gpusort uses of Pyodide, 0.27 to 314, in which Python runs in a page. The package is there and nowhere else.
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")

# JavaScript's Error, thrown through Python.
class JsException(Exception):
    @property
    def name(self) -> str: ...
    @property
    def message(self) -> str: ...

# Whether run_sync can wait: the browser lets WebAssembly be suspended, and Python was entered so that it can.
def can_run_sync() -> bool: ...
def run_sync(awaitable: Awaitable[_T], /) -> _T: ...

# Numbers and strings are JavaScript's, lists its arrays, buffers are copied to its typed arrays.
def to_js(obj: object, /, *, dict_converter: Callable[..., object] | None = None) -> object: ...
def create_once_callable(obj: Callable[..., object], /) -> object: ...
