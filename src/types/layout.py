"""The scalar types of the IR: name, size, NumPy dtype."""

from __future__ import annotations

from enum import Enum

import numpy as np


class Type(Enum):
    """A scalar type. U8 and U16 exist in memory only: they are widened to compute with and truncated to store."""

    BOOL = "bool"
    U8 = "uint8"
    U16 = "uint16"
    U32 = "uint32"
    U64 = "uint64"
    I32 = "int32"
    I64 = "int64"
    F32 = "float32"
    F64 = "float64"

    def __init__(self, name: str) -> None:
        self.dtype: np.dtype[np.generic] = np.dtype(name)

    @property
    def size(self) -> int:
        """Bytes in memory; 1 for BOOL."""
        return self.dtype.itemsize

    @property
    def bits(self) -> int:
        return 8 * self.size

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer to compute with: U32 or U64."""
        return self in (Type.U32, Type.U64)

    @property
    def is_integer(self) -> bool:
        return self.is_unsigned or self in (Type.I32, Type.I64)

    @property
    def is_float(self) -> bool:
        return self in (Type.F32, Type.F64)

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float

    def __str__(self) -> str:
        return self.name.capitalize()


def wrap(type: Type, value: int) -> int:
    """`value` modulo 2**bits, as an integer of this type (two's complement)."""
    value &= (1 << type.bits) - 1
    if type in (Type.I32, Type.I64) and value >> (type.bits - 1):
        value -= 1 << type.bits
    return value


def bounds(type: Type) -> tuple[int, int]:
    """The least and the greatest integer of this type."""
    if type in (Type.I32, Type.I64):
        half = 1 << (type.bits - 1)
        return -half, half - 1
    return 0, (1 << type.bits) - 1
