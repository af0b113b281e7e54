"""NumPy dtypes: the key that orders each, the number that adds and multiplies each. Byte order is native."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from .errors import UnsupportedTypeError
from .keys import FloatKey, RankedKey, SignedKey, TimeKey, UnsignedKey
from .numbers import FloatNumber, HalfNumber, Numeric, SignedNumber, TruthNumber, UnsignedNumber
from .scalars import F32, F64, I64, U8, U16, U32, U64, Scalar

# A dtype's element and word classes are known at run time only, hence Any.
ArrayKey: TypeAlias = RankedKey[Any, Any]
ArrayNumber: TypeAlias = Numeric[Any, Any]
_Known: TypeAlias = tuple[ArrayKey | None, ArrayNumber | None]
_G = TypeVar("_G", bound=np.generic)
_Of: TypeAlias = type[_G] | np.dtype[_G]
# Names of dtypes by what their numbers are added in.
_U64s: TypeAlias = Literal["?", "bool", "u1", "uint8", "u2", "uint16", "u4", "uint32", "u8", "uint64"]
_I64s: TypeAlias = Literal["i1", "int8", "i2", "int16", "i4", "int32", "i8", "int64"]
_F32s: TypeAlias = Literal["f2", "float16", "f4", "float32"]

SUPPORTED = "bool, integers of 8 to 64 bits, float16, float32, float64, datetime64 and timedelta64"

# The key of a dtype and its number, each None where there is none; by kind and size.
_KNOWN: dict[str, _Known] = {
    "b1": (UnsignedKey(U8, U32, 8), TruthNumber()),
    "u1": (UnsignedKey(U8, U32, 8), UnsignedNumber(U8)),
    "u2": (UnsignedKey(U16, U32, 16), UnsignedNumber(U16)),
    "u4": (UnsignedKey(U32, U32, 32), UnsignedNumber(U32)),
    "u8": (UnsignedKey(U64, U64, 64), UnsignedNumber(U64)),
    "i1": (SignedKey(U8, U32, 8), SignedNumber(U8, 8)),
    "i2": (SignedKey(U16, U32, 16), SignedNumber(U16, 16)),
    "i4": (SignedKey(U32, U32, 32), SignedNumber(U32, 32)),
    "i8": (SignedKey(U64, U64, 64), SignedNumber(U64, 64)),
    "f2": (FloatKey(U16, U32, 16, 0x7C00), HalfNumber()),
    "f4": (FloatKey(U32, U32, 32, 0x7F80_0000), FloatNumber(F32)),
    "f8": (FloatKey(U64, U64, 64, 0x7FF0_0000_0000_0000), FloatNumber(F64)),
    "M8": (TimeKey(), None),
    "m8": (TimeKey(), SignedNumber(U64, 64)),
}
# The fast path: native dtypes, by dtype object.
_KNOWN_OF = {np.dtype(code): known for code, known in _KNOWN.items() if code not in ("M8", "m8")}


def is_ordered(dtype: np.dtype[Any]) -> bool:
    """Whether there is a key for a dtype."""
    return name_of(dtype) in _KNOWN


def key_for(dtype: npt.DTypeLike, argument: str = "dtype") -> ArrayKey:
    """The key that orders elements of a dtype as NumPy does, NaN and NaT last; byte order is ignored.

    Raises UnsupportedTypeError, which names `argument`, for a dtype without an order.
    """
    key, _ = _known(dtype, argument)
    if key is None:
        raise _refused(dtype, argument, "order", SUPPORTED)
    return key


@overload
def number_for(dtype: _Of[np.bool_ | np.unsignedinteger] | _U64s, argument: str = "dtype") -> Numeric[Scalar, U64]: ...
@overload
def number_for(
    dtype: _Of[np.signedinteger | np.timedelta64] | _I64s, argument: str = "dtype"
) -> Numeric[Scalar, I64]: ...
@overload
def number_for(  # type: ignore[overload-overlap]  # NumPy makes float64 a class apart, which no dtype shares with float32
    dtype: _Of[np.float64] | Literal["f8", "float64"], argument: str = "dtype"
) -> Numeric[Scalar, F64]: ...
@overload
def number_for(dtype: _Of[np.float16 | np.float32] | _F32s, argument: str = "dtype") -> Numeric[Scalar, F32]: ...
@overload
def number_for(dtype: npt.DTypeLike, argument: str = "dtype") -> ArrayNumber: ...
def number_for(dtype: npt.DTypeLike, argument: str = "dtype") -> ArrayNumber:
    """How elements of a dtype are added and multiplied; byte order is ignored.

    Raises UnsupportedTypeError, which names `argument`, for a dtype that has neither.
    """
    _, number = _known(dtype, argument)
    if number is None:
        supported = "bool, integers of 8 to 64 bits, float16, float32, float64 and timedelta64"
        raise _refused(dtype, argument, "add or multiply", supported)
    return number


def _known(dtype: npt.DTypeLike, argument: str) -> _Known:
    found = _KNOWN_OF.get(dtype) if isinstance(dtype, np.dtype) else None
    return _KNOWN.get(name_of(checked_dtype(dtype, argument)), (None, None)) if found is None else found


def _refused(dtype: npt.DTypeLike, argument: str, what: str, supported: str) -> UnsupportedTypeError:
    wanted = np.dtype(dtype)
    if wanted.names is not None:
        supported += f"; those of several fields by a {'key' if what == 'order' else 'monoid'} of your own"
    elif wanted.kind == "O":
        supported += "; NumPy makes objects of what has no dtype, such as None and integers beyond 64 bits"
    elif wanted.kind in "SU" and what == "order":
        supported += "; texts of up to 8 bytes as numbers that order them: x.astype('S8').view('>u8')"
    return UnsupportedTypeError(f"{argument}: cannot {what} elements of dtype {wanted}; supported: {supported}")


def checked_dtype(dtype: npt.DTypeLike, argument: str = "dtype") -> np.dtype[Any]:
    """What a caller gives as a dtype; raises UnsupportedTypeError for what NumPy makes none of."""
    try:
        return np.dtype("none" if cast(object, dtype) is None else dtype)  # NumPy takes None for float64
    except (TypeError, ValueError) as error:  # the latter of fields that do not fit together
        raise UnsupportedTypeError(f"{argument}: expected a dtype of NumPy, e.g. 'f4', found {dtype!r}") from error


def name_of(dtype: np.dtype[Any]) -> str:
    """Kind and size without byte order, such as "f4": so texts call it, too."""
    return f"{dtype.kind}{dtype.itemsize}"


def native(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype in native byte order. NumPy's texts of any length have none, and refuse to be given one."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def infinity_of(dtype: np.dtype[np.generic]) -> int:
    """The bits of a float dtype's infinity."""
    return cast("FloatKey[Any, Any]", key_for(dtype)).infinity
