"""Builds IR: type checks, constant folding and algebraic simplification of expressions; blocks and fresh variables."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import repeat
from typing import NoReturn

import attrs
import numpy as np

from ..types import ops
from ..types.layout import Type
from ..types.ops import Op
from . import ir, messages
from .captures import Captures
from .passes.walk import expressions_of, nodes_in, with_expressions
from .span import KernelError, Span

# Identity and absorbing elements of operations on integers and Bools; -1 stands for all bits set. Floats are not
# simplified: -0.0 + 0 is not -0.0.
_NEUTRAL = {ops.ADD: 0, ops.ADD_NOWRAP: 0, ops.OR: 0, ops.XOR: 0, ops.MUL: 1, ops.AND: -1}
_NEUTRAL_ON_THE_RIGHT = {ops.SUB: 0, ops.SHL: 0, ops.SHR: 0, ops.FLOORDIV: 1}
_ABSORBING = {ops.AND: 0, ops.MUL: 0, ops.OR: -1}
_CONSTANT = (ir.Const, ir.Argument, ir.BuiltinValue, ir.Length)  # these never change while an invocation runs


def apply(op: Op, operands: tuple[ir.Expression, ...], span: Span) -> ir.Expression:
    """An operation, type-checked and folded. Raises KernelError for operands that its type rule refuses."""
    types = [operand.type for operand in operands]
    result = op.rule(types)
    if result is None:
        found, example = " and ".join(map(str, types)), messages.operand_of(op, types)
        raise KernelError(
            span, f"expected {op.expects} for `{op.sign or op}`, found {found}; convert one, e.g. `{example}`"
        )
    if op in ops.DIVISIONS and isinstance(operands[1], ir.Const) and operands[1].value == 0:
        raise KernelError(span, "expected a divisor other than zero, e.g. `x // 2`")
    if op is ops.ADD_NOWRAP and sum(one.value for one in operands if isinstance(one, ir.Const)) > Type.U32.high:
        raise KernelError(span, "expected a sum that fits 32 bits, e.g. `a + b`, which wraps")
    return folded(op, operands, result, span)


def convert(op: Op, operand: ir.Expression, to: Type, span: Span) -> ir.Expression:
    """CAST or BITCAST to a type; the operand itself where it has that type already."""
    if operand.type is to:
        return operand
    allowed = ops.can_cast if op is ops.CAST else ops.can_bitcast
    if not allowed(operand.type, to):
        example = messages.converted(operand.type, to)
        raise KernelError(span, f"expected a value that converts to {to}, found {operand.type}, e.g. `{example}`")
    return folded(op, (operand,), to, span)


def folded(op: Op, operands: tuple[ir.Expression, ...], type: Type, span: Span) -> ir.Expression:
    """The operation, constant-folded or simplified where that is possible."""
    simpler = _constant(op, operands, type, span) or _simplified(op, operands, type, span)
    return simpler or ir.Apply(op, operands, type, span)


def _constant(op: Op, operands: tuple[ir.Expression, ...], type: Type, span: Span) -> ir.Const | None:
    values: list[np.ndarray[tuple[()], np.dtype[np.generic]]] = []
    for operand in operands:
        if not isinstance(operand, ir.Const):
            return None
        values.append(np.asarray(operand.value, operand.type.dtype))
    try:
        result = ops.apply(op, *values, to=type if op in ops.CONVERSIONS else None)
    except ZeroDivisionError:
        return None
    return ir.Const(result.astype(type.dtype).item(), type, span)


def _simplified(op: Op, operands: tuple[ir.Expression, ...], type: Type, span: Span) -> ir.Expression | None:
    first = operands[0]
    if op is ops.SELECT and isinstance(first, ir.Const):
        return operands[1] if first.value else operands[2]
    if op is ops.BITCAST and isinstance(first, ir.Apply) and first.op is ops.BITCAST:
        source = first.operands[0]
        return source if source.type is type else folded(op, (source,), type, span)
    if len(operands) == 2:
        for value, known in (operands, operands[::-1]):
            if isinstance(known, ir.Const) and not known.type.is_float:
                return _by_constant(op, value, known, known is operands[1])
    return None


def _by_constant(op: Op, value: ir.Expression, known: ir.Const, on_the_right: bool) -> ir.Expression | None:
    """`value op known`, or `known op value`, where the constant is an identity or absorbing element."""
    ones = 1 if known.type is Type.BOOL else (1 << known.type.bits) - 1
    bits = -1 if known.value == ones else int(known.value)
    neutral = _NEUTRAL.get(op, _NEUTRAL_ON_THE_RIGHT.get(op) if on_the_right else None)
    if neutral == bits:
        return value
    if on_the_right and bits == 0 and op in ops.DIVISIONS:  # as at run time; WGSL refuses to compile a constant 0 here
        return value if op is ops.FLOORDIV else known
    return known if _ABSORBING.get(op) == bits and not may_fail(value) else None


def may_fail(value: object) -> bool:
    """Whether an expression is undefined for some operands (a divisor that may be 0, an add_nowrap): then it must not
    be evaluated speculatively, outside the branch that it is in."""
    return isinstance(value, ir.Apply) and any(
        isinstance(node, ir.Apply)
        and (node.op is ops.ADD_NOWRAP or (node.op in ops.DIVISIONS and not isinstance(node.operands[1], ir.Const)))
        for node in nodes_in(value)
    )


class Builder:
    """The block under construction, and all variables made so far."""

    def __init__(self) -> None:
        self.variables: list[ir.Variable] = []
        self.depth = 0  # nesting of the current block
        self._block: list[ir.Statement] = []

    def emit(self, statement: ir.Statement) -> None:
        self._block.append(statement)

    def variable(self, name: str, type: Type) -> ir.Variable:
        made = ir.Variable(name, type)
        self.variables.append(made)
        return made

    @contextmanager
    def nested(self, block: list[ir.Statement] | None = None) -> Generator[list[ir.Statement]]:
        """Collects what is emitted inside into a block of its own, or at the end of this one."""
        outer, self._block = self._block, [] if block is None else block
        self.depth += 1
        try:
            yield self._block
        finally:
            self._block = outer
            self.depth -= 1

    def finish(self) -> ir.Block:
        return tuple(self._block)


# Limits on inlining and unrolling: beyond these, compilers take minutes.
MOST_STATEMENTS = 10_000
MOST_DEPTH = 64  # of branches and loops: Mesa's software driver takes a wrong branch from 80 on
_MOST_LEVELS = 64  # of an expression: generated source nests twice as deep, and Python's parser takes less than 200
MOST_ITERATIONS = 10_000  # iterations of unrolled loops plus inlined calls, even where they emit no statement


class KernelBuilder(Builder):
    """The builder that the reader uses. Raises KernelError where inlining and unrolling exceed the limits."""

    def __init__(self) -> None:
        super().__init__()
        self.memories: list[ir.Memory] = []  # those of the launch, in the order of its arguments, then registers
        self.captures = Captures()  # globals, closure cells and attributes that the functions read here use
        self._statements = 0
        self._iterations = 0
        self._unrolled: list[tuple[int, Span]] = []  # the loops being unrolled, with their trip counts
        self._ssa: set[ir.Variable] = set()  # variables with a single assignment

    def emit(self, statement: ir.Statement) -> None:
        if any(len(nodes_in(one)) > _MOST_LEVELS for one in expressions_of(statement)):
            statement = with_expressions(statement, self.shallow)
        super().emit(statement)
        if self.depth > MOST_DEPTH:
            raise KernelError(
                statement.span, f"expected branches and loops at most {MOST_DEPTH} deep, helpers included, e.g. early "
                "returns from a helper, each in an `if`, in place of `elif` and `match`")  # fmt: skip
        self._statements += 1
        if self._statements > MOST_STATEMENTS:
            self._refuse_size(statement.span)

    @contextmanager
    def unrolling(self, rounds: int, span: Span) -> Generator[None]:
        """Encloses the unrolled iterations of a loop."""
        self._unrolled.append((rounds, span))
        if rounds > MOST_ITERATIONS:
            self._refuse_size(span)
        yield
        self._unrolled.pop()

    def count_iteration(self, span: Span) -> None:
        """Counts an iteration of an unrolled loop, or an inlined call, against the limit."""
        self._iterations += 1
        if self._iterations > MOST_ITERATIONS:
            self._refuse_size(span)

    def _refuse_size(self, span: Span) -> NoReturn:
        """Raises KernelError at the unrolled loop with the largest trip count, if there is one."""
        if not self._unrolled:
            raise KernelError(
                span, f"expected a kernel of at most {MOST_STATEMENTS} statements, helpers included, e.g. a loop "
                "`for i in dynamic_range(U32(0), U32(8)):` in place of calls")  # fmt: skip
        rounds, loop = max(self._unrolled, key=lambda found: found[0])
        raise KernelError(
            loop, f"expected loops that unroll to at most {MOST_STATEMENTS} statements in a kernel, and this one has "
            f"{rounds} rounds, e.g. `for i in dynamic_range(U32(0), U32({min(rounds, 0xFFFFFFFF)})):`")  # fmt: skip

    def ssa_variable(self, name: str, type: Type) -> ir.Variable:
        """A fresh variable with a single assignment, as in SSA form."""
        made = self.variable(name, type)
        self._ssa.add(made)
        return made

    def result(self, name: str, type: Type, made: Callable[[ir.Variable], ir.Statement]) -> ir.Read:
        """Emits a statement that sets a fresh variable; gives a read of the variable."""
        variable = self.ssa_variable(name, type)
        self.emit(statement := made(variable))
        return ir.Read(variable, statement.span)

    def hold(self, name: str, value: ir.Expression, span: Span) -> ir.Expression:
        """Assigns a value to a fresh variable here, so that it is evaluated once; gives a read of the variable. What
        cannot change later (constants, reads of single-assignment variables) is returned as it is."""
        if isinstance(value, _CONSTANT):
            return value
        if isinstance(value, ir.Read) and value.variable in self._ssa:
            return value
        return self.result(name, value.type, lambda variable: ir.Assign(variable, value, span))

    def shallow(self, value: ir.Expression, levels: int = _MOST_LEVELS) -> ir.Expression:
        """An expression of at most so many levels: deeper subexpressions are assigned to variables first."""
        if not isinstance(value, ir.Apply):
            return value
        if levels == 0:
            return self.hold("part", value, value.span)
        return attrs.evolve(value, operands=tuple(map(self.shallow, value.operands, repeat(levels - 1))))
