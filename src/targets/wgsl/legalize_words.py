"""Building blocks of legalisation: 32-bit words, of which Python's operators make expressions of the IR."""

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

Operand: TypeAlias = "Word | int"  # an int is a U32 literal


def _binary(op: Op) -> Callable[[Word, Operand], Word]:
    return lambda a, b: a.build.apply(op, a, b)


def _reflected(op: Op) -> Callable[[Word, Operand], Word]:
    return lambda a, b: a.build.apply(op, b, a)


class Word:
    """An expression of at most 32 bits, to compute with. Operations on constants are folded."""

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
        return (self.seen_as(Type.I32) >> amount).seen_as(Type.U32) if signed else self >> amount

    def select(self, then: Operand, otherwise: Operand) -> Word:
        """One of two, by this condition."""
        return self.build.apply(ops.SELECT, self, then, otherwise)

    def to(self, type: Type) -> Word:
        """A cast."""
        return self._converted(ops.CAST, type)

    def seen_as(self, type: Type) -> Word:
        """A bitcast."""
        return self._converted(ops.BITCAST, type)

    def _converted(self, op: Op, type: Type) -> Word:
        return self if self.type is type else Word(self.build, folded(op, (self.node,), type, self.build.span))

    def bound(self, name: str = "word") -> Word:
        """The value in a variable unless it is a leaf, to use it more than once. Expressions are pure and never load,
        so it may be evaluated early."""
        return self.held(name) if isinstance(self.node, ir.Apply) else self

    def held(self, name: str = "word") -> Word:
        """The value at this point in a new variable, whatever its own variables are set to later."""
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

    def identity(self, builtin: ir.Builtin) -> Word:
        return Word(self, ir.Identity(builtin, self.span))

    def apply(self, op: Op, *operands: Operand) -> Word:
        given = tuple(self.literal(operand).node if isinstance(operand, int) else operand.node for operand in operands)
        type = op.rule([operand.type for operand in given])
        assert type is not None, f"{op} does not take {[str(operand.type) for operand in given]}"
        return Word(self, folded(op, given, type, self.span))

    def assign(self, variable: ir.Variable, value: Word) -> None:
        self.emit(ir.Assign(variable, value.node, self.span))

    def store(self, memory: ir.Memory, index: Word, value: Word) -> None:
        self.emit(ir.Store(memory, index.node, value.node, self.span))

    def filled(self, variables: Sequence[ir.Variable], values: Sequence[Word]) -> bool:
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
        read = {v for statement in last[1:] for e in expressions_of(statement) for v in variables_in(e)}
        if not read.isdisjoint((*variables, *newest)):
            return False  # a later statement would see what an earlier one had set
        block[-count:] = made
        del self.variables[-count:]
        return True
