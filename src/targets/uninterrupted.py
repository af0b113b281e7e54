"""Runs calls that an interrupt must not abort in a helper thread: Python runs signal handlers in the main thread only.
For example a large package whose import is interrupted is left half initialised, and cannot be imported any more in
that process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from ..types.calls import Call

_T = TypeVar("_T")

_imported: set[str] = set()


def import_uninterrupted(name: str) -> ModuleType:
    """Imports a module in a helper thread and waits. If the wait is interrupted, the import continues."""
    if name not in _imported or sys.modules.get(name) is None:
        run_uninterrupted(lambda: importlib.import_module(name))
        _imported.add(name)
    return sys.modules[name]


def run_uninterrupted(function: Callable[[], _T]) -> _T:
    """Calls in a helper thread (directly, if not in the main thread, or in the midst of an import, for whose lock the
    helper would wait), waits, and returns its result or raises its exception. If the wait is interrupted, the call
    continues."""
    call = Call(function)
    call.begin()
    return call.result()
