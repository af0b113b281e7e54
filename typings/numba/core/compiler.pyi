from typing import Any

from numba.core.compiler_machinery import PassManager

class CompileResult:
    # From what _reduce gave, as plain data and code, for the same version of Numba.
    @classmethod
    def _rebuild(cls, target_context: Any, *reduced: object) -> CompileResult: ...

class CompilerBase:
    @property
    def state(self) -> object: ...
    def define_pipelines(self) -> list[PassManager]: ...

class DefaultPassBuilder:
    @staticmethod
    def define_nopython_pipeline(state: object) -> PassManager: ...
