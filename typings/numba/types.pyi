from typing import Literal

from .core.typing import Signature

_Layout = Literal["C", "F", "A"]

class Type:
    name: str
    def __init__(self, name: str) -> None: ...
    # Numba also casts a Python value through this call; gpusort only builds signatures with it.
    def __call__(self, *args: Type) -> Signature: ...
    def __getitem__(self, args: slice | tuple[slice, ...], /) -> Array: ...
    def __hash__(self) -> int: ...

class Number(Type): ...
class Boolean(Type): ...

class Integer(Number):
    @property
    def bitwidth(self) -> int: ...
    @property
    def signed(self) -> bool: ...

class IntegerLiteral(Integer):
    @property
    def literal_value(self) -> int: ...

class Float(Number):
    @property
    def bitwidth(self) -> int: ...

# The type of a type: what `u4` is inside compiled code.
class NumberClass(Type):
    @property
    def instance_type(self) -> Number: ...

class CPointer(Type):
    dtype: Type
    addrspace: int | None
    def __init__(self, dtype: Type, addrspace: int | None = None) -> None: ...

class Array(Type):
    @property
    def dtype(self) -> Type: ...
    @property
    def ndim(self) -> int: ...
    @property
    def layout(self) -> _Layout: ...
    def __init__(
        self,
        dtype: Type,
        ndim: int,
        layout: _Layout,
        readonly: bool = False,
        name: str | None = None,
        aligned: bool = True,
    ) -> None: ...

class BaseTuple(Type): ...

class UniTuple(BaseTuple):
    @property
    def count(self) -> int: ...
    def __init__(self, dtype: Type, count: int) -> None: ...

void: Type
none: Type
voidptr: Type
boolean: Boolean
uint8: Integer
uint16: Integer
uint32: Integer
uint64: Integer
uintp: Integer
int8: Integer
int16: Integer
int32: Integer
int64: Integer
intp: Integer
float16: Float
float32: Float
float64: Float
