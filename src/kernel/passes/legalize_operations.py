"""Expressions of any type as expressions of 32 bits: which operation on words stands for which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ...types import ops
from ...types.errors import CapabilityError
from ...types.layout import Type
from .. import ir
from .legalize_build import Builder
from .legalize_floats import Floats
from .legalize_words import Pair, Value, Words

Leaf: TypeAlias = ir.Read | ir.Argument | ir.Identity | ir.Length

_SIGNED = frozenset({Type.I32, Type.I64})
_INTEGERS = frozenset({Type.U64, Type.I64})
_FLOAT = frozenset(ops.OPS) - {ops.SELECT, ops.CAST, ops.BITCAST}
_ORDERS = (ops.EQ, ops.NE, ops.LT, ops.LE, ops.GT, ops.GE)


class Operations:
    """Lowers expressions. `leaf` says what stands for the ones that hold no others, `zero` for a hidden zero."""

    def __init__(self, build: Builder, leaf: Callable[[Leaf], Value], zero: Callable[[], ir.Expression]) -> None:
        self.build = build
        self.words = Words(build)
        self.floats = Floats(build, zero)
        self.leaf = leaf

    def value(self, node: ir.Expression) -> Value:
        match node:
            case ir.Const():
                return self._constant(node)
            case ir.Apply():
                return self._apply(node)
            case _:
                return self.leaf(node)

    def _constant(self, node: ir.Const) -> Value:
        if node.type is Type.F64:
            return self.words.constant(int(np.float64(node.value).view(np.uint64)))
        if node.type in _INTEGERS:
            return self.words.constant(int(node.value))
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
            raise CapabilityError(f"{node.span}: no {str(node.op)!r} of {types[0]} in 32-bit words")
        values = [self.value(operand) for operand in node.operands]
        if node.op in (ops.CAST, ops.BITCAST):
            return self._converted(node, types[0], values[0])
        if any(isinstance(value, Pair) for value in values):
            return self._wide(node, types, values)
        if Type.F32 in (node.type, *types) and node.op in _FLOAT:
            return self.floats.apply(node.op, *[_word(value) for value in values])
        return self.build.apply(node.op, *[_word(value) for value in values])

    def _converted(self, node: ir.Apply, source: Type, value: Value) -> Value:
        to = node.type
        if isinstance(value, Pair):
            if to.bits == 64:
                return value
            if to is Type.F32:
                return self.words.to_float(value, source is Type.I64)
            return self.build.bits_as(to, value.low)
        if to.bits == 64:
            return self.words.widened(value)
        if to in (Type.U8, Type.U16):
            word = self.build.cast(Type.U32, value)
            return self.build.apply(ops.AND, word, self.build.word((1 << to.bits) - 1))
        return self.build.bits_as(to, value) if node.op is ops.BITCAST else self.build.cast(to, value)

    def _wide(self, node: ir.Apply, types: Sequence[Type], values: Sequence[Value]) -> Value:
        op, words = node.op, self.words
        if op is ops.SELECT:
            return words.select(_word(values[0]), _pair(values[1]), _pair(values[2]))
        first, signed = _pair(values[0]), types[0] in _SIGNED
        if op is ops.SHL:
            return words.shl(first, _word(values[1]))
        if op is ops.SHR:
            return words.shr(first, _word(values[1]), signed)
        if op in (ops.INVERT, ops.NEG, ops.COUNT_ONES, ops.LEADING_ZEROS, ops.TRAILING_ZEROS):
            return self._of_one(node, first)
        second = _pair(values[1])
        if op in _ORDERS:
            return words.compare(op, first, second, signed)
        if op in (ops.MIN, ops.MAX):
            return words.extreme(op, first, second, signed)
        if op in (ops.AND, ops.OR, ops.XOR):
            return words.bitwise(op, first, second)
        if op in (ops.FLOORDIV, ops.MOD):
            return self._divided(op, first, second)
        arithmetic = {ops.ADD: words.add, ops.SUB: words.sub, ops.MUL: words.mul}.get(op)
        if arithmetic is None:
            raise CapabilityError(f"{node.span}: no {str(op)!r} of {types[0]} in 32-bit words")
        return arithmetic(first, second)

    def _of_one(self, node: ir.Apply, value: Pair) -> Value:
        if node.op is ops.INVERT:
            return self.words.invert(value)
        if node.op is ops.NEG:
            return self.words.neg(value)
        if node.op is ops.COUNT_ONES:
            return self.words.count_ones(value)
        if node.op is ops.LEADING_ZEROS:
            return self.words.leading_zeros(value)
        return self.words.trailing_zeros(value)

    def _divided(self, op: ops.Op, value: Pair, by: Pair) -> Value:
        if isinstance(by.low, ir.Const) and isinstance(by.high, ir.Const):
            divisor = int(by.low.value) | int(by.high.value) << 32
            if divisor.bit_count() == 1:
                if op is ops.MOD:
                    return self.words.bitwise(ops.AND, value, self.words.constant(divisor - 1))
                return self.words.shr(value, self.build.word(divisor.bit_length() - 1), signed=False)
        quotient, rest = self.words.divide(value, by)
        return quotient if op is ops.FLOORDIV else rest


def _word(value: Value) -> ir.Expression:
    assert not isinstance(value, Pair)
    return value


def _pair(value: Value) -> Pair:
    assert isinstance(value, Pair)
    return value
