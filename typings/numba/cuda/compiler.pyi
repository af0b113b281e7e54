from types import FunctionType
from typing import Protocol, type_check_only

from numba.core.compiler import TypingContext
from numba.core.compiler_machinery import PassManager

@type_check_only
class _FunctionIdentity(Protocol):
    @property
    def func(self) -> FunctionType: ...

@type_check_only
class _State(Protocol):
    typingctx: TypingContext
    @property
    def func_id(self) -> _FunctionIdentity: ...

class CUDACompiler:
    @property
    def state(self) -> _State: ...
    def define_pipelines(self) -> list[PassManager]: ...
