"""Numba's pipelines for what we compile: they ask what type a call gives once, and look for nothing in kernels that
kernels do not have."""

from __future__ import annotations

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

from ..numba_passes import FIND_NOTHING
from ..remembering import Remembering


class Whole(CompilerBase):
    """All of Numba's passes, for `njit(pipeline_class=…)`: for loops that are written by hand."""

    def define_pipelines(self) -> list[PassManager]:
        self.state.typingctx = Remembering(self.state.typingctx)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class Straight(CompilerBase):
    """For generated kernels."""

    def define_pipelines(self) -> list[PassManager]:
        self.state.typingctx = Remembering(self.state.typingctx)
        straight = PassManager("straight")
        for compiler_pass, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if compiler_pass.__name__ not in FIND_NOTHING:
                straight.add_pass(compiler_pass, description)
        straight.finalize()
        return [straight]
