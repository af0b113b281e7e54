"""64-bit arithmetic on pairs of 32-bit words. What is used twice is bound to variables first: else nested operations
would grow exponentially."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from ...kernel import ir
from ...types import ops
from ...types.layout import Type
from ...types.ops import Op
from .legalize_words import Word, WordBuilder


@attrs.frozen(eq=False)
class Pair:
    """A 64-bit value as two U32 words."""

    low: Word
    high: Word

    @classmethod
    def constant(cls, build: WordBuilder, value: int) -> Pair:
        return cls(build.literal(value), build.literal(value >> 32))

    @classmethod
    def widened(cls, word: Word) -> Pair:
        """A Bool or U32 zero-extended, an I32 sign-extended."""
        if word.type is Type.I32:
            low = word.seen_as(Type.U32).bound()
            return cls(low, low.shifted_right(31, signed=True))
        return cls(word.to(Type.U32), word.build.literal(0))

    def bound(self) -> Pair:
        return Pair(self.low.bound("low"), self.high.bound("high"))

    # -- arithmetic ---------------------------------------------------------------------------------------

    def __add__(self, other: Pair) -> Pair:
        first = self.low.bound()
        low = (first + other.low).bound("sum")
        return Pair(low, self.high + other.high + (low < first).to(Type.U32))

    def __sub__(self, other: Pair) -> Pair:
        first, second = self.low.bound(), other.low.bound()
        return Pair(first - second, self.high - other.high - (first < second).to(Type.U32))

    def __neg__(self) -> Pair:
        return Pair.constant(self.low.build, 0) - self

    def __mul__(self, other: Pair) -> Pair:
        """Schoolbook multiplication with 16-bit digits: a product of two plus two more digits fits in a word."""
        a, b = self.bound(), other.bound()
        a0, a1 = (a.low & 0xFFFF).bound(), (a.low >> 16).bound()
        b0, b1 = (b.low & 0xFFFF).bound(), (b.low >> 16).bound()
        middle = (a1 * b0 + (a0 * b0 >> 16)).bound()
        other_middle = a0 * b1 + (middle & 0xFFFF)
        carried = (middle >> 16) + (other_middle >> 16)
        return Pair(a.low * b.low, a1 * b1 + carried + (a.low * b.high + a.high * b.low))

    def __and__(self, other: Pair) -> Pair:
        return Pair(self.low & other.low, self.high & other.high)

    def __or__(self, other: Pair) -> Pair:
        return Pair(self.low | other.low, self.high | other.high)

    def __xor__(self, other: Pair) -> Pair:
        return Pair(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> Pair:
        return Pair(~self.low, ~self.high)

    def __floordiv__(self, other: Pair) -> Pair:
        power = other.known_power_of_two()
        if power is None:
            return divided(self, other)[0]
        return self.shifted_right(self.low.build.literal(power.bit_length() - 1), signed=False)

    def __mod__(self, other: Pair) -> Pair:
        power = other.known_power_of_two()
        return divided(self, other)[1] if power is None else self & Pair.constant(self.low.build, power - 1)

    def known_power_of_two(self) -> int | None:
        if not (isinstance(self.low.node, ir.Const) and isinstance(self.high.node, ir.Const)):
            return None
        known = int(self.low.node.value) | int(self.high.node.value) << 32
        return known if known.bit_count() == 1 else None

    # -- shifts -------------------------------------------------------------------------------------------

    def __lshift__(self, amount: Word) -> Pair:
        if isinstance(amount.node, ir.Const):
            count = int(amount.node.value) % 64
            if count >= 32:
                return Pair(amount.build.literal(0), self.low << count - 32)
            if count == 0:
                return self
            low = self.low.bound()
            return Pair(low << count, (self.high << count) | (low >> 32 - count))
        # Word shifts are modulo 32: `amount` does for both sides of 32, and `~amount` is 31 - amount.
        low, amount = self.low.bound(), amount.bound("amount")
        shifted = (low << amount).bound()
        spilled = (low >> 1) >> ~amount
        far = _is_far(amount)
        return Pair(far.select(0, shifted), far.select(shifted, (self.high << amount) | spilled))

    def shifted_right(self, amount: Word, signed: bool) -> Pair:
        high = self.high.bound()
        fill = high.shifted_right(31, signed) if signed else high.build.literal(0)
        if isinstance(amount.node, ir.Const):
            count = int(amount.node.value) % 64
            if count >= 32:
                return Pair(high.shifted_right(count - 32, signed), fill)
            if count == 0:
                return Pair(self.low, high)
            return Pair((self.low >> count) | (high << 32 - count), high.shifted_right(count, signed))
        amount = amount.bound("amount")
        shifted = high.shifted_right(amount, signed).bound()
        spilled = (high << 1) << ~amount
        far = _is_far(amount)
        return Pair(far.select(shifted, (self.low >> amount) | spilled), far.select(fill, shifted))

    # -- comparisons, bits, floats ------------------------------------------------------------------------

    def is_below(self, other: Pair, signed: bool) -> Word:
        first, second = self.high.bound(), other.high.bound()
        order = Type.I32 if signed else Type.U32
        above = first.seen_as(order) < second.seen_as(order)
        return above | (first.equals(second) & (self.low < other.low))

    def count(self, op: Op) -> Word:
        """COUNT_ONES, LEADING_ZEROS or TRAILING_ZEROS."""
        apply = self.low.build.apply
        if op is ops.COUNT_ONES:
            return apply(op, self.low) + apply(op, self.high)
        near, far = (self.high, self.low) if op is ops.LEADING_ZEROS else (self.low, self.high)  # from `near` on
        near = near.bound()
        return near.equals(0).select(32 + apply(op, far), apply(op, near))

    def to_float(self, signed: bool) -> Word:
        """The nearest F32, ties to even, by integer arithmetic: adapters round conversions differently."""
        a, sign = self.bound(), self.low.build.literal(0)
        if signed:
            sign = (a.high & 1 << 31).bound("sign")
            a = selected(sign.differs(0), -a, a).bound()
        zeros = a.count(ops.LEADING_ZEROS).bound("zeros")
        normal = (a << zeros).bound()
        # 24 bits are kept, the rest decides the rounding; the last is set if any bit below the top word is.
        top = (normal.high | normal.low.differs(0).to(Type.U32)).bound()
        kept = (top >> 8).bound()
        up = (top & 0xFF) + (kept & 1) > 0x80
        exponent = (189 - zeros) << 23  # 127 + 63 - 1: the leading one of `kept` adds 1
        bits = exponent + kept + up.to(Type.U32)
        return (sign | (a.low | a.high).equals(0).select(0, bits)).seen_as(Type.F32)


Value: TypeAlias = Word | Pair


def _is_far(amount: Word) -> Word:
    """Whether a shift is by 32 or more."""
    return (amount & 32).differs(0).bound("far")


def selected(condition: Word, then: Pair, otherwise: Pair) -> Pair:
    condition = condition.bound("chosen")
    return Pair(condition.select(then.low, otherwise.low), condition.select(then.high, otherwise.high))


def compared(op: Op, a: Pair, b: Pair, signed: bool) -> Word:
    if op is ops.EQ:
        return a.low.equals(b.low) & a.high.equals(b.high)
    if op is ops.NE:
        return a.low.differs(b.low) | a.high.differs(b.high)
    if op in (ops.GT, ops.LE):
        a, b = b, a
    below = a.is_below(b, signed)
    return below if op in (ops.LT, ops.GT) else ~below


def divided(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """Quotient and remainder of unsigned numbers by restoring division, bit by bit. A zero divisor counts as one."""
    build, b = a.low.build, b.bound()
    none = (b.low | b.high).equals(0)
    b = Pair(b.low | none.to(Type.U32), b.high).bound()
    names = ("quotient_low", "quotient_high", "rest_low", "rest_high")
    q0, q1, r0, r1 = (build.variable(name, Type.U32) for name in names)
    zero, one = build.literal(0), build.literal(1)
    for variable, start in ((q0, a.low), (q1, a.high), (r0, zero), (r1, zero)):
        build.assign(variable, start)
    quotient, rest = Pair(build.read(q0), build.read(q1)), Pair(build.read(r0), build.read(r1))
    with build.nested() as body:
        # The dividend is shifted out of the quotient's top while the quotient's bits enter at the bottom.
        top, lost = (quotient.high >> 31).held(), (rest.high >> 31).held()
        grown = Pair((rest.low << 1) | top, (rest << one).high).bound()
        fits = (lost.differs(0) | compared(ops.GE, grown, b, signed=False)).bound("fits")
        smaller = (grown - b).bound()
        shifted = quotient << one
        build.assign(q1, shifted.high)
        build.assign(q0, shifted.low | fits.to(Type.U32))
        build.assign(r0, fits.select(smaller.low, grown.low))
        build.assign(r1, fits.select(smaller.high, grown.high))
    bit = build.variable("bit", Type.U32)
    build.emit(ir.For(bit, zero.node, build.literal(64).node, one.node, tuple(body), build.span))
    return quotient, rest
