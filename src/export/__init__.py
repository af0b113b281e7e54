"""Ahead-of-time export of kernels and schedules to programs outside Python: generated code, and schedules as data.

gpusort.export("sort", "out", keys=["u32"], format="js")

For all arguments: from gpusort.export.exporting import export; help(export).

The package is callable, so that `gpusort.export(...)` works even once this package is imported, which binds the name.
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
