"""Backends (targets) and their registry.

The package is callable, so that `gpusort.targets()` works even once this package is imported, which binds the name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .registry import TargetState


class _Targets(ModuleType):
    def __call__(self) -> list[TargetState]:
        from .registry import targets

        return targets()


sys.modules[__name__].__class__ = _Targets
