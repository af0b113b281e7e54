"""Random race-free programs: what the CPU target makes of them, held against the simulator.

They mix uniform and divergent control, barriers, subgroup operations, registers and variables that live
across them: all that cutting a kernel into loops over its lanes can get wrong.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpusort.kernel import ir
from gpusort.kernel.launch import Buffer, Role
from gpusort.kernel.passes.uniform import check_uniform
from gpusort.kernel.span import KernelError, Span
from gpusort.targets.cpu.limits import subgroup_size
from gpusort.targets.cpu.target import CpuTarget
from gpusort.targets.simulator.target import Simulator
from gpusort.types import ops
from gpusort.types.layout import Type
from gpusort.types.ops import Op, SubgroupOp
from gpusort.types.scalars import U32
from tests.stepped import run_step, step_of

HERE = Span(__file__, 1)
_BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.XOR, ops.AND, ops.OR, ops.MIN, ops.MAX, ops.SHR)
_REGISTERS = 3
_TABLE = 64


def random_program(seed: int, group_size: int) -> ir.Program:
    """A program whose barriers are all in uniform control: others are thrown away."""
    for attempt in range(10_000):
        program = _Generator(random.Random(f"{seed}.{attempt}"), group_size).program()
        try:
            check_uniform(program)
        except KernelError:
            continue
        return program
    raise AssertionError("no uniform program found")


def _const(value: int) -> ir.Const:
    return ir.Const(value, Type.U32, HERE)


def _apply(op: Op, a: ir.Expression, b: ir.Expression, type: Type = Type.U32) -> ir.Apply:
    return ir.Apply(op, (a, b), type, HERE)


class _Generator:
    def __init__(self, rng: random.Random, group_size: int) -> None:
        self.rng = rng
        self.data = ir.Memory("data", ir.Space.STORAGE, Type.U32)
        self.table = ir.Memory("table", ir.Space.STORAGE, Type.U32)
        self.tile = ir.Memory("tile", ir.Space.WORKGROUP, Type.U32, group_size)
        self.registers = ir.Memory("kept", ir.Space.REGISTERS, Type.U32, _REGISTERS)
        self.group_size = group_size
        self.limit = ir.Parameter("limit", Type.U32)
        self.uniform = [ir.Variable(f"u{k}", Type.U32) for k in range(3)]
        self.lanes = [ir.Variable(f"x{k}", Type.U32) for k in range(4)]
        self.extra: list[ir.Variable] = []

    def program(self) -> ir.Program:
        body: list[ir.Statement] = [ir.Assign(u, _const(k + 2), HERE) for k, u in enumerate(self.uniform)]
        body += [ir.Load(x, self.data, self._global(), HERE) for x in self.lanes]
        body += [ir.Store(self.registers, _const(k), self._read(self.lanes[0]), HERE) for k in range(_REGISTERS)]
        body += self.block(8, depth=0, uniform=True)
        mixed: ir.Expression = _const(1)
        for variable in self.lanes + self.uniform:
            mixed = _apply(ops.ADD, _apply(ops.MUL, mixed, _const(31)), self._read(variable))
        for k in range(_REGISTERS):
            value = self._fresh("kept_value")
            body.append(ir.Load(value, self.registers, _const(k), HERE))
            mixed = _apply(ops.ADD, _apply(ops.MUL, mixed, _const(31)), self._read(value))
        body.append(ir.Store(self.data, self._global(), mixed, HERE))
        variables = (*self.uniform, *self.lanes, *self.extra)
        memories = (self.data, self.table, self.tile, self.registers)
        return ir.Program("mixed", self.group_size, (self.limit,), memories, variables, tuple(body), HERE)

    # -- statements -------------------------------------------------------------------------------------

    def block(self, length: int, *, depth: int, uniform: bool) -> list[ir.Statement]:
        return [s for _ in range(self.rng.randint(1, length)) for s in self.statement(depth, uniform)]

    def statement(self, depth: int, uniform: bool) -> list[ir.Statement]:
        kinds = ["lane", "lane", "registers"]
        if uniform:
            kinds += ["uniform", "uniform", "exchange", "subgroup", "subgroup"]
        if depth < 3:
            kinds += ["if", "for", "while", "rows"]
        match self.rng.choice(kinds):
            case "lane":
                return [ir.Assign(self.rng.choice(self.lanes), self.expression(self.lanes + self.uniform), HERE)]
            case "uniform":
                return [ir.Assign(self.rng.choice(self.uniform), self.expression(self.uniform), HERE)]
            case "registers":
                at = _apply(ops.MOD, self.expression(self.lanes), _const(_REGISTERS))
                if self.rng.random() < 0.5:
                    return [ir.Store(self.registers, at, self.expression(self.lanes), HERE)]
                return [ir.Load(self.rng.choice(self.lanes), self.registers, at, HERE)]
            case "exchange":
                return self.exchange()
            case "subgroup":
                return [self.subgroup()]
            case "if":
                return [self.branch(depth, uniform)]
            case "for":
                return [self.loop(depth, uniform)]
            case "rows":
                return [self.rows(depth, uniform)]
            case _:
                return self.countdown(depth, uniform)

    def exchange(self) -> list[ir.Statement]:
        local = ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE)
        other = _apply(ops.MOD, _apply(ops.ADD, local, _const(self.rng.randint(1, 9))), _const(self.group_size))
        return [
            ir.Barrier(HERE),
            ir.Store(self.tile, local, self.expression(self.lanes), HERE),
            ir.Barrier(HERE),
            ir.Load(self.rng.choice(self.lanes), self.tile, other, HERE),
        ]

    def subgroup(self) -> ir.Statement:
        op = self.rng.choice([SubgroupOp.ADD, SubgroupOp.EXCLUSIVE_ADD, SubgroupOp.SHUFFLE_UP, SubgroupOp.SHUFFLE_DOWN])
        operands: tuple[ir.Expression, ...] = (self.expression(self.lanes),)
        if op.operand_count == 2:
            operands += (_apply(ops.AND, self.expression(self.lanes), _const(7)),)
        return ir.Subgroup(self.rng.choice(self.lanes), op, operands, HERE)

    def branch(self, depth: int, uniform: bool) -> ir.Statement:
        same = uniform and self.rng.random() < 0.6
        then = self.block(4, depth=depth + 1, uniform=same)
        otherwise = self.block(3, depth=depth + 1, uniform=same) if self.rng.random() < 0.5 else []
        return ir.If(self.condition(same), tuple(then), tuple(otherwise), HERE)

    def loop(self, depth: int, uniform: bool) -> ir.Statement:
        same = uniform and self.rng.random() < 0.6
        variable = self._fresh("i")
        stop = _apply(ops.MOD, self.expression(self.uniform if same else self.lanes), _const(5))
        body = self.block(4, depth=depth + 1, uniform=same)
        if self.rng.random() < 0.3:
            leave = ir.If(self.condition(same), (ir.Break(HERE),), (), HERE)
            body.insert(self.rng.randint(0, len(body)), leave)
        target = self.rng.choice(self.uniform if same else self.lanes)
        body.append(ir.Assign(target, _apply(ops.ADD, self._read(target), self._read(variable)), HERE))
        return ir.For(variable, _const(self.rng.randint(0, 1)), stop, _const(self.rng.randint(1, 2)), tuple(body), HERE)

    def rows(self, depth: int, uniform: bool) -> ir.Statement:
        """A loop in which neighbouring lanes read neighbours: start, stop and step of all kinds."""
        i, found, changed = self._fresh("row"), self._fresh("found"), self.rng.choice(self.lanes)
        local = ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE)
        step = _apply(ops.ADD, _apply(ops.MOD, self.expression(self.uniform), _const(9)), _const(1))
        stop = _apply(ops.MOD, self.expression(self.uniform + self.lanes), _const(_TABLE - 16))
        body: list[ir.Statement] = [
            ir.Load(found, self.table, self._read(i), HERE),
            ir.Assign(
                changed,
                _apply(ops.ADD, _apply(ops.MUL, self._read(changed), _const(3)), self._read(found)),
                HERE,
            ),
        ]
        start: ir.Expression = _apply(ops.ADD, local, _const(self.rng.randint(0, 5)))
        if self.rng.random() < 0.3:  # the same values for all lanes; the lane comes in at the load
            start, stop = _const(1), _apply(ops.MOD, self.expression(self.uniform), _const(_TABLE - 16))
            body[0] = ir.Load(found, self.table, _apply(ops.ADD, self._read(i), local), HERE)
        body += self.block(2, depth=depth + 1, uniform=uniform and self.rng.random() < 0.2)
        return ir.For(i, start, stop, step, tuple(body), HERE)

    def countdown(self, depth: int, uniform: bool) -> list[ir.Statement]:
        same = uniform and self.rng.random() < 0.6
        left = self._fresh("left")
        start = _apply(ops.MOD, self.expression(self.uniform if same else self.lanes), _const(4))
        head = [ir.Assign(left, _apply(ops.SUB, self._read(left), _const(1)), HERE)]
        test = ir.If(_apply(ops.LE, self._read(left), _const(0), Type.BOOL), (ir.Break(HERE),), (), HERE)
        body = self.block(3, depth=depth + 1, uniform=same)
        return [
            ir.Assign(left, _apply(ops.ADD, start, _const(1)), HERE),
            ir.Loop((*head, test, *body), HERE),
        ]

    # -- expressions ------------------------------------------------------------------------------------

    def expression(self, variables: list[ir.Variable], depth: int = 0) -> ir.Expression:
        if depth == 2 or self.rng.random() < 0.3:
            leaves: list[ir.Expression] = [
                self._read(self.rng.choice(variables)),
                self._read(self.rng.choice(variables)),
                _const(self.rng.choice((0, 1, 3, 77, 0xFFFFFFFF))),
                ir.Argument(self.limit, HERE),
                ir.BuiltinValue(ir.Builtin.GROUP_ID, HERE),
            ]
            if variables is not self.uniform:
                leaves.append(ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE))
            return self.rng.choice(leaves)
        a, b = self.expression(variables, depth + 1), self.expression(variables, depth + 1)
        return _apply(self.rng.choice(_BINARY), a, b)

    def condition(self, uniform: bool) -> ir.Expression:
        value = self.expression(self.uniform if uniform else self.lanes)
        return _apply(ops.NE, _apply(ops.AND, value, _const(1)), _const(0), Type.BOOL)

    def _read(self, variable: ir.Variable) -> ir.Expression:
        return ir.Read(variable, HERE)

    def _global(self) -> ir.Expression:
        group = _apply(ops.MUL, ir.BuiltinValue(ir.Builtin.GROUP_ID, HERE), _const(self.group_size))
        return _apply(ops.ADD, group, ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE))

    def _fresh(self, name: str) -> ir.Variable:
        made = ir.Variable(name, Type.U32)
        self.extra.append(made)
        return made


@pytest.mark.parametrize("group_size", [1, 4, 6, 8, 11, 16])
def test_random_programs_mean_what_the_simulator_says(group_size: int) -> None:
    for seed in range(3):
        program, count = random_program(seed, group_size), group_size * 3
        data: Buffer[object] = Buffer("data", U32, count, Role.INOUT)
        rows: Buffer[object] = Buffer("table", U32, _TABLE, Role.INPUT)
        step = step_of(program, (data, rows), (seed * 7 % 13,), 3)
        table = np.arange(_TABLE, dtype=np.uint32) * np.uint32(2654435761)
        mine = np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32)
        theirs = mine.copy()
        run_step(CpuTarget(), step, {"data": mine, "table": table})
        run_step(Simulator(subgroup_size=subgroup_size(group_size)), step, {"data": theirs, "table": table})
        np.testing.assert_array_equal(mine, theirs, err_msg=f"seed {seed}")
