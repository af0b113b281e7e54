"""The njit decorator of our compiled loops, with compile-time logging and cancellation. Importing this loads Numba."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import numba
from numba.core.event import Event, Listener, register

from ...compile_log import log_compilation
from .background import background
from .pipeline import Whole

if TYPE_CHECKING:
    from numba import njit
    from numba import njit as inner
else:  # the same, whatever it is called with, by a pipeline of ours
    njit = partial(numba.njit, pipeline_class=Whole, no_cfunc_wrapper=True)
    # For what only compiled code calls: there is nothing that would take its arguments from Python.
    inner = partial(njit, no_cpython_wrapper=True)

__all__ = ["inner", "njit"]

_OURS = __name__.partition(".")[0] + "."


class _Durations(Listener):
    """Tells of each function of ours that takes long to compile, with all that it calls."""

    def __init__(self) -> None:
        self._own = threading.local()

    def on_start(self, event: Event) -> None:
        self._starts().append(time.perf_counter())

    def on_end(self, event: Event) -> None:
        starts = self._starts()
        start = starts.pop() if starts else time.perf_counter()
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        module, name = (str(getattr(function, word, "")) for word in ("__module__", "__name__"))
        if not starts and module.startswith(_OURS):
            log_compilation("cpu", f"{module.rpartition('.')[2]}.{name}", time.perf_counter() - start)

    def _starts(self) -> list[float]:
        starts: list[float] = self._own.__dict__.setdefault("starts", [])
        return starts


class _Stops(Listener):
    """Ends what is compiled aside, between two of the compiler's passes, when the process ends."""

    def on_start(self, event: Event) -> None:
        background.go_on()

    def on_end(self, event: Event) -> None:
        """Nothing to do."""


register("numba:compile", _Durations())
register("numba:run_pass", _Stops())
