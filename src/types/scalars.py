"""The scalars of the kernel language: typed, immutable, with integers that wrap as a GPU's do.

NumPy's will not do: in its stubs `np.uint32 - 1` may have any type. Two scalars mix only if they are of one type; a
Python number beside a scalar is a literal of its type. Conversions are explicit, as `U64(word)`. ops.py has the same
for arrays, and a test compares the two.
"""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, Self, TypeAlias, TypeVar, overload

import numpy as np

from .errors import told
from .layout import Type
from .ops import can_cast
from .traced import Traced

if TYPE_CHECKING:
    from typing_extensions import deprecated

L = TypeVar("L", int, float)  # the literals that fit beside a number: no floats beside an integer
Negative: TypeAlias = Literal[-1, -2, -3, -4, -5, -6, -7, -8]  # those that type checkers can refuse
MYPY = False  # mypy takes this name for true


class Scalar:
    """The base of all scalars: a value, a type, equality."""

    __slots__ = ("_value",)
    type: ClassVar[Type]
    _value: Any  # int, float or bool, by subclass

    def __init__(self, value: Scalar | float) -> None:
        raise NotImplementedError  # every class below takes the literals and scalars that fit it

    # So that type checkers refuse `if number`: mypy does where __bool__ is missing (truthy-bool), pyright where it
    # never returns.
    if not MYPY:

        def __bool__(self) -> NoReturn:
            raise TypeError(f"a {self.type} is neither true nor false; compare it, e.g. `x != 0`")

    # A comparison gives the language's Bool, not Python's bool: hence the one override of object's signature.
    def __eq__(self, other: Self | float) -> Bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return TRUE if self._value == self._same(other) else FALSE

    def __ne__(self, other: Self | float) -> Bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return TRUE if self._value != self._same(other) else FALSE

    def __hash__(self) -> int:
        return hash((self.type, self._value))

    def item(self) -> int | float | bool:
        """The value as a Python int, float or bool."""
        value: int | float | bool = self._value
        return value

    def __repr__(self) -> str:
        return f"{self.type}({self._value})"

    def beside(self, other: object) -> Self:
        """An operand beside this one: a scalar of the same type, or a literal, which becomes one."""
        return type(self)(self._same(other))

    def _same(self, other: object) -> int | float | bool:
        """The Python value of an operand of this type, or of a literal that fits it; raises TypeError otherwise."""
        if isinstance(other, Scalar) and type(other) is type(self):
            same: int | float | bool = other._value
            return same
        of = self.type
        if type(other) is int and of.is_integer and of.low <= other <= of.high:
            return other
        fits = isinstance(other, bool) is (of is Type.BOOL)  # to Python a bool is an int
        if not fits or not isinstance(other, (int, float)):
            raise TypeError(f"expected {of} beside {of}, found {other!r}; convert it, e.g. {of}(x)")
        return type(self)(other).item()

    @classmethod
    def of_item(cls, value: float) -> Self:
        """A scalar of a value known to be in range."""
        made = cls.__new__(cls)
        made._value = value
        return made


