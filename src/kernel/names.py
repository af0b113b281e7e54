"""The names of one inlined function, and conditional expressions. A name is bound to a value, or, if several statements
assign it, to variables of the IR (a slot). Where control flow joins, a name whose value differs between the paths gets
a variable that each path assigns, in place of a phi node."""

from __future__ import annotations

import ast
from typing import TypeAlias

from ..types import ops
from . import ir
from .builder import KernelBuilder, apply, may_fail
from .captures import same
from .compile_time import require_numbers
from .messages import describe, run_time_form
from .source import Source, stored_in
from .span import Span, expected
from .values import MemoryValue, Method, Undecided, Value, first_difference, is_alike, is_known, lift, rebuild, scalars

Bound: TypeAlias = dict[str, Value]
Path: TypeAlias = tuple[list[ir.Statement], Bound]  # one side of a branch: its block, and the names at its end
Side: TypeAlias = tuple[list[ir.Statement], Value]  # one side of `a if c else b`: statements that compute it, its value


def held(builder: KernelBuilder, name: str, value: Value, span: Span) -> Value:
    """The value, with each scalar in it assigned to a single-assignment variable (see `KernelBuilder.hold`)."""
    return value if is_known(value) else rebuild(value, lambda scalar: builder.hold(name, scalar, span))


def new_slot(builder: KernelBuilder, name: str, value: Value, span: Span) -> Value:
    """Fresh variables for the scalars of a value: a slot, which can hold any value of this shape."""
    return rebuild(value, lambda scalar: ir.Read(builder.variable(name, scalar.type), span))


def assign_slot(builder: KernelBuilder, slot: Value, value: Value, name: str, span: Span) -> None:
    """Assigns a value to a slot. Raises KernelError if it has another shape."""
    if not is_alike(slot, value):
        hint = f"e.g. `{name} = U32(0)`" if is_known(value) else "e.g. a name of its own"
        before, found = first_difference(slot, value)
        expected(span, f"{describe(before)} for {name!r} as before, found {describe(found)}, {hint}")
    if len(scalars(value)) > 1:  # `a = Pair(a.high, a.low)` must swap: all is read before any of it is written
        value = held(builder, name, value, span)
    for read, scalar in zip(scalars(slot), scalars(value), strict=True):
        assert isinstance(read, ir.Read)
        builder.emit(ir.Assign(read.variable, scalar, span))


def if_else(builder: KernelBuilder, condition: ir.Expression, then: Side, otherwise: Side, span: Span) -> Value:
    """The value of `a if c else b`: a select if both sides can be evaluated speculatively, else a branch that
    assigns."""
    (first, a), (second, b) = then, otherwise
    if isinstance(a, MemoryValue) and isinstance(b, MemoryValue) and a != b:
        expected(span, "an element on both sides, found an array and another, e.g. `a[i] if c else b[i]`")
    if not is_alike(a, b):
        a, b = first_difference(a, b)
        require_numbers((a, b), span)
        example = next((f"{side.type}(1)" for side in (a, b) if isinstance(side, ir.Expression)), "U32(1)")
        expected(span, f"one type on both sides, found {describe(a)} and {describe(b)}, e.g. `{example}` for a number")
    if first or second or any(map(may_fail, (*scalars(a), *scalars(b)))):
        slot = new_slot(builder, "choice", a, span)
        for block, value in ((first, a), (second, b)):
            with builder.nested(block):
                assign_slot(builder, slot, value, "choice", span)
        builder.emit(ir.If(condition, tuple(first), tuple(second), span))
        return slot
    if len(scalars(a)) > 1:
        condition = builder.hold("condition", condition, span)
    others = iter(scalars(b))
    return rebuild(a, lambda scalar: apply(ops.SELECT, (condition, scalar, next(others)), span))


class Names:
    """What the names of an inlined function stand for, at the point that is being read."""

    def __init__(self, builder: KernelBuilder, source: Source) -> None:
        self.values: Bound = {}
        self._slots: Bound = {}  # the variables of names that are assigned in several places
        self._builder, self._source = builder, source

    def bind(self, name: str, value: Value, span: Span) -> None:
        """Binds a name. A name that several statements assign gets a slot, unless its value is compile-time."""
        is_stored_again = self._source.stores.get(name, 0) > 1 and not isinstance(value, Method)
        if name in self._slots or (is_stored_again and scalars(value)):
            self.values[name] = self._into_slot(name, lift(value, span), span)
        else:
            self.values[name] = held(self._builder, name, value, span)

    def _into_slot(self, name: str, value: Value, span: Span) -> Value:
        if name not in self._slots:
            self._slots[name] = new_slot(self._builder, name, value, span)
        assign_slot(self._builder, self._slots[name], value, name, span)
        return self._slots[name]

    def join(self, then: Path, otherwise: Path, span: Span) -> None:
        """Joins the names after a branch of which both sides fall through. A name with different run-time values gets a
        slot, assigned at the end of each side."""
        (first, names_then), (second, names_otherwise) = then, otherwise
        names = names_after(names_then, names_otherwise)
        for name in [name for name, value in names.items() if isinstance(value, Undecided)]:
            a, b = lift(names_then[name], span), lift(names_otherwise[name], span)
            if is_alike(a, b) and is_alike(a, self._slots.get(name, a)):
                for block, value in ((first, a), (second, b)):
                    with self._builder.nested(block):
                        names[name] = self._into_slot(name, value, span)
        self.values = names

    def lift_changed(self, loop: ast.For | ast.While, span: Span) -> None:
        """Assigns compile-time bools and enums that a loop changes to slots before the loop."""
        for name in stored_in(loop):
            value = self.values.get(name)
            lifted = lift(value, span)
            if not same(lifted, value):
                self.values[name] = self._into_slot(name, lifted, span)

    def forget_changed(self, loop: ast.For | ast.While, span: Span) -> None:
        """Makes names with other compile-time values that a run-time loop changes undecided, in the loop and after it.
        The body is read once for all iterations, so no single compile-time value is right."""
        self.lift_changed(loop, span)
        for name, counts in stored_in(loop).items():
            value = self.values.get(name)
            if name not in self.values or (not counts and name in self._slots and value is self._slots[name]):
                continue
            self.values[name] = Undecided(
                f"expected {name!r} to count in its loop only, e.g. another name for the value behind the loop"
                if counts
                else f"expected {name!r} to be one array, for a run-time loop is read once, e.g. a loop over `range(3)`"
                if isinstance(value, MemoryValue)
                else f"expected {name!r} to be a run-time value, for a loop changes it, "
                f"e.g. `{run_time_form(name, value)}` before the loop"
            )


def names_after(then: Bound, otherwise: Bound) -> Bound:
    """The names that both paths of a branch have set; Undecided where their values differ."""
    names: Bound = {}
    for name in (name for name in then if name in otherwise):
        a, b = then[name], otherwise[name]
        if same(a, b):
            names[name] = a
        else:
            names[name] = Undecided(f"expected one value of {name!r} behind the branch; its compile-time value differs "
                                    f"between the paths, e.g. `{run_time_form(name, b)}` before it")  # fmt: skip
    return names
