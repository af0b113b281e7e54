"""Lowers operations of any type to 32-bit ones, and subgroup operations to ballot, shuffle and sums.

WGSL permits fast-math: compilers may assume that there is no infinity or NaN, and ignore the sign of zero. Drivers fold
`a - a` to 0, `a + 0.0` to `a`, `0.0 - a` to `-a`, `(a + b) - a` to `b`, and contract `a * b + c` to a fused
multiply-add; translators emit `a != b` in a form that is false for NaN. So floats are compared as integers, and float
results, zeros and converted integers are hidden from the optimiser: their bits are combined with a parameter that is
always zero, which no compiler knows. That costs one or two integer instructions for each float operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ...kernel import ir
from ...types import ops
from ...types.errors import CapabilityError
from ...types.layout import Type
from ...types.ops import Op, SubgroupOp
from .legalize_words import Pair, Value, Word, WordBuilder, compared, selected

Leaf: TypeAlias = ir.Read | ir.Argument | ir.BuiltinValue | ir.Length

_INTEGERS = frozenset({Type.U64, Type.I64})
_MOVES = (ops.SELECT, *ops.CONVERSIONS)  # no float arithmetic
_ON_PAIRS: Mapping[Op, Callable[[Pair, Pair], Pair]] = {
    ops.ADD: Pair.__add__, ops.SUB: Pair.__sub__, ops.MUL: Pair.__mul__, ops.FLOORDIV: Pair.__floordiv__,
    ops.MOD: Pair.__mod__,
}  # fmt: skip
_INFINITY = 0x7F80_0000
_SIGN = 1 << 31


class Operations:
    """Lowers expressions. `leaf` lowers their leaves; `zero` gives the parameter that is always zero."""

    def __init__(self, build: WordBuilder, leaf: Callable[[Leaf], Value], zero: Callable[[], Word]) -> None:
        self.build = build
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

    def word(self, node: ir.Expression) -> Word:
        """Lowers an expression of at most 32 bits."""
        return word_of(self.value(node))

    def _constant(self, node: ir.Const) -> Value:
        if node.type is Type.F64:
            return Pair.constant(self.build, int(np.float64(node.value).view(np.uint64)))
        if node.type in _INTEGERS:
            return Pair.constant(self.build, int(node.value))
        if node.type.is_narrow:
            return self.build.literal(int(node.value))
        if node.type is Type.F32 and node.value == 0:  # always hidden: a sum may start with it
            return self._hidden(self.build.literal(int(np.float32(node.value).view(np.uint32))).bitcast(Type.F32))
        return Word(self.build, node)

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
        if node.op in ops.CONVERSIONS:
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
            return self._hidden(value.to_float(source is Type.I64)) if to is Type.F32 else value.low.bitcast(to)
        if to.bits == 64:
            return Pair.widened(value)
        if to.is_narrow:
            return value.cast(Type.U32) & (1 << to.bits) - 1
        if node.op is ops.BITCAST:
            return value.bitcast(to)
        return self._hidden(value.cast(to)) if to is Type.F32 else value.cast(to)  # an integer may be known to be zero

    def _wide(self, node: ir.Apply, values: Sequence[Value]) -> Value:
        op = node.op
        if op is ops.SELECT:
            return selected(word_of(values[0]), _pair(values[1]), _pair(values[2]))
        first, signed = _pair(values[0]), node.operands[0].type.sign != 0
        if op is ops.SHL:
            return first << word_of(values[1])
        if op is ops.SHR:
            return first.shifted_right(word_of(values[1]), signed)
        if op in ops.BIT_COUNTS:
            return first.count(op)
        if op in (ops.INVERT, ops.NEG):
            return ~first if op is ops.INVERT else -first
        second = _pair(values[1])
        if op in ops.COMPARISONS:
            return compared(op, first, second, signed)
        if op in (ops.MIN, ops.MAX):
            first, second = first.bound(), second.bound()
            return selected(compared(ops.LT if op is ops.MIN else ops.GT, first, second, signed), first, second)
        if op in (ops.AND, ops.OR, ops.XOR):
            return Pair(self.build.apply(op, first.low, second.low), self.build.apply(op, first.high, second.high))
        if op not in _ON_PAIRS:
            raise self._lacking(node)
        return _ON_PAIRS[op](first, second)

    def _of_floats(self, op: Op, *operands: Word) -> Word:
        """Lowers an operation with float operands or result, except selects and conversions."""
        if op in ops.COMPARISONS:
            return self._compared(op, *operands)
        if op is ops.NEG:
            return _combined(ops.XOR, operands[0], self.build.literal(_SIGN) | self._zero())
        if len(operands) == 2:
            first, second = operands
            may_cancel = op in (ops.SUB, ops.DIV)
            operands = (
                self._hidden_if_known(first),
                self._hidden(second) if may_cancel else self._hidden_if_known(second),
            )
        return _combined(ops.XOR, self.build.apply(op, *operands), self._zero())

    def _hidden_if_known(self, operand: Word) -> Word:
        """Hides an operand that is a bitcast of an integer, as the compiler may know its bits; unless it is hidden."""
        match operand.node:
            case ir.Apply(op=ops.BITCAST, operands=(ir.Apply(operands=(_, hiding)),)) if hiding == self._zero().node:
                return operand
            case ir.Apply(op=ops.BITCAST):
                return self._hidden(operand)
            case _:
                return operand

    def _hidden(self, value: Word) -> Word:
        """Hides a value from the driver's optimiser, by an OR with zero. (Results are hidden by an XOR: two XORs with
        the same word would cancel.)"""
        return _combined(ops.OR, value, self._zero())

    def _compared(self, op: Op, a: Word, b: Word) -> Word:
        if op is ops.NE:
            return ~self._compared(ops.EQ, a, b)
        if op in (ops.GT, ops.GE):
            a, b = b, a
        # Compilers may choose the sign of a NaN, differently at each use: test the other bits.
        first, second = a.bitcast(Type.U32).bound("bits"), b.bitcast(Type.U32).bound("bits")
        are_numbers = ((first & _SIGN - 1) <= _INFINITY) & ((second & _SIGN - 1) <= _INFINITY)
        order = {ops.GT: ops.LT, ops.GE: ops.LE}.get(op, op)
        return are_numbers & self.build.apply(order, self._rank(first), self._rank(second))

    def _rank(self, bits: Word) -> Word:
        """An I32 in the order of the floats, equal for both zeros."""
        signed = bits.bitcast(Type.I32)
        lowest, none = (self.build.literal(number, Type.I32) for number in (-_SIGN, 0))
        return (signed < none).select(lowest - signed, signed)


def _combined(op: Op, value: Word, bits: Word) -> Word:
    """A float whose bits are those of `value`, combined with `bits` by an integer operation."""
    return value.build.apply(op, value.bitcast(Type.U32), bits).bitcast(Type.F32)


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

    def _own(self, op: SubgroupOp, name: str, type: Type, *operands: Word) -> Word:
        result = self.build.variable(name, type)
        self.build.emit(ir.Subgroup(result, op, tuple(operand.node for operand in operands), self.build.span))
        return self.build.read(result)

    def _ballot(self, condition: Word) -> Pair:
        mask = self._own(SubgroupOp.BALLOT, "mask", Type.U64, condition)
        if self.most <= 32:  # the upper word is constant zero, which folds away
            return Pair(mask.cast(Type.U32), self.build.literal(0))
        return Pair(mask.cast(Type.U32), (mask >> 32).cast(Type.U32))

    def _match(self, value: Word, bits: int) -> Pair:
        """The mask of lanes with this lane's value: the AND of a ballot for each bit."""
        build = self.build
        value = value.bound("matched")
        low, high = build.variable("match_low", Type.U32), build.variable("match_high", Type.U32)
        everyone = self._ballot(build.literal(True, Type.BOOL))
        build.assign(low, everyone.low)
        build.assign(high, everyone.high)
        for bit in range(bits):
            mine = ((value >> bit) & 1).bound("mine")
            votes = self._ballot(mine.differs(0))
            # All ones where this lane's bit is clear: then the lanes that agree are those that did not vote.
            flip = (mine - 1).bound("flip")
            for half, vote in ((low, votes.low), (high, votes.high))[: 1 if self.most <= 32 else 2]:
                build.assign(half, build.read(half) & (vote ^ flip))
        return Pair(build.read(low), build.read(high))

    def _shuffle(self, op: SubgroupOp, value: Value, operand: Word) -> Value:
        lane = self._source(op, operand).bound("source")
        if isinstance(value, Pair):
            low = self._own(SubgroupOp.SHUFFLE, "low", Type.U32, value.low, lane)
            return Pair(low, self._own(SubgroupOp.SHUFFLE, "high", Type.U32, value.high, lane))
        if value.type is Type.BOOL:  # WGSL shuffles no bool
            return self._own(SubgroupOp.SHUFFLE, "flag", Type.U32, value.cast(Type.U32), lane).differs(0)
        return self._own(SubgroupOp.SHUFFLE, "item", value.type, value, lane)

    def _source(self, op: SubgroupOp, operand: Word) -> Word:
        """The lane to read, which exists. (A subgroup's size is a power of two.)"""
        lane, size = self.build.builtin(ir.Builtin.LANE), self.build.builtin(ir.Builtin.SUBGROUP_SIZE)
        if op is SubgroupOp.SHUFFLE:
            return operand & size - 1
        if op is SubgroupOp.SHUFFLE_XOR:
            return lane ^ operand
        operand = operand.bound("distance")
        if op is SubgroupOp.SHUFFLE_UP:
            return (operand <= lane).select(lane - operand, lane)
        # Within the subgroup and, as the last one may be partial, within the workgroup. Compared with the number of
        # lanes above this one, so that no sum wraps.
        beyond = self.group_size - 1 - self.build.builtin(ir.Builtin.LOCAL_ID)
        there = operand <= self.build.apply(ops.MIN, size - 1 - lane, beyond)
        return there.select(lane + operand, lane)


def word_of(value: Value) -> Word:
    assert isinstance(value, Word)
    return value


def _pair(value: Value) -> Pair:
    assert isinstance(value, Pair)
    return value
