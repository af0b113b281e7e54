"""Broken IR is refused, with the rule that it breaks, the line it comes from, and what was found."""

from __future__ import annotations

import re

import attrs
import pytest

from gpusort.kernel import ir
from gpusort.kernel.span import Span
from gpusort.kernel.verify import VerifyError, verify
from gpusort.types import ops
from gpusort.types.layout import Type
from gpusort.types.ops import AtomicOp, Op, SubgroupOp

HERE = Span(__file__, 1)
WORD, WIDE = ir.Variable("word", Type.U32), ir.Variable("wide", Type.U64)
HOLDS, STRAY = ir.Variable("holds", Type.BOOL), ir.Variable("stray", Type.U32)
DATA = ir.Memory("data", ir.Space.STORAGE, Type.U32)
LONGS = ir.Memory("longs", ir.Space.STORAGE, Type.U64)
TILE = ir.Memory("tile", ir.Space.WORKGROUP, Type.U32, 8)
MINE = ir.Memory("mine", ir.Space.REGISTERS, Type.U32, 4)
LOST = ir.Memory("lost", ir.Space.STORAGE, Type.U32)
COUNT = ir.Parameter("count", Type.U32)


def const(value: float, type: Type = Type.U32) -> ir.Const:
    return ir.Const(value, type, HERE)


def read(variable: ir.Variable = WORD) -> ir.Read:
    return ir.Read(variable, HERE)


def apply(op: Op, type: Type, *operands: ir.Expression) -> ir.Apply:
    return ir.Apply(op, operands, type, HERE)


def assign(value: ir.Expression, variable: ir.Variable = WORD) -> ir.Assign:
    return ir.Assign(variable, value, HERE)


def loop(*body: ir.Statement, variable: ir.Variable = WORD, stop: ir.Expression | None = None) -> ir.For:
    return ir.For(variable, const(0), stop or const(4), const(1), body, HERE)


def subgroup(op: SubgroupOp, variable: ir.Variable, *operands: ir.Expression) -> ir.Subgroup:
    return ir.Subgroup(variable, op, operands, HERE)


def program(*body: ir.Statement) -> ir.Program:
    memories, variables = (DATA, LONGS, TILE, MINE), (WORD, WIDE, HOLDS)
    return ir.Program("subject", 8, (COUNT,), memories, variables, body, HERE)


RIGHT: list[ir.Statement] = [
    assign(apply(ops.ADD, Type.U32, ir.Argument(COUNT, HERE), ir.Length(DATA, HERE))),
    assign(apply(ops.CAST, Type.U64, read()), WIDE),
    assign(apply(ops.LT, Type.BOOL, read(), const(3)), HOLDS),
    ir.Load(WORD, DATA, ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE), HERE),
    ir.Store(LONGS, read(), read(WIDE), HERE),
    ir.Atomic(WORD, AtomicOp.ADD, TILE, const(0), read(), HERE),
    ir.Atomic(WORD, AtomicOp.LOAD, TILE, const(0), None, HERE),
    ir.Atomic(None, AtomicOp.STORE, TILE, const(0), read(), HERE),
    subgroup(SubgroupOp.BALLOT, WIDE, read(HOLDS)),
    subgroup(SubgroupOp.MATCH, WIDE, read()),
    subgroup(SubgroupOp.SHUFFLE, WIDE, read(WIDE), const(1)),
    subgroup(SubgroupOp.EXCLUSIVE_ADD, WORD, read()),
    ir.Barrier(HERE),
    loop(ir.If(read(HOLDS), (ir.Break(HERE),), (), HERE)),
    ir.Loop((assign(const(True, Type.BOOL), HOLDS), ir.Break(HERE)), HERE),
]

