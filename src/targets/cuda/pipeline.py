"""Numba CUDA's pipeline for generated kernels, without the passes that would find nothing in them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..remembering import Remembering
from .numba_passes import FIND_NOTHING

if TYPE_CHECKING:
    from numba.core.compiler_machinery import PassManager
    from numba.cuda.compiler import CUDACompiler

MODULES = "gpusort.generated"  # the package that modules of kernels say they are of


@cache
def shorten() -> None:
    """Has kernels of ours compiled by less, from now on. Numba CUDA lets nobody say so for a kernel at a time, as Numba
    does, so its compiler asks here whose kernel it has; others are compiled as ever."""
    from numba.cuda.compiler import CUDACompiler

    whole = CUDACompiler.define_pipelines

    def define_pipelines(self: CUDACompiler) -> list[PassManager]:
        managers = whole(self)
        if not self.state.func_id.func.__module__.startswith(f"{MODULES}."):
            return managers
        self.state.typingctx = Remembering(self.state.typingctx)
        return [shorter_of(manager) for manager in managers]

    CUDACompiler.define_pipelines = define_pipelines  # type: ignore[method-assign]  # there is no other way in


def shorter_of(manager: PassManager) -> PassManager:
    """Of Numba's passes those that do something."""
    shorter = type(manager)("straight")
    for compiler_pass, description in manager.passes:
        if compiler_pass.__name__ not in FIND_NOTHING:
            shorter.add_pass(compiler_pass, description)
    shorter.finalize()
    return shorter
