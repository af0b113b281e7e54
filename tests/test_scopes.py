"""Which variables can be declared where they are set: those whose one setting comes before all that reads them."""

from __future__ import annotations

import pytest

from gpusort.kernel import ir
from gpusort.kernel.passes.scopes import Assignments, Scopes
from gpusort.kernel.span import Span
from gpusort.types import ops
from gpusort.types.layout import Type

HERE = Span(__file__, 1)
X, Y, N = (ir.Variable(name, Type.U32) for name in "xyn")
DATA = ir.Memory("data", ir.Space.STORAGE, Type.U32)


def const(value: int) -> ir.Const:
    return ir.Const(value, Type.U32, HERE)


def put(variable: ir.Variable, value: int = 1) -> ir.Statement:
    return ir.Assign(variable, const(value), HERE)


def read(variable: ir.Variable) -> ir.Statement:
    return ir.Store(DATA, const(0), ir.Read(variable, HERE), HERE)


def more(variable: ir.Variable) -> ir.Statement:
    return ir.Assign(variable, ir.Apply(ops.ADD, (ir.Read(variable, HERE), const(1)), Type.U32, HERE), HERE)


def branch(then: ir.Block, otherwise: ir.Block = ()) -> ir.Statement:
    return ir.If(ir.Apply(ops.LT, (const(1), ir.Length(DATA, HERE)), Type.BOOL, HERE), then, otherwise, HERE)


def count(body: ir.Block, variable: ir.Variable = N, start: ir.Expression | None = None) -> ir.Statement:
    return ir.For(variable, start or const(0), const(9), const(1), body, HERE)


def loop(head: ir.Block, body: ir.Block, of: ir.Variable = X) -> ir.Statement:
    test = ir.Apply(ops.GE, (ir.Read(of, HERE), const(9)), Type.BOOL, HERE)
    return ir.Loop((*head, ir.If(test, (ir.Break(HERE),), (), HERE), *body), HERE)


def of(*body: ir.Statement) -> Scopes:
    return Scopes(ir.Program("some", 8, (), (DATA,), (X, Y, N), body, HERE))


# What is settled of X, Y and N, what counts a loop and nothing else, and what nobody reads.
CASES: dict[str, tuple[ir.Block, str, str, str]] = {
    "set and read": ((put(X), read(X)), "x", "", "yn"),
    "read in inner blocks": ((put(X), branch((read(X),), (count((read(X),)),)),), "x", "n", "y"),
    "set twice": ((put(X), put(X), read(X)), "", "", "yn"),
    "set on both sides": ((branch((put(X),), (put(X),)), read(X)), "", "", "yn"),
    "set on one side, and read there": ((branch((put(X), read(X))),), "x", "", "yn"),
    "set on one side, and read on the other": ((branch((put(X),), (read(X),)),), "", "", "yn"),
    "set on one side, and read behind": ((branch((put(X),)), read(X)), "", "", "yn"),
    "read before it is set": ((read(X), put(X)), "", "", "yn"),
    "set by itself": ((more(X), read(X)), "", "", "yn"),
    "set of another": ((put(X), ir.Assign(Y, ir.Read(X, HERE), HERE), read(Y)), "xy", "", "n"),
    "set and not read": ((put(X), put(Y), read(Y)), "xy", "", "xn"),
    "set twice and not read": ((put(X), put(X)), "", "", "xyn"),
    "set before a test, and read behind it": ((loop((put(X),), (read(X),)),), "x", "", "yn"),
    "set behind a test, and read before it": ((loop((read(Y), put(X)), (put(Y),)),), "x", "", "n"),
    "set in a body, and read behind": ((put(X), loop((), (put(Y),)), read(Y)), "x", "", "n"),
    "set before a loop, and in it": ((put(X), loop((), (more(X),))), "", "", "yn"),
    "a counter": ((count((read(N),)),), "", "n", "xy"),
    "a counter that is not read": ((count((put(X), read(X))),), "x", "n", "y"),
    "a counter that its loop sets": ((count((more(N),)),), "", "", "xy"),
    "a counter that is read behind": ((count((read(N),)), read(N)), "", "", "xy"),
    "a counter of two loops": ((count((read(N),)), count((read(N),))), "", "n", "xy"),
    "a counter that starts from itself": ((count((read(N),), start=ir.Read(N, HERE)),), "", "", "xy"),
    "a loop within a loop": ((count((count((read(X), read(N)), X),)),), "", "xn", "y"),
    "set in a loop, and read there": ((count((put(X), read(X), read(N))),), "x", "n", "y"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_variables_are_declared_where_they_are_set(name: str) -> None:
    body, settled, counters, unread = CASES[name]
    found, variables = of(*body), {variable.name: variable for variable in (X, Y, N)}
    for group, names in ((found.settled, settled), (found.counters, counters), (found.unread, unread)):
        assert {variable.name for variable in group} == {*names}
    assert found.declared == [variables[name] for name in variables if name not in {*settled, *counters, *unread}]


@pytest.mark.parametrize(
    ("body", "exposed"),
    [
        ((branch((put(X),), (put(X),)), read(X)), ""),
        ((branch((put(X),), (put(Y),)), read(X), read(Y)), "xy"),
        ((branch((put(X), put(Y)), (put(X),)), read(X), read(Y)), "y"),
        ((count((put(X),)), read(X), read(N)), "xn"),
    ],
)
def test_what_is_set_on_all_ways_is_sure(body: ir.Block, exposed: str) -> None:
    found = Assignments()
    found.block(body)
    assert {variable.name for variable in found.exposed} == set(exposed)
