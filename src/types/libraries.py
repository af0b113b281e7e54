"""Libraries that a program may lack, and that take long to import: they are imported where they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Library", "cupy", "ffi", "js", "nvjitlink", "nvvm"]


class Library:
    """A module. What was used of it once is found here, in less time than by an import."""

    __slots__ = "__dict__", "_module"

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(import_module(self._module), name)
        return found


if TYPE_CHECKING:
    import cupy
    import js
    from cuda.bindings import nvjitlink, nvvm
    from pyodide import ffi
else:
    cupy, js, ffi = Library("cupy"), Library("js"), Library("pyodide.ffi")
    nvjitlink, nvvm = Library("cuda.bindings.nvjitlink"), Library("cuda.bindings.nvvm")