# What is wrong, the rule, and what was found.
BROKEN: list[tuple[ir.Statement, str, str]] = [
    (assign(const(True)), "a U32 constant holds a U32", "True"),
    (assign(const(-1)), "a U32 constant holds a U32", "-1"),
    (assign(const(1 << 32)), "a U32 constant holds a U32", "4294967296"),
    (assign(const(1.0)), "a U32 constant holds a U32", "1.0"),
    (
        assign(apply(ops.LT, Type.BOOL, const(1, Type.F32), const(1.0, Type.F32)), HOLDS),
        "a F32 constant holds a F32",
        "1",
    ),
    (assign(const(1, Type.BOOL), HOLDS), "a Bool constant holds a Bool", "1"),
    (assign(const(1, Type.U64)), "the expression is U32", "U64"),
    (assign(const(1), STRAY), "a variable is declared", "stray"),
    (assign(read(STRAY)), "a variable is declared", "stray"),
    (assign(ir.Argument(ir.Parameter("other", Type.U32), HERE)), "a parameter is declared", "other"),
    (assign(ir.Length(TILE, HERE)), "a length is that of a storage buffer", "tile"),
    (assign(ir.Length(LOST, HERE)), "a length is that of a storage buffer", "lost"),
    (assign(apply(ops.ADD, Type.U32, const(1), const(1, Type.U64))), "add of U32, U64 is None", "U32"),
    (assign(apply(ops.ADD, Type.U64, const(1), const(1)), WIDE), "add of U32, U32 is U32", "U64"),
    (assign(apply(ops.SHL, Type.U64, read(WIDE), read(WIDE)), WIDE), "shl of U64, U64 is None", "U64"),
    (assign(apply(ops.CAST, Type.BOOL, read()), HOLDS), "cast reaches Bool", "U32"),
    (assign(apply(ops.BITCAST, Type.U64, read()), WIDE), "bitcast reaches U64", "U32"),
    (ir.Load(WORD, LOST, const(0), HERE), "a memory is declared", "lost"),
    (ir.Load(WORD, DATA, const(0, Type.U64), HERE), "the expression is U32", "U64"),
    (ir.Load(WIDE, DATA, const(0), HERE), "load gives U32", "U64"),
    (ir.Store(LONGS, const(0), const(1), HERE), "the expression is U64", "U32"),
    (ir.Store(LOST, const(0), const(1), HERE), "a memory is declared", "lost"),
    (
        ir.Atomic(WORD, AtomicOp.ADD, MINE, const(0), const(1), HERE),
        "an atomic works on shared U32",
        "U32 in registers",
    ),
    (ir.Atomic(WORD, AtomicOp.ADD, LONGS, const(0), const(1), HERE), "an atomic works on shared U32", "U64 in storage"),
    (ir.Atomic(WORD, AtomicOp.ADD, TILE, const(0), None, HERE), "all atomics but LOAD take a value", "AtomicOp.ADD"),
    (
        ir.Atomic(WORD, AtomicOp.LOAD, TILE, const(0), const(1), HERE),
        "all atomics but LOAD take a value",
        "AtomicOp.LOAD",
    ),
    (ir.Atomic(WIDE, AtomicOp.ADD, TILE, const(0), const(1), HERE), "atomic gives U32", "U64"),
    (ir.Atomic(WORD, AtomicOp.ADD, TILE, const(0), read(WIDE), HERE), "the expression is U32", "U64"),
    (subgroup(SubgroupOp.BALLOT, WIDE, read()), "the expression is Bool", "U32"),
    (subgroup(SubgroupOp.BALLOT, WORD, read(HOLDS)), "ballot gives U64", "U32"),
    (subgroup(SubgroupOp.MATCH, WIDE, read(WIDE)), "the expression is U32", "U64"),
    (subgroup(SubgroupOp.SHUFFLE, WORD, read()), "shuffle takes 2", "1"),
    (subgroup(SubgroupOp.SHUFFLE, WORD, read(WIDE), const(1)), "shuffle gives U64", "U32"),
    (subgroup(SubgroupOp.SHUFFLE, WORD, read(), read(WIDE)), "the expression is U32", "U64"),
    (subgroup(SubgroupOp.ADD, WIDE, read()), "add gives U32", "U64"),
    (ir.If(read(), (), (), HERE), "the expression is Bool", "U32"),
    (ir.If(read(HOLDS), (), (assign(read(STRAY)),), HERE), "a variable is declared", "stray"),
    (loop(stop=read(WIDE)), "the expression is U32", "U64"),
    (loop(variable=STRAY), "a variable is declared", "stray"),
    (loop(variable=WIDE), "for gives U32", "U64"),
    (loop(assign(read(STRAY))), "a variable is declared", "stray"),
    (ir.Loop((assign(read(STRAY)),), HERE), "a variable is declared", "stray"),
    (ir.Break(HERE), "a break stands in a loop", "none"),
    (ir.If(read(HOLDS), (ir.Break(HERE),), (), HERE), "a break stands in a loop", "none"),
]


def test_what_is_right_passes() -> None:
    verify(program(*RIGHT))


@pytest.mark.parametrize(
    ("statement", "rule", "found"), BROKEN, ids=[f"{i}-{case[1]}" for i, case in enumerate(BROKEN)]
)
def test_a_broken_rule_is_named(statement: ir.Statement, rule: str, found: str) -> None:
    expected = f"{HERE}: in subject: {rule}; found {found}\n    {HERE.text}"
    with pytest.raises(VerifyError, match=f"^{re.escape(expected)}$"):
        verify(program(*RIGHT, statement))


@pytest.mark.parametrize(
    ("memory", "rule", "found"),
    [
        (attrs.evolve(TILE, name="data"), "memories have names of their own", r"\['data', 'data'\]"),
        (attrs.evolve(TILE, length=None), "workgroup memory comes with a length", "None"),
        (attrs.evolve(MINE, length=0), "registers memory comes with a length", "0"),
        (attrs.evolve(DATA, name="more", length=8), "storage memory comes without a length", "8"),
    ],
    ids=["name", "workgroup", "registers", "storage"],
)
def test_memories_are_checked(memory: ir.Memory, rule: str, found: str) -> None:
    with pytest.raises(VerifyError, match=f"{rule}; found {found}\n"):
        verify(attrs.evolve(program(), memories=(DATA, memory)))


def test_a_group_has_an_invocation() -> None:
    with pytest.raises(VerifyError, match="a group has an invocation; found 0\n"):
        verify(attrs.evolve(program(), group_size=0))


@pytest.mark.parametrize(
    ("stop", "step", "is_known"),
    [(None, 1, True), (None, 2, False), (100, None, False), (None, None, False), (100, 64, True),
     (1 << 31, 1 << 31, True), (0xFFFF_FFFF, 1, True), (0xFFFF_FFFF, 2, False), (0xFFFF_FFFE, 2, True),
     ((1 << 31) + 1, 1 << 31, False)],
)  # fmt: skip
def test_a_loop_s_counter_reaches_its_stop_unless_it_may_wrap(
    stop: int | None, step: int | None, is_known: bool
) -> None:
    """What is not a constant may be any number."""
    variable, span = ir.Variable("i", Type.U32), Span("here.py", 1)
    first, end, by = (
        ir.Read(variable, span) if value is None else ir.Const(value, Type.U32, span) for value in (0, stop, step)
    )
    assert ir.For(variable, first, end, by, (), span).ends_before_it_wraps is is_known
