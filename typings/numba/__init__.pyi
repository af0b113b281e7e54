# What gpusort uses of Numba, checked against 0.61 and 0.68.
from collections.abc import Callable
from typing import Generic, Literal, ParamSpec, Protocol, TypedDict, TypeVar, overload, type_check_only

from typing_extensions import Unpack

from . import types as types
from .core.typing import Signature

_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)

__version__: str

_ToSignature = Signature | tuple[types.Type, ...] | str

@type_check_only
class _JitOptions(TypedDict, total=False):
    cache: bool
    nogil: bool
    parallel: bool
    fastmath: bool | set[str]
    error_model: Literal["python", "numpy"]
    boundscheck: bool | None
    inline: Literal["never", "always"]
    debug: bool

@type_check_only
class _CompileStats(Protocol):
    @property
    def cache_path(self) -> str | None: ...

@type_check_only
class _Dispatcher(Generic[_P, _R_co]):
    @property
    def py_func(self) -> Callable[_P, _R_co]: ...
    @property
    def signatures(self) -> list[tuple[types.Type, ...]]: ...
    @property
    def stats(self) -> _CompileStats: ...
    def compile(self, sig: _ToSignature) -> Callable[_P, _R_co]: ...
    @overload
    def inspect_llvm(self, signature: None = None) -> dict[tuple[types.Type, ...], str]: ...
    @overload
    def inspect_llvm(self, signature: tuple[types.Type, ...]) -> str: ...
    @overload
    def inspect_asm(self, signature: None = None) -> dict[tuple[types.Type, ...], str]: ...
    @overload
    def inspect_asm(self, signature: tuple[types.Type, ...]) -> str: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

@type_check_only
class _JitDecorator(Protocol):
    def __call__(self, fn: Callable[_P, _R], /) -> _Dispatcher[_P, _R]: ...

@overload
def njit(fn: Callable[_P, _R], /, **options: Unpack[_JitOptions]) -> _Dispatcher[_P, _R]: ...
@overload
def njit(
    signature: _ToSignature | list[Signature] | None = None, /, **options: Unpack[_JitOptions]
) -> _JitDecorator: ...
