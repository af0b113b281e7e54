from collections.abc import Mapping
from types import FunctionType
from typing import Protocol, type_check_only

from numba.core.compiler_machinery import PassManager
from numba.core.typing import Signature
from numba.types import Type

@type_check_only
class TypingContext(Protocol):
    def resolve_function_type(
        self, func: Type, args: tuple[Type, ...], kws: Mapping[str, Type]
    ) -> Signature | None: ...

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
