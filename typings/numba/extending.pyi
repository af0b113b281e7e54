from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload, type_check_only

from llvmlite import ir

from .core.typing import Signature
from .types import Array, Type

_F = TypeVar("_F", bound=Callable[..., object])

# Numba's contexts are handed to an intrinsic and handed back to Numba, never looked into.
@type_check_only
class TypingContext(Protocol): ...

@type_check_only
class ArrayStruct(Protocol):
    @property
    def data(self) -> ir.Value: ...

@type_check_only
class _ArrayStructMaker(Protocol):
    def __call__(
        self,
        context: CodegenContext,
        builder: ir.IRBuilder,
        value: ir.Value | None = None,
        ref: ir.Value | None = None,
    ) -> ArrayStruct: ...

@type_check_only
class _Codegen(Protocol):
    # The target's triple, the processor's name, and its features as "+avx512f,-amx,…".
    def magic_tuple(self) -> tuple[str, str, str]: ...

@type_check_only
class CodegenContext(Protocol):
    def codegen(self) -> _Codegen: ...
    def make_array(self, typ: Array) -> _ArrayStructMaker: ...
    def cast(self, builder: ir.IRBuilder, val: ir.Value, fromty: Type, toty: Type) -> ir.Value: ...
    def get_data_type(self, ty: Type) -> ir.Type: ...
    def get_dummy_value(self) -> ir.Constant: ...
    def get_value_type(self, ty: Type) -> ir.Type: ...
    def get_constant(self, ty: Type, val: float) -> ir.Constant: ...

_Emit = Callable[[CodegenContext, ir.IRBuilder, Signature, tuple[ir.Value, ...]], ir.Value]

@type_check_only
class Intrinsic(Protocol):
    # Inside compiled code this is an ordinary call, of the type its signature says; in Python it always raises
    # NotImplementedError.
    def __call__(self, *args: object) -> Any: ...

@overload
def intrinsic(func: Callable[..., tuple[Signature, _Emit] | None], /) -> Intrinsic: ...
@overload
def intrinsic(
    *, prefer_literal: bool = False
) -> Callable[[Callable[..., tuple[Signature, _Emit] | None]], Intrinsic]: ...
def register_jitable(fn: _F, /) -> _F: ...
