"""Numba's pipeline for generated kernels, without the passes that would find nothing in them."""

from __future__ import annotations

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

# They look for closures, and for constants and expressions of whole arrays: some of these all over again after each
# change. That is a sixth of the time that a kernel takes to compile. By name: what a version lacks is not missed.
_FIND_NOTHING = frozenset(["GenericRewrites", "InlineClosureLikes", "NopythonRewrites"])


class Straight(CompilerBase):
    """For `njit(pipeline_class=…)`."""

    def define_pipelines(self) -> list[PassManager]:
        straight = PassManager("straight")
        for compiler_pass, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if compiler_pass.__name__ not in _FIND_NOTHING:
                straight.add_pass(compiler_pass, description)
        straight.finalize()
        return [straight]
