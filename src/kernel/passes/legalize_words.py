"""64-bit arithmetic in two 32-bit words."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from ...types import ops
from ...types.layout import Type
from ...types.ops import Op
from .. import ir
from .legalize_build import Builder


@attrs.frozen
class Pair:
    """A 64-bit value as two U32 expressions."""

    low: ir.Expression
    high: ir.Expression


Value: TypeAlias = ir.Expression | Pair


class Words:
    """Each method states one operation on pairs. An operand that is mentioned twice is bound first, so that
    the size of what is made grows with the number of operations, not with their nesting."""

    def __init__(self, build: Builder) -> None:
        self.build = build

    # -- small steps on U32 -------------------------------------------------------------------------------

    def _add(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.ADD, a, b)

    def _sub(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.SUB, a, b)

    def _mul(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.MUL, a, b)

    def _and(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.AND, a, b)

    def _or(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.OR, a, b)

    def _shl(self, a: ir.Expression, b: ir.Expression | int) -> ir.Expression:
        return self.build.apply(ops.SHL, a, self.build.word(b) if isinstance(b, int) else b)

    def _shr(self, a: ir.Expression, b: ir.Expression | int) -> ir.Expression:
        return self.build.apply(ops.SHR, a, self.build.word(b) if isinstance(b, int) else b)

    def _invert(self, a: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.INVERT, a)

    def _is(self, op: Op, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return self.build.apply(op, a, b)

    def _select(self, condition: ir.Expression, then: ir.Expression, otherwise: ir.Expression) -> ir.Expression:
        return self.build.apply(ops.SELECT, condition, then, otherwise)

    def _count(self, condition: ir.Expression) -> ir.Expression:
        """1 where it holds, else 0."""
        return self.build.cast(Type.U32, condition)

    def _sign(self, word: ir.Expression) -> ir.Expression:
        """All ones where the highest bit is set, else 0."""
        signed = self.build.bits_as(Type.I32, word)
        return self.build.bits_as(Type.U32, self.build.apply(ops.SHR, signed, self.build.word(31)))

    def bound(self, pair: Pair) -> Pair:
        return Pair(self.build.bound(pair.low, "low"), self.build.bound(pair.high, "high"))

    def constant(self, value: int) -> Pair:
        return Pair(self.build.word(value), self.build.word(value >> 32))

    # -- arithmetic ---------------------------------------------------------------------------------------

    def add(self, a: Pair, b: Pair) -> Pair:
        first = self.build.bound(a.low)
        low = self.build.bound(self._add(first, b.low), "sum")
        carry = self._count(self._is(ops.LT, low, first))
        return Pair(low, self._add(self._add(a.high, b.high), carry))

    def sub(self, a: Pair, b: Pair) -> Pair:
        first, second = self.build.bound(a.low), self.build.bound(b.low)
        borrow = self._count(self._is(ops.LT, first, second))
        return Pair(self._sub(first, second), self._sub(self._sub(a.high, b.high), borrow))

    def neg(self, a: Pair) -> Pair:
        return self.sub(self.constant(0), a)

    def mul(self, a: Pair, b: Pair) -> Pair:
        """Schoolbook on halves of 16 bits: a product of two of them, plus two more, never overflows a
        word."""
        a, b = self.bound(a), self.bound(b)
        half = self.build.word(0xFFFF)
        a0, a1 = self.build.bound(self._and(a.low, half)), self.build.bound(self._shr(a.low, 16))
        b0, b1 = self.build.bound(self._and(b.low, half)), self.build.bound(self._shr(b.low, 16))
        middle = self.build.bound(self._add(self._mul(a1, b0), self._shr(self._mul(a0, b0), 16)))
        other = self._add(self._mul(a0, b1), self._and(middle, half))
        carried = self._add(self._shr(middle, 16), self._shr(other, 16))
        crossed = self._add(self._mul(a.low, b.high), self._mul(a.high, b.low))
        high = self._add(self._add(self._mul(a1, b1), carried), crossed)
        return Pair(self._mul(a.low, b.low), high)

    def bitwise(self, op: Op, a: Pair, b: Pair) -> Pair:
        return Pair(self.build.apply(op, a.low, b.low), self.build.apply(op, a.high, b.high))

    def invert(self, a: Pair) -> Pair:
        return Pair(self._invert(a.low), self._invert(a.high))

    def divide(self, a: Pair, b: Pair) -> tuple[Pair, Pair]:
        """Quotient and remainder, bit by bit. Zero divides as one does."""
        build = self.build
        b = self.bound(b)
        none = build.apply(ops.EQ, build.apply(ops.OR, b.low, b.high), build.word(0))
        b = self.bound(Pair(self._or(b.low, self._count(none)), b.high))
        names = ("quotient_low", "quotient_high", "rest_low", "rest_high")
        q0, q1, r0, r1 = (build.fresh(name, Type.U32) for name in names)
        for variable, start in ((q0, a.low), (q1, a.high), (r0, build.word(0)), (r1, build.word(0))):
            build.assign(variable, start)
        quotient, rest = Pair(build.read(q0), build.read(q1)), Pair(build.read(r0), build.read(r1))
        with build.block() as body:
            # The dividend leaves the quotient's top bit by bit, as the quotient enters at the bottom.
            top = build.held(self._shr(quotient.high, 31))
            lost = build.held(self._shr(rest.high, 31))
            grown = self.bound(Pair(self._or(self._shl(rest.low, 1), top), self.shl(rest, build.word(1)).high))
            fits = build.apply(ops.OR, build.apply(ops.NE, lost, build.word(0)), self.compare(ops.GE, grown, b, False))
            fits = build.bound(fits, "fits")
            smaller = self.bound(self.sub(grown, b))
            shifted = self.shl(quotient, build.word(1))
            build.assign(q1, shifted.high)
            build.assign(q0, self._or(shifted.low, self._count(fits)))
            build.assign(r0, self._select(fits, smaller.low, grown.low))
            build.assign(r1, self._select(fits, smaller.high, grown.high))
        bit = build.fresh("bit", Type.U32)
        build.emit(ir.For(bit, build.word(0), build.word(64), build.word(1), tuple(body), build.span))
        return quotient, rest

    # -- shifts -------------------------------------------------------------------------------------------

    def shl(self, a: Pair, amount: ir.Expression) -> Pair:
        if isinstance(amount, ir.Const):
            count = int(amount.value) % 64
            if count >= 32:
                return Pair(self.build.word(0), self._shl(a.low, count - 32))
            if count == 0:
                return a
            low = self.build.bound(a.low)
            return Pair(self._shl(low, count), self._or(self._shl(a.high, count), self._shr(low, 32 - count)))
        # A shift of a word counts modulo 32: by `amount` is right for both sides of 32, and `~amount` is 31
        # less it.
        low, amount = self.build.bound(a.low), self.build.bound(amount, "amount")
        shifted = self.build.bound(self._shl(low, amount))
        spilled = self._shr(self._shr(low, 1), self._invert(amount))
        far = self.build.bound(self._is(ops.NE, self._and(amount, self.build.word(32)), self.build.word(0)), "far")
        high = self._select(far, shifted, self._or(self._shl(a.high, amount), spilled))
        return Pair(self._select(far, self.build.word(0), shifted), high)

    def shr(self, a: Pair, amount: ir.Expression, signed: bool) -> Pair:
        high = self.build.bound(a.high)
        fill = self._sign(high) if signed else self.build.word(0)
        if isinstance(amount, ir.Const):
            count = int(amount.value) % 64
            if count >= 32:
                return Pair(self._word_shr(high, self.build.word(count - 32), signed), fill)
            if count == 0:
                return Pair(a.low, high)
            low = self._or(self._shr(a.low, count), self._shl(high, 32 - count))
            return Pair(low, self._word_shr(high, self.build.word(count), signed))
        amount = self.build.bound(amount, "amount")
        shifted = self.build.bound(self._word_shr(high, amount, signed))
        spilled = self._shl(self._shl(high, 1), self._invert(amount))
        far = self.build.bound(self._is(ops.NE, self._and(amount, self.build.word(32)), self.build.word(0)), "far")
        low = self._select(far, shifted, self._or(self._shr(a.low, amount), spilled))
        return Pair(low, self._select(far, fill, shifted))

    def _word_shr(self, word: ir.Expression, amount: ir.Expression, signed: bool) -> ir.Expression:
        if not signed:
            return self._shr(word, amount)
        return self.build.bits_as(Type.U32, self._shr(self.build.bits_as(Type.I32, word), amount))

    # -- comparisons and choices --------------------------------------------------------------------------

    def compare(self, op: Op, a: Pair, b: Pair, signed: bool) -> ir.Expression:
        if op in (ops.EQ, ops.NE):
            joined = ops.AND if op is ops.EQ else ops.OR
            return self.build.apply(joined, self._is(op, a.low, b.low), self._is(op, a.high, b.high))
        if op is ops.GT:
            return self.compare(ops.LT, b, a, signed)
        if op is ops.LE:
            return self._invert(self.compare(ops.LT, b, a, signed))
        if op is ops.GE:
            return self._invert(self.compare(ops.LT, a, b, signed))
        first, second = self.build.bound(a.high), self.build.bound(b.high)
        order = Type.I32 if signed else Type.U32
        above = self._is(ops.LT, self.build.bits_as(order, first), self.build.bits_as(order, second))
        below = self._and(self._is(ops.EQ, first, second), self._is(ops.LT, a.low, b.low))
        return self._or(above, below)

    def select(self, condition: ir.Expression, then: Pair, otherwise: Pair) -> Pair:
        condition = self.build.bound(condition, "chosen")
        low = self._select(condition, then.low, otherwise.low)
        return Pair(low, self._select(condition, then.high, otherwise.high))

    def extreme(self, op: Op, a: Pair, b: Pair, signed: bool) -> Pair:
        """MIN or MAX."""
        a, b = self.bound(a), self.bound(b)
        return self.select(self.compare(ops.LT if op is ops.MIN else ops.GT, a, b, signed), a, b)

    # -- counting bits ------------------------------------------------------------------------------------

    def count_ones(self, a: Pair) -> ir.Expression:
        count = ops.COUNT_ONES
        return self._add(self.build.apply(count, a.low), self.build.apply(count, a.high))

    def leading_zeros(self, a: Pair) -> ir.Expression:
        return self._zeros(ops.LEADING_ZEROS, self.build.bound(a.high), a.low)

    def trailing_zeros(self, a: Pair) -> ir.Expression:
        return self._zeros(ops.TRAILING_ZEROS, self.build.bound(a.low), a.high)

    def _zeros(self, op: Op, near: ir.Expression, far: ir.Expression) -> ir.Expression:
        """Zeros counted from the side of `near`."""
        none = self._is(ops.EQ, near, self.build.word(0))
        beyond = self._add(self.build.word(32), self.build.apply(op, far))
        return self._select(none, beyond, self.build.apply(op, near))

    # -- conversions --------------------------------------------------------------------------------------

    def widened(self, value: ir.Expression) -> Pair:
        """A Bool, U32 or I32 as 64 bits: signed ones keep their sign."""
        if value.type is Type.I32:
            word = self.build.bound(self.build.bits_as(Type.U32, value))
            return Pair(word, self._sign(word))
        return Pair(self.build.cast(Type.U32, value), self.build.word(0))

    def to_float(self, a: Pair, signed: bool) -> ir.Expression:
        """The nearest F32, ties to even, made bit by bit: adapters differ in how they round an integer."""
        build = self.build
        a = self.bound(a)
        sign: ir.Expression = build.word(0)
        if signed:
            sign = build.bound(self._and(a.high, build.word(1 << 31)), "sign")
            negative = self._is(ops.NE, sign, build.word(0))
            a = self.bound(self.select(negative, self.neg(a), a))
        zeros = build.bound(self.leading_zeros(a), "zeros")
        normal = self.bound(self.shl(a, zeros))
        # 24 bits stay; the rest says whether to go up: `sticky` stands for all that is below the top word.
        sticky = self._count(self._is(ops.NE, normal.low, build.word(0)))
        top = build.bound(self._or(normal.high, sticky))
        kept = build.bound(self._shr(top, 8))
        up = self._is(
            ops.GT,
            self._add(self._and(top, build.word(0xFF)), self._and(kept, build.word(1))),
            build.word(0x80),
        )
        exponent = self._shl(self._sub(build.word(189), zeros), 23)  # 127 + 63 - 1: `kept` brings the leading one
        bits = self._add(self._add(exponent, kept), self._count(up))
        none = self._is(ops.EQ, self._or(a.low, a.high), build.word(0))
        return build.bits_as(Type.F32, self._or(sign, self._select(none, build.word(0), bits)))
