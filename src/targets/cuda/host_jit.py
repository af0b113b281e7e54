"""The njit decorator of the host's loops around the card, with compile-time logging. Importing this loads Numba."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import numba
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.event import Event, Listener, register

from ...compile_log import log_compilation
from ..typing_cache import CachedTyping

__all__ = ["njit"]

_OURS = __name__.partition(".")[0] + "."


class Whole(CompilerBase):
    """All of Numba's passes, with memoised typing of calls."""

    def define_pipelines(self) -> list[PassManager]:
        self.state.typingctx = CachedTyping(self.state.typingctx)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


if TYPE_CHECKING:
    from numba import njit
else:  # the same, whatever it is called with, by a pipeline of ours
    njit = partial(numba.njit, pipeline_class=Whole, no_cfunc_wrapper=True)


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
            log_compilation("cuda", f"{module.rpartition('.')[2]}.{name}", time.perf_counter() - start)

    def _starts(self) -> list[float]:
        starts: list[float] = self._own.__dict__.setdefault("starts", [])
        return starts


register("numba:compile", _Durations())
