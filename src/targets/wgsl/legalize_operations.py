"""Lowers operations of any type to 32-bit ones, and subgroup operations to ballot, shuffle and sums.

WGSL permits fast-math: compilers may assume that there is no infinity or NaN, and ignore the sign of zero. Drivers fold
`a - a` to 0, `a + 0.0` to `a`, `0.0 - a` to `-a`, `(a + b) - a` to `b`, and contract `a * b + c` to a fused
multiply-add; translators emit `a != b` in a form that is false for NaN. So floats are compared as integers, and float
operands and results are hidden from the optimiser: their bits are combined with a parameter that is always zero, which
no compiler knows. That costs one or two integer instructions for each float operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ...kernel import ir
from ...types import ops
from ...types.errors import CapabilityError
from ...types.layout import Type
from ...types.ops import Op, SubgroupOp
from .legalize_words import Pair, Value, Wide, WordBuilder

Leaf: TypeAlias = ir.Read | ir.Argument | ir.Identity | ir.Length

MASK_BITS = 64  # bits of a lane mask
_SIGNED = frozenset({Type.I32, Type.I64})
_INTEGERS = frozenset({Type.U64, Type.I64})
_MOVES = (ops.SELECT, ops.CAST, ops.BITCAST)  # no float arithmetic
_COUNTS = (ops.COUNT_ONES, ops.LEADING_ZEROS, ops.TRAILING_ZEROS)
_ORDERS = (ops.EQ, ops.NE, ops.LT, ops.LE, ops.GT, ops.GE)
_INFINITY = 0x7F80_0000
_SIGN = 1 << 31


class Operations:
    """Lowers expressions. `leaf` lowers leaves; `zero` gives the parameter that is always zero."""

    def __init__(self, build: WordBuilder, leaf: Callable[[Leaf], Value], zero: Callable[[], ir.Expression]) -> None:
        self.build = build
        self.wide = Wide(build)
        self.leaf = leaf
        self._zero = zero

    def value(self, node: ir.Expression) -> Value:
        match node:
            case ir.Const():
                return self._constant(node)
            case ir.Apply():
                return self._apply(node)
            case _:
                return self.leaf(node)

    def word(self, node: ir.Expression) -> ir.Expression:
        """Lowers an expression of at most 32 bits."""
        return word_of(self.value(node))

    def _constant(self, node: ir.Const) -> Value:
        if node.type is Type.F64:
            return self.wide.constant(int(np.float64(node.value).view(np.uint64)))
        if node.type in _INTEGERS:
            return self.wide.constant(int(node.value))
        if node.type in (Type.U8, Type.U16):
            return self.build.word(int(node.value))
        return node

    def _apply(self, node: ir.Apply) -> Value:
        types = [operand.type for operand in node.operands]
        if Type.F64 in (node.type, *types) and node.op not in (ops.SELECT, ops.BITCAST):
            raise CapabilityError(
                f"{node.span}: {str(node.op)!r} needs float64 arithmetic, which is not available in WGSL; "
                f"64-bit floats can be moved there, and looked at as U64 with bitcast"
            )
        if node.op not in ops.OPS and any(type.bits == 64 for type in (node.type, *types)):
            raise self._lacking(node)
        values = [self.value(operand) for operand in node.operands]
        if node.op in (ops.CAST, ops.BITCAST):
            return self._converted(node, types[0], values[0])
        if any(isinstance(value, Pair) for value in values):
            return self._wide(node, values)
        words = list(map(word_of, values))
        computes_floats = Type.F32 in (node.type, *types) and node.op in ops.OPS and node.op not in _MOVES
        return self._of_floats(node.op, *words) if computes_floats else self.build.apply(node.op, *words)

    @staticmethod
    def _lacking(node: ir.Apply) -> CapabilityError:
        return CapabilityError(f"{node.span}: no {str(node.op)!r} of {node.operands[0].type} in 32-bit words")

    def _converted(self, node: ir.Apply, source: Type, value: Value) -> Value:
        to = node.type
        if isinstance(value, Pair):
            if to.bits == 64:
                return value
            if to is Type.F32:
                return self.wide.to_float(value, source is Type.I64)
            return self.build.bits_as(to, value.low)
        if to.bits == 64:
            return self.wide.widened(value)
        if to in (Type.U8, Type.U16):
            return self.build.and_(self.build.cast(Type.U32, value), (1 << to.bits) - 1)
        return self.build.bits_as(to, value) if node.op is ops.BITCAST else self.build.cast(to, value)

    # -- 64 bits ------------------------------------------------------------------------------------------

    def _wide(self, node: ir.Apply, values: Sequence[Value]) -> Value:
        op, wide = node.op, self.wide
        if op is ops.SELECT:
            return wide.select(word_of(values[0]), _pair(values[1]), _pair(values[2]))
        first, signed = _pair(values[0]), node.operands[0].type in _SIGNED
        if op is ops.SHL:
            return wide.shl(first, word_of(values[1]))
        if op is ops.SHR:
            return wide.shr(first, word_of(values[1]), signed)
        if op in _COUNTS:
            return wide.count(op, first)
        if op in (ops.INVERT, ops.NEG):
            return wide.invert(first) if op is ops.INVERT else wide.neg(first)
        second = _pair(values[1])
        if op in _ORDERS:
            return wide.compare(op, first, second, signed)
        if op in (ops.MIN, ops.MAX):
            return wide.extreme(op, first, second, signed)
        if op in (ops.AND, ops.OR, ops.XOR):
            return wide.bitwise(op, first, second)
        if op in (ops.FLOORDIV, ops.MOD):
            return self._divided(op, first, second)
        arithmetic = {ops.ADD: wide.add, ops.SUB: wide.sub, ops.MUL: wide.mul}.get(op)
        if arithmetic is None:
            raise self._lacking(node)
        return arithmetic(first, second)

    def _divided(self, op: Op, value: Pair, by: Pair) -> Value:
        if isinstance(by.low, ir.Const) and isinstance(by.high, ir.Const):
            divisor = int(by.low.value) | int(by.high.value) << 32
            if divisor.bit_count() == 1:
                if op is ops.MOD:
                    return self.wide.bitwise(ops.AND, value, self.wide.constant(divisor - 1))
                return self.wide.shr(value, self.build.word(divisor.bit_length() - 1), signed=False)
        quotient, rest = self.wide.divide(value, by)
        return quotient if op is ops.FLOORDIV else rest

    # -- floats -------------------------------------------------------------------------------------------

    def _of_floats(self, op: Op, *operands: ir.Expression) -> ir.Expression:
        """Lowers an operation with float operands or result, except selects and conversions."""
        build = self.build
        if all(isinstance(operand, ir.Const) for operand in operands):
            return build.apply(op, *operands)
        if op in _ORDERS:
            return self._compared(op, *operands)
        if op is ops.NEG:
            return self._with(ops.XOR, operands[0], build.or_(_SIGN, self._zero()))
        if len(operands) == 2:
            first, second = operands
            operands = self._given(first), self._given(second, op in (ops.SUB, ops.DIV))
        return self._with(ops.XOR, build.apply(op, *operands), self._zero())

    def _given(self, operand: ir.Expression, meets_itself: bool = False) -> ir.Expression:
        """Hides an operand that is zero, or that may equal the other one (`meets_itself`), so that nothing is folded.

        By OR, as results are hidden by XOR: two XORs with the same word would cancel.
        """
        is_zero = isinstance(operand, ir.Const) and operand.value == 0
        return self._with(ops.OR, operand, self._zero()) if is_zero or meets_itself else operand

    def _with(self, op: Op, value: ir.Expression, bits: ir.Expression) -> ir.Expression:
        word = self.build.bits_as(Type.U32, value)
        return self.build.bits_as(Type.F32, self.build.apply(op, word, bits))

    def _compared(self, op: Op, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        build = self.build
        if op is ops.NE:
            return build.invert(self._compared(ops.EQ, a, b))
        if op in (ops.GT, ops.GE):
            a, b = b, a
        # Compilers may choose the sign of a NaN, differently at each use: test the other bits.
        first, second = (build.bound(build.bits_as(Type.U32, value), "bits") for value in (a, b))
        numbers = build.and_(self._is_number(first), self._is_number(second))
        order = {ops.GT: ops.LT, ops.GE: ops.LE}.get(op, op)
        return build.and_(numbers, build.apply(order, self._rank(first), self._rank(second)))

    def _is_number(self, bits: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.LE, self.build.and_(bits, _SIGN - 1), _INFINITY)

    def _rank(self, bits: ir.Expression) -> ir.Expression:
        """An I32 in the order of the floats, equal for both zeros."""
        build = self.build
        signed = build.bits_as(Type.I32, bits)
        lowest, none = (ir.Const(number, Type.I32, build.span) for number in (-_SIGN, 0))
        return build.select(build.below(signed, none), build.sub(lowest, signed), signed)


class Lanes:
    """Lowers subgroup operations; each method returns the resulting value."""

    def __init__(self, build: WordBuilder, group_size: int, most: int) -> None:
        self.build = build
        self.group_size = group_size
        self.most = most  # lanes in a subgroup

    def subgroup(self, op: SubgroupOp, operands: Sequence[Value], bits: int) -> Value:
        """`bits` is the number of low bits of the first operand that may be set."""
        first = operands[0]
        if op.is_shuffle:
            return self._shuffle(op, first, word_of(operands[1]))
        if op is SubgroupOp.BALLOT:
            return self._ballot(word_of(first))
        if op is SubgroupOp.MATCH:
            return self._match(word_of(first), bits)
        return self._own(op, "sum", Type.U32, word_of(first))

    def _own(self, op: SubgroupOp, name: str, type: Type, *operands: ir.Expression) -> ir.Read:
        result = self.build.variable(name, type)
        self.build.emit(ir.Subgroup(result, op, operands, self.build.span))
        return self.build.read(result)

    def _ballot(self, condition: ir.Expression) -> Pair:
        build = self.build
        mask = self._own(SubgroupOp.BALLOT, "mask", Type.U64, condition)
        if self.most <= 32:  # the upper word is constant zero, which folds away
            return Pair(build.cast(Type.U32, mask), build.word(0))
        return Pair(build.cast(Type.U32, mask), build.cast(Type.U32, build.shr(mask, 32)))

    def _match(self, value: ir.Expression, bits: int) -> Pair:
        """The mask of lanes with this lane's value: the AND of a ballot for each bit."""
        build = self.build
        value = build.bound(value, "matched")
        low, high = build.variable("match_low", Type.U32), build.variable("match_high", Type.U32)
        everyone = self._ballot(ir.Const(True, Type.BOOL, build.span))
        build.assign(low, everyone.low)
        build.assign(high, everyone.high)
        for bit in range(bits):
            mine = build.bound(build.and_(build.shr(value, bit), 1), "mine")
            votes = self._ballot(build.differs(mine, 0))
            # All ones where this lane's bit is clear: then the lanes that agree are those that did not vote.
            flip = build.bound(build.sub(mine, 1), "flip")
            for half, vote in ((low, votes.low), (high, votes.high))[: 1 if self.most <= 32 else 2]:
                agree = build.apply(ops.XOR, vote, flip)
                build.assign(half, build.and_(build.read(half), agree))
        return Pair(build.read(low), build.read(high))

    def _shuffle(self, op: SubgroupOp, value: Value, operand: ir.Expression) -> Value:
        lane = self.build.bound(self._source(op, operand), "source")
        if isinstance(value, Pair):
            low = self._own(SubgroupOp.SHUFFLE, "low", Type.U32, value.low, lane)
            return Pair(low, self._own(SubgroupOp.SHUFFLE, "high", Type.U32, value.high, lane))
        if value.type is Type.BOOL:  # WGSL shuffles no bool
            word = self._own(SubgroupOp.SHUFFLE, "flag", Type.U32, self.build.cast(Type.U32, value), lane)
            return self.build.differs(word, 0)
        return self._own(SubgroupOp.SHUFFLE, "item", value.type, value, lane)

    def _source(self, op: SubgroupOp, operand: ir.Expression) -> ir.Expression:
        """The lane to read, which exists. (A subgroup's size is a power of two.)"""
        build = self.build
        lane, size = build.identity(ir.Builtin.LANE), build.identity(ir.Builtin.SUBGROUP_SIZE)
        if op is SubgroupOp.SHUFFLE:
            return build.and_(operand, build.sub(size, 1))
        if op is SubgroupOp.SHUFFLE_XOR:
            return build.apply(ops.XOR, lane, operand)
        operand = build.bound(operand, "distance")
        if op is SubgroupOp.SHUFFLE_UP:
            return build.select(build.apply(ops.LE, operand, lane), build.sub(lane, operand), lane)
        # Within the subgroup and, as the last one may be partial, within the workgroup. Compared with the number of
        # lanes above this one, so that no sum wraps.
        left = build.sub(build.sub(size, 1), lane)
        beyond = build.sub(self.group_size - 1, build.identity(ir.Builtin.LOCAL_ID))
        there = build.apply(ops.LE, operand, build.apply(ops.MIN, left, beyond))
        return build.select(there, build.add(lane, operand), lane)


def word_of(value: Value) -> ir.Expression:
    assert not isinstance(value, Pair)
    return value


def _pair(value: Value) -> Pair:
    assert isinstance(value, Pair)
    return value