class Bool(Scalar):
    """True or false, as comparisons give it. `and`, `or` and `not` work; so do `&`, `|`, `^`, `~`."""

    __slots__ = ()
    type = Type.BOOL

    def __init__(self, value: Bool | bool) -> None:
        if type(value) not in (Bool, bool, np.bool_):
            raise TypeError(f"a Bool is made of a Bool or a bool, not of {value!r}; compare it, e.g. `x != 0`")
        self._value = bool(value)

    # Of all scalars this one alone is true or false.
    def __bool__(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return bool(self._value)

    def __and__(self, other: Bool | bool) -> Bool:
        return Bool(self._value & self._same(other))

    def __or__(self, other: Bool | bool) -> Bool:
        return Bool(self._value | self._same(other))

    def __xor__(self, other: Bool | bool) -> Bool:
        return Bool(self._value ^ self._same(other))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Bool:
        return Bool(not self._value)


class Number(Scalar, Generic[L]):
    """The base of integers and floats."""

    __slots__ = ()

    def __add__(self, other: Self | L) -> Self:
        return self._wrapped(self._value + self._same(other))

    def __sub__(self, other: Self | L) -> Self:
        return self._wrapped(self._value - self._same(other))

    def __rsub__(self, other: L) -> Self:
        return self._wrapped(self._same(other) - self._value)

    def __mul__(self, other: Self | L) -> Self:
        return self._wrapped(self._value * self._same(other))

    __radd__, __rmul__ = __add__, __mul__

    def __pos__(self) -> Self:
        return self

    def __lt__(self, other: Self | L) -> Bool:
        return TRUE if self._value < self._same(other) else FALSE

    def __le__(self, other: Self | L) -> Bool:
        return TRUE if self._value <= self._same(other) else FALSE

    def __gt__(self, other: Self | L) -> Bool:
        return TRUE if self._value > self._same(other) else FALSE

    def __ge__(self, other: Self | L) -> Bool:
        return TRUE if self._value >= self._same(other) else FALSE

    def _wrapped(self, value: float) -> Self:
        raise NotImplementedError


class _Whole(Scalar):
    """The base of integers: another scalar is converted modulo the width, a literal must fit."""

    __slots__ = ()

    def __init__(self, value: _Whole | Bool | int) -> None:
        of = self.type
        if isinstance(value, Scalar):
            if type(value) is not type(self) and not can_cast(value.type, of):
                raise TypeError(f"{value.type} does not convert to {of}")
            self._value = of.wrapped(int(value._value))
            return
        if type(value) is not int and not isinstance(value, Traced | np.bool_):
            try:
                value = operator.index(value)
            except TypeError as error:  # of what rounds to an int, too, as a Decimal
                raise TypeError(f"a {of} is made of an integer, not of {value!r}") from error
        if not of.low <= value <= of.high:
            raise ValueError(f"{told(value)} does not fit {of} ({of.low} to {of.high})")
        self._value = value if type(value) is int or isinstance(value, Traced) else int(value)

    def __int__(self) -> int:
        return int(self._value)


class Integer(_Whole, Number[int]):
    """Integers to compute with: arithmetic modulo 2**bits, bit operations, and shifts by an amount modulo the width."""

    __slots__ = ()

    def __index__(self) -> int:
        return int(self._value)

    def __and__(self, other: Self | int) -> Self:
        return self.of_item(self._value & self._bits(other))

    def __or__(self, other: Self | int) -> Self:
        return self.of_item(self._value | self._bits(other))

    def __xor__(self, other: Self | int) -> Self:
        return self.of_item(self._value ^ self._bits(other))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        return self._wrapped(~self._value)

    def __lshift__(self, amount: U32 | int) -> Self:
        return self._wrapped(self._value << self._amount(amount))

    def __rshift__(self, amount: U32 | int) -> Self:
        return self._wrapped(self._value >> self._amount(amount))

    def _amount(self, amount: U32 | int) -> int:
        return _ZERO._bits(amount) % self.type.bits

    def _bits(self, other: Self | int) -> int:
        return int(self._same(other))

    def _wrapped(self, value: float) -> Self:
        return self.of_item(self.type.wrapped(int(value)))


class Unsigned(Integer):
    """Unsigned integers, which also divide."""

    __slots__ = ()

    if TYPE_CHECKING:  # the ignores: pyright does not accept overloads as an override of one method

        @overload
        @deprecated("no unsigned integer is negative; write a - 1")
        def __add__(self, other: Negative) -> Self: ...
        @overload
        def __add__(self, other: Self | int) -> Self: ...
        def __add__(self, other: Self | int) -> Self: ...  # pyright: ignore[reportIncompatibleMethodOverride]

        @overload
        @deprecated("no unsigned integer is negative; write a + 1")
        def __sub__(self, other: Negative) -> Self: ...
        @overload
        def __sub__(self, other: Self | int) -> Self: ...
        def __sub__(self, other: Self | int) -> Self: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    def __floordiv__(self, other: Self | int) -> Self:
        return self.of_item(self._value // self._bits(other))

    def __rfloordiv__(self, other: int) -> Self:
        return self.of_item(self._bits(other) // self._value)

    def __mod__(self, other: Self | int) -> Self:
        return self.of_item(self._value % self._bits(other))

    def __rmod__(self, other: int) -> Self:
        return self.of_item(self._bits(other) % self._value)


class Signed(Integer):
    """Signed integers, which negate; `>>` is arithmetic: it keeps the sign."""

    __slots__ = ()

    def __neg__(self) -> Self:
        return self._wrapped(-self._value)


class Narrow(_Whole):
    """Integers in memory only: `U32(x)` widens one to compute with, `U8(word)` truncates to store."""

    __slots__ = ()


class U8(Narrow):
    """An 8-bit unsigned integer in memory."""

    __slots__ = ()
    type = Type.U8


class U16(Narrow):
    """A 16-bit unsigned integer in memory."""

    __slots__ = ()
    type = Type.U16


class U32(Unsigned):
    """A 32-bit unsigned integer."""

    __slots__ = ()
    type = Type.U32
    numpys = np.uint32  # by which type checkers know the results of reductions and scans


class U64(Unsigned):
    """A 64-bit unsigned integer."""

    __slots__ = ()
    type = Type.U64
    numpys = np.uint64


class I32(Signed):
    """A 32-bit signed integer, two's complement."""

    __slots__ = ()
    type = Type.I32
    numpys = np.int32


class I64(Signed):
    """A 64-bit signed integer, two's complement."""

    __slots__ = ()
    type = Type.I64
    numpys = np.int64


class Float(Number[float]):
    """IEEE 754 floats, rounded after every operation."""

    __slots__ = ()

    def __init__(self, value: Scalar | float) -> None:
        if isinstance(value, Scalar):
            if type(value) is not type(self) and not can_cast(value.type, self.type):
                raise TypeError(f"{value.type} does not convert to {self.type}")
            # One rounding from the scalar's own type: a 64-bit integer must not be rounded to a double first.
            with np.errstate(over="ignore"):
                value = float(np.asarray(value.item(), value.type.dtype).astype(self.type.dtype).item())
        self._value = self._rounded(value)

    def __float__(self) -> float:
        return float(self._value)

    def __truediv__(self, other: Self | float) -> Self:
        with np.errstate(all="ignore"):
            return self._wrapped(float(np.float64(self._value) / np.float64(self._same(other))))

    def __rtruediv__(self, other: float) -> Self:
        return self.of_item(self._same(other)) / self

    def __neg__(self) -> Self:
        return self.of_item(-self._value)

    def _rounded(self, value: float) -> float:
        try:
            return ctypes.c_float(value).value if self.type is Type.F32 else ctypes.c_double(value).value
        except OverflowError as error:  # an int beyond all floats
            raise ValueError(f"{told(value)} does not fit {self.type}") from error
        except TypeError as error:  # of a text, too, which `float` takes
            raise TypeError(f"a {self.type} is made of a number, not of {value!r}") from error

    def _wrapped(self, value: float) -> Self:
        # Rounding the double-precision result of one operation gives the single-precision one: 53 >= 2 * 24 + 2 bits.
        return self.of_item(self._rounded(value))


class F32(Float):
    """A 32-bit float."""

    __slots__ = ()
    type = Type.F32
    numpys = np.float32


class F64(Float):
    """A 64-bit float."""

    __slots__ = ()
    type = Type.F64
    numpys = np.float64


SCALARS: dict[Type, type[Scalar]] = {cls.type: cls for cls in (Bool, U8, U16, U32, U64, I32, I64, F32, F64)}
TRUE, FALSE, _ZERO = Bool(True), Bool(False), U32(0)
UNSIGNED: dict[int, Any] = {1: U8, 2: U16, 4: U32, 8: U64}  # by size in bytes, for moving bits
