"""Building blocks of legalisation: 32-bit words, and pairs of words for 64-bit values. Python's operators on them build
expressions of the IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from ...kernel import ir
from ...kernel.builder import Builder, folded
from ...kernel.passes.walk import variables_read_by
from ...kernel.span import Span
from ...types import ops
from ...types.layout import Type
from ...types.ops import Op

Operand: TypeAlias = "Word | int"  # an int is a U32 literal


def _binary(op: Op) -> Callable[[Word, Operand], Word]:
    return lambda a, b: a.build.apply(op, a, b)


def _reflected(op: Op) -> Callable[[Word, Operand], Word]:
    return lambda a, b: a.build.apply(op, b, a)


class Word:
    """An expression of at most 32 bits, with operators that build larger ones. Operations on constants are folded."""

    __slots__ = ("build", "node")

    def __init__(self, build: WordBuilder, node: ir.Expression) -> None:
        self.build, self.node = build, node

    @property
    def type(self) -> Type:
        return self.node.type

    __add__, __sub__, __mul__ = _binary(ops.ADD), _binary(ops.SUB), _binary(ops.MUL)
    __radd__, __rsub__ = _reflected(ops.ADD), _reflected(ops.SUB)
    __and__, __or__, __xor__ = _binary(ops.AND), _binary(ops.OR), _binary(ops.XOR)
    __lshift__, __rshift__, __floordiv__ = _binary(ops.SHL), _binary(ops.SHR), _binary(ops.FLOORDIV)
    __lt__, __le__, __gt__ = _binary(ops.LT), _binary(ops.LE), _binary(ops.GT)
    equals, differs = _binary(ops.EQ), _binary(ops.NE)

    def __invert__(self) -> Word:
        return self.build.apply(ops.INVERT, self)

    def shifted_right(self, amount: Operand, signed: bool) -> Word:
        """`>>`, arithmetic if signed."""
        return (self.bitcast(Type.I32) >> amount).bitcast(Type.U32) if signed else self >> amount

    def select(self, then: Operand, otherwise: Operand) -> Word:
        """`then` if this condition is true, else `otherwise`."""
        return self.build.apply(ops.SELECT, self, then, otherwise)

    def cast(self, type: Type) -> Word:
        return self._converted(ops.CAST, type)

    def bitcast(self, type: Type) -> Word:
        return self._converted(ops.BITCAST, type)

    def _converted(self, op: Op, type: Type) -> Word:
        return self if self.type is type else Word(self.build, folded(op, (self.node,), type, self.build.span))

    def bound(self, name: str = "word") -> Word:
        """For a value that is used several times: assigns it to a variable, unless it is a leaf. (Expressions are pure
        and do not load, so they may be evaluated early.)"""
        return self.held(name) if isinstance(self.node, ir.Apply) else self

    def held(self, name: str = "word") -> Word:
        """Always assigns the value to a new variable, which keeps it if the variables in the expression are set
        later."""
        variable = self.build.variable(name, self.type)
        self.build.assign(variable, self)
        return self.build.read(variable)


class WordBuilder(Builder):
    """A Builder for words. `span` is the source location given to new nodes."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span

    def read(self, variable: ir.Variable) -> Word:
        return Word(self, ir.Read(variable, self.span))

    def literal(self, value: int, type: Type = Type.U32) -> Word:
        """A literal; of a U32 the low 32 bits are taken."""
        return Word(self, ir.Const(value & 0xFFFF_FFFF if type is Type.U32 else value, type, self.span))

    def builtin(self, builtin: ir.Builtin) -> Word:
        return Word(self, ir.BuiltinValue(builtin, self.span))

    def apply(self, op: Op, *operands: Operand) -> Word:
        given = tuple(self.literal(operand).node if isinstance(operand, int) else operand.node for operand in operands)
        type = op.rule([operand.type for operand in given])
        assert type is not None, f"{op} does not take {[str(operand.type) for operand in given]}"
        return Word(self, folded(op, given, type, self.span))

    def assign(self, variable: ir.Variable, value: Word) -> None:
        self.emit(ir.Assign(variable, value.node, self.span))

    def store(self, memory: ir.Memory, index: Word, value: Word) -> None:
        self.emit(ir.Store(memory, index.node, value.node, self.span))

    def elided_copy(self, variables: Sequence[ir.Variable], values: Sequence[Word]) -> bool:
        """Copy elision: if the values are temporaries set by the statements emitted last, makes those set `variables`
        directly, and returns True. The temporaries must not be used again."""
        block, count = self._block, len(values)
        last, newest = block[-count:], self.variables[-count:]
        if len(last) < count or len(newest) < count:
            return False
        made: list[ir.Statement] = []
        for statement, value, temporary, variable in zip(last, values, newest, variables, strict=True):
            if not isinstance(value.node, ir.Read) or not isinstance(
                statement, ir.Load | ir.Atomic | ir.Subgroup | ir.Assign
            ):
                return False
            if value.node.variable is not temporary or statement.variable is not temporary:
                return False
            made.append(attrs.evolve(statement, variable=variable))
        read = {variable for statement in last[1:] for variable in variables_read_by(statement)}
        if not read.isdisjoint((*variables, *newest)):
            return False  # a later statement would see what an earlier one had set
        block[-count:] = made
        del self.variables[-count:]
        return True


