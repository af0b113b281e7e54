"""Building blocks of legalisation: operations on 32-bit words, and 64-bit arithmetic on pairs of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from ...kernel import ir
from ...kernel.builder import Builder, folded
from ...kernel.passes.walk import expressions_of, variables_in
from ...kernel.span import Span
from ...types import ops
from ...types.layout import Type
from ...types.ops import Op

ALL_ONES = 0xFFFF_FFFF

Operand: TypeAlias = ir.Expression | int  # an int is a U32 literal


@attrs.frozen
class Pair:
    """A 64-bit value as two U32 expressions."""

    low: ir.Expression
    high: ir.Expression


Value: TypeAlias = ir.Expression | Pair


def _binary(op: Op) -> Callable[[WordBuilder, Operand, Operand], ir.Expression]:
    return lambda build, a, b: build.apply(op, a, b)


class WordBuilder(Builder):
    """A Builder for words. `span` is the source location given to new nodes."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span

    # -- variables ----------------------------------------------------------------------------------------

    def read(self, variable: ir.Variable) -> ir.Read:
        return ir.Read(variable, self.span)

    def assign(self, variable: ir.Variable, value: ir.Expression) -> None:
        self.emit(ir.Assign(variable, value, self.span))

    def bound(self, expression: ir.Expression, name: str = "word") -> ir.Expression:
        """The value in a variable unless it is a leaf, to use it more than once. Expressions are pure and never load,
        so it may be evaluated early."""
        return self.held(expression, name) if isinstance(expression, ir.Apply) else expression

    def held(self, expression: ir.Expression, name: str = "word") -> ir.Expression:
        """The value at this point in a new variable, whatever its own variables are set to later."""
        variable = self.variable(name, expression.type)
        self.assign(variable, expression)
        return self.read(variable)

    def filled(self, variables: Sequence[ir.Variable], values: Sequence[ir.Expression]) -> bool:
        """Copy elision: if the values are temporaries set by the statements emitted last, makes those set `variables`
        directly, and returns True. The temporaries must not be used again."""
        block, count = self._block, len(values)
        last, newest = block[-count:], self.variables[-count:]
        if len(last) < count or len(newest) < count:
            return False
        made: list[ir.Statement] = []
        for statement, value, temporary, variable in zip(last, values, newest, variables, strict=True):
            if not isinstance(value, ir.Read) or not isinstance(
                statement, ir.Load | ir.Atomic | ir.Subgroup | ir.Assign
            ):
                return False
            if value.variable is not temporary or statement.variable is not temporary:
                return False
            made.append(attrs.evolve(statement, variable=variable))
        read = {v for statement in last[1:] for e in expressions_of(statement) for v in variables_in(e)}
        if not read.isdisjoint((*variables, *newest)):
            return False  # a later statement would see what an earlier one had set
        block[-count:] = made
        del self.variables[-count:]
        return True

    # -- operations on words ------------------------------------------------------------------------------

    def word(self, value: int) -> ir.Const:
        """A U32 literal."""
        return ir.Const(value & ALL_ONES, Type.U32, self.span)

    def identity(self, builtin: ir.Builtin) -> ir.Identity:
        return ir.Identity(builtin, self.span)

    def apply(self, op: Op, *operands: Operand) -> ir.Expression:
        """An operation, constant-folded."""
        given = tuple(self.word(operand) if isinstance(operand, int) else operand for operand in operands)
        type = op.rule([operand.type for operand in given])
        assert type is not None, f"{op} does not take {[str(operand.type) for operand in given]}"
        return folded(op, given, type, self.span)

    def cast(self, to: Type, value: ir.Expression) -> ir.Expression:
        return value if value.type is to else folded(ops.CAST, (value,), to, self.span)

    def bits_as(self, to: Type, value: ir.Expression) -> ir.Expression:
        return value if value.type is to else folded(ops.BITCAST, (value,), to, self.span)

    add, sub, mul = _binary(ops.ADD), _binary(ops.SUB), _binary(ops.MUL)
    and_, or_, shl = _binary(ops.AND), _binary(ops.OR), _binary(ops.SHL)
    differs, below = _binary(ops.NE), _binary(ops.LT)

    def shr(self, a: Operand, amount: Operand, signed: bool = False) -> ir.Expression:
        if not signed or isinstance(a, int):
            return self.apply(ops.SHR, a, amount)
        return self.bits_as(Type.U32, self.apply(ops.SHR, self.bits_as(Type.I32, a), amount))

    def invert(self, a: Operand) -> ir.Expression:
        return self.apply(ops.INVERT, a)

    def select(self, condition: ir.Expression, then: Operand, otherwise: Operand) -> ir.Expression:
        return self.apply(ops.SELECT, condition, then, otherwise)

    def count(self, condition: ir.Expression) -> ir.Expression:
        """A condition as U32: 1 or 0."""
        return self.cast(Type.U32, condition)


