"""The WGSL target's type names, literals and operation table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...kernel import ir
from ...types import ops
from ...types.layout import Type
from ..render import Emit, Row

TYPE_NAMES: Mapping[Type, str] = {
    Type.BOOL: "bool",
    Type.U32: "u32",
    Type.I32: "i32",
    Type.F32: "f32",
    Type.U64: "vec2<u32>",  # a lane mask; legalisation leaves no other U64
}


def literal(constant: ir.Const) -> str:
    """A literal; a bitcast for -0.0 and subnormal numbers, whose decimal form a translator may flush to 0."""
    value = constant.value
    if constant.type is Type.BOOL:
        return "true" if value else "false"
    if constant.type is Type.F32:
        bits = float_bits(constant)
        if bits and not bits & 0x7F80_0000:
            return f"bitcast<f32>({bits:#010x}u)"
        return f"{np.float32(value)}f"
    if constant.type is Type.I32:
        return f"{value}i" if value != -(2**31) else "i32(-2147483648)"  # -2147483648i negates 2147483648, no i32
    return f"{value}u"


def float_bits(constant: ir.Const) -> int:
    return int(np.float32(constant.value).view(np.uint32))


def _shift(sign: str) -> Emit:
    """A shift modulo 32. WGSL rejects larger constant amounts, and devices differ on others."""

    def row(node: ir.Apply, operands: Sequence[str]) -> str:
        amount = node.operands[1]
        if isinstance(amount, ir.Const):
            return f"({operands[0]} {sign} {int(amount.value) % 32}u)"
        return f"({operands[0]} {sign} ({operands[1]} & 31u))"

    return row


def _cast(node: ir.Apply, operands: Sequence[str]) -> str:
    source = node.operands[0]
    if source.type is not Type.U64:
        return f"{TYPE_NAMES[node.type]}({operands[0]})"
    # A word of a lane mask: `cast(mask)` is the lower, `cast(shr(mask, 32))` the upper (see legalize.py).
    if isinstance(source, ir.Apply):
        return f"{operands[0]}.y"
    return f"{operands[0]}.x"


def _shr(node: ir.Apply, operands: Sequence[str]) -> str:
    if node.type is Type.U64:
        return operands[0]  # the upper word of a lane mask, which `_cast` selects
    return _shift(">>")(node, operands)


def _logical(bits: str, logic: str) -> Row:
    """An operator for integers, and another for Bools."""
    return lambda node, operands: (logic if node.type is Type.BOOL else bits).format(*operands)


OPERATIONS: Mapping[str, Row] = {
    **{op.name: f"({{0}} {op.sign} {{1}})" for op in ops.OPS if op.sign},
    ops.ADD_NOWRAP.name: "({0} + {1})",
    ops.FLOORDIV.name: "({0} / {1})",
    ops.NEG.name: "(-{0})",
    ops.XOR.name: _logical("({0} ^ {1})", "({0} != {1})"),
    ops.INVERT.name: _logical("(~{0})", "(!{0})"),
    ops.SHL.name: _shift("<<"),
    ops.SHR.name: _shr,
    ops.MIN.name: "min({0}, {1})",
    ops.MAX.name: "max({0}, {1})",
    ops.SELECT.name: "select({2}, {1}, {0})",
    ops.COUNT_ONES.name: "countOneBits({0})",
    ops.LEADING_ZEROS.name: "countLeadingZeros({0})",
    ops.TRAILING_ZEROS.name: "countTrailingZeros({0})",
    ops.SQRT.name: "sqrt({0})",
    ops.EXP.name: "exp({0})",
    ops.LOG.name: "log({0})",
    ops.CAST.name: _cast,
    ops.BITCAST.name: lambda node, operands: f"bitcast<{TYPE_NAMES[node.type]}>({operands[0]})",
}