@attrs.frozen(eq=False)
class Pair:
    """A 64-bit value as two U32 words. A word that an operation uses twice is bound to a variable first: otherwise
    nested operations would grow exponentially."""

    low: Word
    high: Word

    @classmethod
    def constant(cls, build: WordBuilder, value: int) -> Pair:
        return cls(build.literal(value), build.literal(value >> 32))

    @classmethod
    def widened(cls, word: Word) -> Pair:
        """A Bool or U32 zero-extended, an I32 sign-extended."""
        if word.type is Type.I32:
            low = word.bitcast(Type.U32).bound()
            return cls(low, low.shifted_right(31, signed=True))
        return cls(word.cast(Type.U32), word.build.literal(0))

    def bound(self) -> Pair:
        return Pair(self.low.bound("low"), self.high.bound("high"))

    def __add__(self, other: Pair) -> Pair:
        first = self.low.bound()
        low = (first + other.low).bound("sum")
        return Pair(low, self.high + other.high + (low < first).cast(Type.U32))

    def __sub__(self, other: Pair) -> Pair:
        first, second = self.low.bound(), other.low.bound()
        return Pair(first - second, self.high - other.high - (first < second).cast(Type.U32))

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

    def __invert__(self) -> Pair:
        return Pair(~self.low, ~self.high)

    def __floordiv__(self, other: Pair) -> Pair:
        power = other.known_power_of_two()
        if power is None:
            return divided(self, other)[0]
        return self.shifted_right(self.low.build.literal(power.bit_length() - 1), signed=False)

    def __mod__(self, other: Pair) -> Pair:
        power = other.known_power_of_two()
        if power is None:
            return divided(self, other)[1]
        mask = Pair.constant(self.low.build, power - 1)
        return Pair(self.low & mask.low, self.high & mask.high)

    def known_power_of_two(self) -> int | None:
        if not (isinstance(self.low.node, ir.Const) and isinstance(self.high.node, ir.Const)):
            return None
        known = int(self.low.node.value) | int(self.high.node.value) << 32
        return known if known.bit_count() == 1 else None

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
        top = (normal.high | normal.low.differs(0).cast(Type.U32)).bound()
        kept = (top >> 8).bound()
        up = (top & 0xFF) + (kept & 1) > 0x80
        exponent = (189 - zeros) << 23  # 127 + 63 - 1: the leading one of `kept` adds 1
        bits = exponent + kept + up.cast(Type.U32)
        return (sign | (a.low | a.high).equals(0).select(0, bits)).bitcast(Type.F32)


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
    first, second, order = a.high.bound(), b.high.bound(), Type.I32 if signed else Type.U32
    above = first.bitcast(order) < second.bitcast(order)
    below = above | (first.equals(second) & (a.low < b.low))
    return below if op in (ops.LT, ops.GT) else ~below


def divided(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """Quotient and remainder of unsigned numbers by restoring division, bit by bit. A zero divisor counts as one."""
    build, b = a.low.build, b.bound()
    none = (b.low | b.high).equals(0)
    b = Pair(b.low | none.cast(Type.U32), b.high).bound()
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
        build.assign(q0, shifted.low | fits.cast(Type.U32))
        build.assign(r0, fits.select(smaller.low, grown.low))
        build.assign(r1, fits.select(smaller.high, grown.high))
    bit = build.variable("bit", Type.U32)
    build.emit(ir.For(bit, zero.node, build.literal(64).node, one.node, tuple(body), build.span))
    return quotient, rest
