"""Libraries that a program may lack, and that take long to import: cupy, imported where it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["cupy"]

if TYPE_CHECKING:
    import cupy
else:

    class _Cupy:
        """What was used once is found here, in less time than by an import."""

        def __getattr__(self, name: str) -> object:
            found = vars(self)[name] = getattr(import_module("cupy"), name)
            return found

    cupy = _Cupy()