class Wide:
    """64-bit arithmetic on pairs of words. Operands used twice are bound to variables first: else nested operations
    would grow exponentially."""

    def __init__(self, build: WordBuilder) -> None:
        self.build = build

    def bound(self, pair: Pair) -> Pair:
        return Pair(self.build.bound(pair.low, "low"), self.build.bound(pair.high, "high"))

    def constant(self, value: int) -> Pair:
        return Pair(self.build.word(value), self.build.word(value >> 32))

    # -- arithmetic ---------------------------------------------------------------------------------------

    def add(self, a: Pair, b: Pair) -> Pair:
        build = self.build
        first = build.bound(a.low)
        low = build.bound(build.add(first, b.low), "sum")
        carry = build.count(build.below(low, first))
        return Pair(low, build.add(build.add(a.high, b.high), carry))

    def sub(self, a: Pair, b: Pair) -> Pair:
        build = self.build
        first, second = build.bound(a.low), build.bound(b.low)
        borrow = build.count(build.below(first, second))
        return Pair(build.sub(first, second), build.sub(build.sub(a.high, b.high), borrow))

    def neg(self, a: Pair) -> Pair:
        return self.sub(self.constant(0), a)

    def mul(self, a: Pair, b: Pair) -> Pair:
        """Schoolbook multiplication with 16-bit digits: a product of two plus two more digits fits in a word."""
        build = self.build
        a, b = self.bound(a), self.bound(b)
        a0, a1 = build.bound(build.and_(a.low, 0xFFFF)), build.bound(build.shr(a.low, 16))
        b0, b1 = build.bound(build.and_(b.low, 0xFFFF)), build.bound(build.shr(b.low, 16))
        middle = build.bound(build.add(build.mul(a1, b0), build.shr(build.mul(a0, b0), 16)))
        other = build.add(build.mul(a0, b1), build.and_(middle, 0xFFFF))
        carried = build.add(build.shr(middle, 16), build.shr(other, 16))
        crossed = build.add(build.mul(a.low, b.high), build.mul(a.high, b.low))
        high = build.add(build.add(build.mul(a1, b1), carried), crossed)
        return Pair(build.mul(a.low, b.low), high)

    def bitwise(self, op: Op, a: Pair, b: Pair) -> Pair:
        return Pair(self.build.apply(op, a.low, b.low), self.build.apply(op, a.high, b.high))

    def invert(self, a: Pair) -> Pair:
        return Pair(self.build.invert(a.low), self.build.invert(a.high))

    def divide(self, a: Pair, b: Pair) -> tuple[Pair, Pair]:
        """Quotient and remainder by restoring division, bit by bit. A zero divisor counts as one."""
        build = self.build
        b = self.bound(b)
        none = build.apply(ops.EQ, build.or_(b.low, b.high), 0)
        b = self.bound(Pair(build.or_(b.low, build.count(none)), b.high))
        names = ("quotient_low", "quotient_high", "rest_low", "rest_high")
        q0, q1, r0, r1 = (build.variable(name, Type.U32) for name in names)
        for variable, start in ((q0, a.low), (q1, a.high), (r0, build.word(0)), (r1, build.word(0))):
            build.assign(variable, start)
        quotient, rest = Pair(build.read(q0), build.read(q1)), Pair(build.read(r0), build.read(r1))
        with build.nested() as body:
            # The dividend is shifted out of the quotient's top while the quotient's bits enter at the bottom.
            top = build.held(build.shr(quotient.high, 31))
            lost = build.held(build.shr(rest.high, 31))
            grown = self.bound(Pair(build.or_(build.shl(rest.low, 1), top), self.shl(rest, build.word(1)).high))
            fits = build.or_(build.differs(lost, 0), self.compare(ops.GE, grown, b, False))
            fits = build.bound(fits, "fits")
            smaller = self.bound(self.sub(grown, b))
            shifted = self.shl(quotient, build.word(1))
            build.assign(q1, shifted.high)
            build.assign(q0, build.or_(shifted.low, build.count(fits)))
            build.assign(r0, build.select(fits, smaller.low, grown.low))
            build.assign(r1, build.select(fits, smaller.high, grown.high))
        bit = build.variable("bit", Type.U32)
        build.emit(ir.For(bit, build.word(0), build.word(64), build.word(1), tuple(body), build.span))
        return quotient, rest

    # -- shifts -------------------------------------------------------------------------------------------

    def shl(self, a: Pair, amount: ir.Expression) -> Pair:
        build = self.build
        if isinstance(amount, ir.Const):
            count = int(amount.value) % 64
            if count >= 32:
                return Pair(build.word(0), build.shl(a.low, count - 32))
            if count == 0:
                return a
            low = build.bound(a.low)
            return Pair(build.shl(low, count), build.or_(build.shl(a.high, count), build.shr(low, 32 - count)))
        # Word shifts are modulo 32: `amount` does for both sides of 32, and `~amount` is 31 - amount.
        low, amount = build.bound(a.low), build.bound(amount, "amount")
        shifted = build.bound(build.shl(low, amount))
        spilled = build.shr(build.shr(low, 1), build.invert(amount))
        far = self._is_far(amount)
        high = build.select(far, shifted, build.or_(build.shl(a.high, amount), spilled))
        return Pair(build.select(far, 0, shifted), high)

    def shr(self, a: Pair, amount: ir.Expression, signed: bool) -> Pair:
        build = self.build
        high = build.bound(a.high)
        fill = build.shr(high, 31, signed=True) if signed else build.word(0)
        if isinstance(amount, ir.Const):
            count = int(amount.value) % 64
            if count >= 32:
                return Pair(build.shr(high, count - 32, signed), fill)
            if count == 0:
                return Pair(a.low, high)
            low = build.or_(build.shr(a.low, count), build.shl(high, 32 - count))
            return Pair(low, build.shr(high, count, signed))
        amount = build.bound(amount, "amount")
        shifted = build.bound(build.shr(high, amount, signed))
        spilled = build.shl(build.shl(high, 1), build.invert(amount))
        far = self._is_far(amount)
        low = build.select(far, shifted, build.or_(build.shr(a.low, amount), spilled))
        return Pair(low, build.select(far, fill, shifted))

    def _is_far(self, amount: ir.Expression) -> ir.Expression:
        """Whether a shift is by 32 or more."""
        return self.build.bound(self.build.differs(self.build.and_(amount, 32), 0), "far")

    # -- comparisons and choices --------------------------------------------------------------------------

    def compare(self, op: Op, a: Pair, b: Pair, signed: bool) -> ir.Expression:
        build = self.build
        if op in (ops.EQ, ops.NE):
            joined = ops.AND if op is ops.EQ else ops.OR
            return build.apply(joined, build.apply(op, a.low, b.low), build.apply(op, a.high, b.high))
        if op in (ops.GT, ops.LE):
            a, b = b, a
        if op in (ops.LE, ops.GE):
            return build.invert(self.compare(ops.LT, a, b, signed))
        first, second = build.bound(a.high), build.bound(b.high)
        order = Type.I32 if signed else Type.U32
        above = build.below(build.bits_as(order, first), build.bits_as(order, second))
        below = build.and_(build.apply(ops.EQ, first, second), build.below(a.low, b.low))
        return build.or_(above, below)

    def select(self, condition: ir.Expression, then: Pair, otherwise: Pair) -> Pair:
        build = self.build
        condition = build.bound(condition, "chosen")
        low = build.select(condition, then.low, otherwise.low)
        return Pair(low, build.select(condition, then.high, otherwise.high))

    def extreme(self, op: Op, a: Pair, b: Pair, signed: bool) -> Pair:
        """MIN or MAX."""
        a, b = self.bound(a), self.bound(b)
        return self.select(self.compare(ops.LT if op is ops.MIN else ops.GT, a, b, signed), a, b)

    # -- counting bits ------------------------------------------------------------------------------------

    def count(self, op: Op, a: Pair) -> ir.Expression:
        """COUNT_ONES, LEADING_ZEROS or TRAILING_ZEROS."""
        build = self.build
        if op is ops.COUNT_ONES:
            return build.add(build.apply(op, a.low), build.apply(op, a.high))
        near, far = (a.high, a.low) if op is ops.LEADING_ZEROS else (a.low, a.high)  # counted from `near` on
        near = build.bound(near)
        none = build.apply(ops.EQ, near, 0)
        return build.select(none, build.add(32, build.apply(op, far)), build.apply(op, near))

    # -- conversions --------------------------------------------------------------------------------------

    def widened(self, value: ir.Expression) -> Pair:
        """A Bool or U32 zero-extended, an I32 sign-extended."""
        if value.type is Type.I32:
            word = self.build.bound(self.build.bits_as(Type.U32, value))
            return Pair(word, self.build.shr(word, 31, signed=True))
        return Pair(self.build.cast(Type.U32, value), self.build.word(0))

    def to_float(self, a: Pair, signed: bool) -> ir.Expression:
        """The nearest F32, ties to even, by integer arithmetic: adapters round conversions differently."""
        build = self.build
        a = self.bound(a)
        sign: ir.Expression = build.word(0)
        if signed:
            sign = build.bound(build.and_(a.high, 1 << 31), "sign")
            a = self.bound(self.select(build.differs(sign, 0), self.neg(a), a))
        zeros = build.bound(self.count(ops.LEADING_ZEROS, a), "zeros")
        normal = self.bound(self.shl(a, zeros))
        # 24 bits are kept, the rest decides the rounding; `sticky` is set if any bit below the top word is.
        sticky = build.count(build.differs(normal.low, 0))
        top = build.bound(build.or_(normal.high, sticky))
        kept = build.bound(build.shr(top, 8))
        up = build.apply(ops.GT, build.add(build.and_(top, 0xFF), build.and_(kept, 1)), 0x80)
        exponent = build.shl(build.sub(189, zeros), 23)  # 127 + 63 - 1: the leading one of `kept` adds 1
        bits = build.add(build.add(exponent, kept), build.count(up))
        none = build.apply(ops.EQ, build.or_(a.low, a.high), 0)
        return build.bits_as(Type.F32, build.or_(sign, build.select(none, 0, bits)))
