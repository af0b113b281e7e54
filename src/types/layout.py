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
        # Attributes, not properties: the compiler asks for them with every node.
        self.dtype: np.dtype[np.generic] = np.dtype(name)
        self.size: int = self.dtype.itemsize  # bytes in memory; 1 for BOOL
        self.bits: int = 8 * self.size
        self.is_float: bool = self.dtype.kind == "f"
        self.is_narrow: bool = self.dtype.kind == "u" and self.size < 4  # U8 and U16
        # Those to compute with.
        self.is_unsigned: bool = self.dtype.kind == "u" and not self.is_narrow
        self.is_integer: bool = self.is_unsigned or self.dtype.kind == "i"
        self.is_number: bool = self.is_integer or self.is_float
        self.sign: int = 1 << (self.bits - 1) if self.dtype.kind == "i" else 0  # the sign's bit
        self.mask: int = (1 << self.bits) - 1
        self.bounds = self.low, self.high = -self.sign, self.mask - self.sign  # the least and the greatest integer

    # Enum's own hashes the name, in Python.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.name.capitalize()

    def wrapped(self, value: int) -> int:
        """A number modulo 2**bits, as an integer of this type (two's complement)."""
        value &= self.mask
        return value - ((value & self.sign) << 1)
