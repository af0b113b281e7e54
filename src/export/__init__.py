"""Kernels and schedules for programs outside Python: generated texts, and all else as data.

The package can be called, as `gpusort.export(...)`, also once it is imported, which binds the name to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Export(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> tuple[Path, ...]:
        from .exporting import export

        return export(*arguments, **named)


sys.modules[__name__].__class__ = _Export
