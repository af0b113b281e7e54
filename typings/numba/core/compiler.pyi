from collections.abc import Mapping
from typing import Any, Protocol, type_check_only

from numba.core.compiler_machinery import PassManager
from numba.core.typing import Signature
from numba.types import Type

@type_check_only
class TypingContext(Protocol):
    def resolve_function_type(
        self, func: Type, args: tuple[Type, ...], kws: Mapping[str, Type]
    ) -> Signature | None: ...

@type_check_only
class _State(Protocol):
    typingctx: TypingContext

class CompileResult:
    # From what _reduce gave, as plain data and code, for the same version of Numba.
    @classmethod
    def _rebuild(cls, target_context: Any, *reduced: object) -> CompileResult: ...

class CompilerBase:
    @property
    def state(self) -> _State: ...
    def define_pipelines(self) -> list[PassManager]: ...

class DefaultPassBuilder:
    @staticmethod
    def define_nopython_pipeline(state: object) -> PassManager: ...
