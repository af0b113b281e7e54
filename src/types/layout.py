"""The scalar types of the IR: name, size, NumPy dtype."""

from __future__ import annotations

from enum import Enum
from functools import cache

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
        # Attributes, not properties: the compiler asks for them with every node.
        self.dtype: np.dtype[np.generic] = np.dtype(name)
        self.size: int = self.dtype.itemsize  # bytes in memory; 1 for BOOL
        self.bits: int = 8 * self.size
        self.is_float: bool = self.dtype.kind == "f"
        # Those to compute with: U8 and U16 are not.
        self.is_unsigned: bool = self.dtype.kind == "u" and self.size >= 4
        self.is_integer: bool = self.is_unsigned or self.dtype.kind == "i"
        self.is_number: bool = self.is_integer or self.is_float

    # Enum's own hashes the name, in Python.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.name.capitalize()


def wrap(type: Type, value: int) -> int:
    """`value` modulo 2**bits, as an integer of this type (two's complement)."""
    value &= (1 << type.bits) - 1
    if type in (Type.I32, Type.I64) and value >> (type.bits - 1):
        value -= 1 << type.bits
    return value


@cache
def bounds(type: Type) -> tuple[int, int]:
    """The least and the greatest integer of this type."""
    if type in (Type.I32, Type.I64):
        half = 1 << (type.bits - 1)
        return -half, half - 1
    return 0, (1 << type.bits) - 1
