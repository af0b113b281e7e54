"""Numba's compiler pipeline with memoised typing of calls."""

from __future__ import annotations

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

from ..typing_cache import CachedTyping


class Whole(CompilerBase):
    """All of Numba's passes, for `njit(pipeline_class=…)`: for loops that are written by hand."""

    def define_pipelines(self) -> list[PassManager]:
        self.state.typingctx = CachedTyping(self.state.typingctx)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]
