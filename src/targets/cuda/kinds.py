"""The types of values in a kernel's source, by which intrinsics choose their instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

import attrs
from llvmlite import ir


@attrs.frozen
class Integer:
    """An integer; its width in bits."""

    bitwidth: int
    signed: bool = False

    @property
    def bytes(self) -> int:
        return self.bitwidth // 8

    @property
    def llvm(self) -> ir.Type:
        return ir.IntType(self.bitwidth)


@attrs.frozen
class Float:
    """A single or double."""

    bitwidth: int

    @property
    def bytes(self) -> int:
        return self.bitwidth // 8

    @property
    def llvm(self) -> ir.Type:
        return ir.FloatType() if self.bitwidth == 32 else ir.DoubleType()


@attrs.frozen
class Boolean:
    """True or False: a bit, and a byte in memory."""

    bytes: ClassVar[int] = 1

    @property
    def llvm(self) -> ir.Type:
        return ir.IntType(1)


Scalar: TypeAlias = Integer | Float | Boolean


@attrs.frozen
class Number:
    """A plain number among an intrinsic's operands: it chooses the instructions, and is no value."""

    value: int


@attrs.frozen
class Pointer:
    """Storage: its element."""

    element: Scalar


@attrs.frozen
class Shared:
    """Workgroup memory: its element."""

    element: Scalar


@attrs.frozen
class Private:
    """Registers: their element."""

    element: Scalar


@attrs.frozen
class Nothing:
    """What a store returns."""


Kind: TypeAlias = Scalar | Number | Pointer | Shared | Private | Nothing

BOOLEAN = Boolean()
UINT8, UINT16, UINT32, UINT64 = (Integer(bits) for bits in (8, 16, 32, 64))
INT32, INT64 = (Integer(bits, signed=True) for bits in (32, 64))
FLOAT32, FLOAT64 = Float(32), Float(64)
NOTHING = Nothing()

# By the names that kernels' sources have for them.
SCALARS: Mapping[str, Scalar] = {
    "b1": BOOLEAN, "u1": UINT8, "u2": UINT16, "u4": UINT32, "u8": UINT64, "i4": INT32, "i8": INT64,
    "f4": FLOAT32, "f8": FLOAT64,
}  # fmt: skip
