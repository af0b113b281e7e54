"""Reader, part 1: the symbol table. A name stands for a value, or for variables where several places assign it.

Where control flow joins, a name whose value differs between the paths becomes a variable that each path assigns, which
does the work of a phi node.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn

import attrs
import numpy as np

from ..types import ops
from ..types.layout import Type, bounds
from . import ir
from .builder import KernelBuilder, apply, may_fail
from .source import Source
from .span import KernelError, Span
from .values import (
    Method,
    Static,
    StructValue,
    Undecided,
    Value,
    describe,
    lift,
    of_object,
    parts,
    rebuild,
    run_time_form,
    shape,
)


class SymbolTable:
    """The names of one inlined function."""

    def __init__(self, builder: KernelBuilder, source: Source, names: dict[str, Value]) -> None:
        self.builder = builder
        self.source = source
        self.names = names
        self.slots: dict[str, Value] = {}  # the variables of names that are assigned in several places

    def expected(self, node: ast.AST, what: str) -> NoReturn:
        """Raises KernelError at a node: "expected `what`", which should end with what was found and an example."""
        raise KernelError(self.source.span(node), f"expected {what}")

    def literal(self, value: object, type: Type, node: ast.AST) -> ir.Const:
        """A Python number as a literal of a scalar type; raises KernelError where it does not fit."""
        if type.is_float and isinstance(value, int | float):
            try:
                with np.errstate(over="ignore"):  # a float too large is infinite, as it is under CPython
                    return ir.Const(float(np.asarray(float(value), type.dtype)), type, self.source.span(node))
            except OverflowError:  # which an int is not
                self.expected(node, f"a literal that fits {type}, found an int beyond all floats, e.g. `{type}(1e30)`")
        if type is Type.BOOL and isinstance(value, bool):
            return ir.Const(value, type, self.source.span(node))
        if type.is_integer and isinstance(value, int) and not isinstance(value, bool):
            low, high = bounds(type)
            if not low <= value <= high:
                self.expected(node, f"a literal that fits {type} ({low} to {high}), found {value}, e.g. `{type}(1)`")
            return ir.Const(value, type, self.source.span(node))
        hint = "`int(x)` of it" if isinstance(value, np.integer) else f"`{type}(1)`"
        self.expected(node, f"{type} beside {type}, found {value!r}, e.g. {hint}")

    def evaluated(self, node: ast.AST, function: Callable[..., object], *arguments: object) -> Value:
        """The result of a Python function, called at compile time on compile-time values."""
        try:
            return of_object(function(*arguments), self.source.span(node))
        except Exception as error:
            what = str(error) or type(error).__name__
            self.expected(node, f"compile-time values that fit, found an error ({what}), e.g. `2 * count`")

    def bind(self, name: str, value: Value, span: Span) -> None:
        """Binds a name. One that several places assign gets variables (a slot), unless its value is compile-time."""
        if self.source.stores.get(name, 0) > 1 or name in self.slots:
            value = lift(value, span) if name in self.slots else value
            if name in self.slots or not self.is_static(value):
                self.names[name] = self.into_slot(name, lift(value, span), span)
                return
        self.names[name] = self.held(name, value, span)

    def is_static(self, value: Value) -> bool:
        return not any(isinstance(part, ir.Expression) for part in parts(value))

    def held(self, name: str, value: Value, span: Span) -> Value:
        """The value with each scalar in it evaluated once, into a single-assignment variable."""

        def hold(part: Value) -> Value:
            if isinstance(part, Method):
                return attrs.evolve(part, owner=rebuild(part.owner, hold))
            return self.builder.hold(name, part, span) if isinstance(part, ir.Expression) else part

        return rebuild(value, hold)

    def into_slot(self, name: str, value: Value, span: Span) -> Value:
        slot = self.slots.get(name)
        if slot is None:
            slot = self.slots[name] = self.new_slot(name, value, span)
        self.assign_slot(slot, value, name, span)
        return slot

    def new_slot(self, name: str, value: Value, span: Span) -> Value:
        def make(part: Value) -> Value:
            if not isinstance(part, ir.Expression):
                return part
            return ir.Read(self.builder.variable(name, part.type), span)

        return rebuild(value, make)

    def assign_slot(self, slot: Value, value: Value, name: str, span: Span) -> None:
        if shape(slot) != shape(value):
            hint = f"e.g. `{name} = U32(0)`" if isinstance(value, Static) else "e.g. a name of its own"
            raise KernelError(
                span, f"expected {describe(slot)} for {name!r} as before, found {describe(value)}, {hint}"
            )
        # A parallel assignment: `a = Pair(a.high, a.low)` must swap, so all is read before any of it is written.
        several = sum(1 for _ in parts(value)) > 1
        for part, held in zip(
            parts(slot), list(parts(self.held(name, value, span) if several else value)), strict=True
        ):
            if isinstance(part, ir.Read) and isinstance(held, ir.Expression):
                self.builder.emit(ir.Assign(part.variable, held, span))

    def joined(
        self, then: tuple[list[ir.Statement], dict[str, Value]], otherwise: tuple[list[ir.Statement], dict[str, Value]],
        span: Span,
    ) -> dict[str, Value]:  # fmt: skip
        """The names after a branch whose paths both fall through. Differing run-time values get one variable, which
        each path assigns at its end, as for a phi node.
        """
        (first, names_then), (second, names_otherwise) = then, otherwise
        names = names_after(names_then, names_otherwise)
        for name in [name for name, value in names.items() if isinstance(value, Undecided)]:
            a, b = lift(names_then[name], span), lift(names_otherwise[name], span)
            slot = self.slots.get(name, a)
            if (
                shape(a) != shape(b)
                or shape(a) != shape(slot)
                or not all(isinstance(p, ir.Expression) for p in parts(a))
            ):
                continue
            for block, value in ((first, a), (second, b)):
                with self.builder.nested() as assignment:
                    names[name] = self.into_slot(name, value, span)
                block += assignment
        return names

    def merged(
        self, node: ast.AST, condition: ir.Expression, then: tuple[list[ir.Statement], Value],
        otherwise: tuple[list[ir.Statement], Value],
    ) -> Value:  # fmt: skip
        """The value of `a if c else b`: a select where both can be speculated, else a branch that assigns."""
        span = self.source.span(node)
        (first, a), (second, b) = then, otherwise
        if shape(a) != shape(b):
            example = next((f"{side.type}(1)" for side in (a, b) if isinstance(side, ir.Expression)), "U32(1)")
            self.expected(
                node, f"one type on both sides, found {describe(a)} and {describe(b)}, e.g. `{example}` for a number"
            )
        if first or second or any(may_fail(part) for part in (*parts(a), *parts(b))):
            slot = self.new_slot("choice", a, span)
            with self.builder.nested() as assign_a:
                self.assign_slot(slot, a, "choice", span)
            with self.builder.nested() as assign_b:
                self.assign_slot(slot, b, "choice", span)
            self.builder.emit(ir.If(condition, (*first, *assign_a), (*second, *assign_b), span))
            return slot
        condition = self.builder.hold("condition", condition, span) if isinstance(a, StructValue) else condition
        chosen = iter(list(parts(b)))

        def pick(part: Value) -> Value:
            other = next(chosen)
            if isinstance(part, ir.Expression) and isinstance(other, ir.Expression):
                return apply(ops.SELECT, (condition, part, other), span)
            return part

        return rebuild(a, pick)


def names_after(then: dict[str, Value], otherwise: dict[str, Value]) -> dict[str, Value]:
    """The names that both paths of a branch have set; Undecided where their values differ."""
    names: dict[str, Value] = {}
    for name in (name for name in then if name in otherwise):
        a, b = then[name], otherwise[name]
        if a is b or a == b:
            names[name] = a
        else:
            names[name] = Undecided(f"expected one value of {name!r} behind the branch; its compile-time value differs "
                                    f"between the paths, e.g. `{run_time_form(name, b)}` before it")  # fmt: skip
    return names
