"""A shorter Numba CUDA compiler pipeline for generated kernels: without the passes that have no effect on them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..typing_cache import CachedTyping
from .numba_passes import NO_EFFECT

if TYPE_CHECKING:
    from numba.core.compiler_machinery import PassManager
    from numba.cuda.compiler import CUDACompiler

MODULES = "gpusort.generated"  # the package in which generated modules claim to be


@cache
def install_short_pipeline() -> None:
    """Patches Numba CUDA's compiler to use the shorter pipeline for kernels in MODULES, and its own for all others.

    Numba takes a pipeline class for each function; Numba CUDA has no such option, hence the patch.
    """
    from numba.cuda.compiler import CUDACompiler

    whole = CUDACompiler.define_pipelines

    def define_pipelines(self: CUDACompiler) -> list[PassManager]:
        managers = whole(self)
        if not self.state.func_id.func.__module__.startswith(f"{MODULES}."):
            return managers
        self.state.typingctx = CachedTyping(self.state.typingctx)
        return [without_no_effect(manager) for manager in managers]

    CUDACompiler.define_pipelines = define_pipelines  # type: ignore[method-assign]  # Numba CUDA has no hook for it


def without_no_effect(manager: PassManager) -> PassManager:
    """The same pipeline without the passes in NO_EFFECT."""
    shorter = type(manager)("straight")
    for compiler_pass, description in manager.passes:
        if compiler_pass.__name__ not in NO_EFFECT:
            shorter.add_pass(compiler_pass, description)
    shorter.finalize()
    return shorter
