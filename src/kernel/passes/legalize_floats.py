"""32-bit floats where the compiler behind WGSL may take them for real numbers.

WGSL lets a compiler assume that there is neither infinity nor NaN, and overlook the sign of a zero: drivers make 0 of
`a - a`, `a` of `a + 0.0`, `-a` of `0.0 - a`, `b` of `(a + b) - a`, and a fused multiply-add of `a * b + c`. Translators
write `a != b` such that it does not hold for NaN. So floats are compared as the integers that their bits are, and what
an operation works on or gives is hidden: its bits are combined with a parameter that is always zero, which no compiler
knows. That costs an instruction on integers or two beside each on floats.
"""

from __future__ import annotations

from collections.abc import Callable

from ...types import ops
from ...types.layout import Type
from ...types.ops import Op
from .. import ir
from .legalize_build import Builder

_INFINITY = 0x7F80_0000
_SIGN = 1 << 31
_ORDERED = {ops.LT: ops.LT, ops.GT: ops.LT, ops.LE: ops.LE, ops.GE: ops.LE}


class Floats:
    """Operations on F32. `zero` gives the parameter that hides."""

    def __init__(self, build: Builder, zero: Callable[[], ir.Expression]) -> None:
        self.build = build
        self._zero = zero

    def apply(self, op: Op, *operands: ir.Expression) -> ir.Expression:
        """Any operation with floats among its operands, or as its result, but for SELECT and conversions."""
        if all(isinstance(operand, ir.Const) for operand in operands):
            return self.build.apply(op, *operands)
        if op in (ops.EQ, ops.NE) or op in _ORDERED:
            return self._compared(op, *operands)
        if op is ops.NEG:
            sign = self.build.apply(ops.OR, self.build.word(_SIGN), self._zero())
            return self._with(ops.XOR, operands[0], sign)
        if len(operands) == 2:
            first, second = operands
            given = self._given(first), self._given(second, op in (ops.SUB, ops.DIV))
            return self._with(ops.XOR, self.build.apply(op, *given), self._zero())
        return self._with(ops.XOR, self.build.apply(op, *operands), self._zero())

    def _given(self, operand: ir.Expression, meets_itself: bool = False) -> ir.Expression:
        """An operand, hidden where it is a zero, or where the other may be the same and the result thus known.

        By another operation than results are: twice the same would be none.
        """
        is_zero = isinstance(operand, ir.Const) and operand.value == 0
        return self._with(ops.OR, operand, self._zero()) if is_zero or meets_itself else operand

    def _with(self, op: Op, value: ir.Expression, bits: ir.Expression) -> ir.Expression:
        word = self.build.bits_as(Type.U32, value)
        return self.build.bits_as(Type.F32, ir.Apply(op, (word, bits), Type.U32, self.build.span))

    # -- comparisons --------------------------------------------------------------------------------------

    def _compared(self, op: Op, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        build = self.build
        if op is ops.NE:
            return build.apply(ops.INVERT, self._compared(ops.EQ, a, b))
        if op in (ops.GT, ops.GE):
            a, b = b, a
        # Compilers hold the sign of a NaN for free to choose, anew at each use: only its other bits tell it.
        first, second = (build.bound(build.bits_as(Type.U32, value), "bits") for value in (a, b))
        numbers = build.apply(ops.AND, self._is_number(first), self._is_number(second))
        return build.apply(
            ops.AND, numbers, build.apply(_ORDERED.get(op, ops.EQ), self._rank(first), self._rank(second))
        )

    def _is_number(self, bits: ir.Expression) -> ir.Expression:
        magnitude = self.build.apply(ops.AND, bits, self.build.word(_SIGN - 1))
        return self.build.apply(ops.LE, magnitude, self.build.word(_INFINITY))

    def _rank(self, bits: ir.Expression) -> ir.Expression:
        """An I32 that orders as the float does, the same for both zeros."""
        build = self.build
        signed = build.bits_as(Type.I32, bits)
        lowest, none = (ir.Const(number, Type.I32, build.span) for number in (-_SIGN, 0))
        below = build.apply(ops.SUB, lowest, signed)
        return build.apply(ops.SELECT, build.apply(ops.LT, signed, none), below, signed)
