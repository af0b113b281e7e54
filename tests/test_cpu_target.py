"""The CPU target: what it generates means what the IR says, and it keeps its promises about threads and caches."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel import ir
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule, Step
from gpusort.kernel.specialise import specialise
from gpusort.kernel.span import KernelError, Span
from gpusort.targets.base import Capability
from gpusort.targets.cpu import CpuTarget
from gpusort.targets.cpu_lanes import subgroup_size
from gpusort.targets.cpu_pool import Pool, thread_count
from gpusort.targets.cpu_writer import CPU_OPERATIONS
from gpusort.targets.simulator import Simulator
from gpusort.types import ops
from gpusort.types.errors import CapabilityError, InvalidArgumentError
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.layout import Type, bounds
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.ops import Op, SubgroupOp
from gpusort.types.scalars import U8, U32, U64

Array = npt.NDArray[np.generic]
HERE = Span(__file__, 1)
TARGET = CpuTarget()
_SCALARS: dict[Type, type[object]] = {}


def run(*launches: Launch, **arrays: Array) -> None:
    TARGET.run(Schedule((), launches), arrays)


def buffer(name: str, element: type[object], count: int, role: Role = Role.INOUT) -> Buffer[object]:
    return Buffer(name, element, count, role)


# -- every operation ------------------------------------------------------------------------------------------


def _values(type: Type, count: int) -> Array:
    """Edge values of a type, then random bits."""
    rng = np.random.default_rng(type.bits)
    if type is Type.BOOL:
        return rng.integers(0, 2, count).astype(np.bool_)
    if type.is_float:
        edges = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, 2.0**63]
        made = rng.standard_normal(count) * 10.0 ** rng.integers(-30, 30, count)
        made[: len(edges)] = edges
        with np.errstate(all="ignore"):
            return made.astype(type.dtype)
    low, high = bounds(type)
    made = rng.integers(low, high, count, dtype=type.dtype, endpoint=True)
    small = rng.integers(0, 70, count).astype(type.dtype)
    made = np.where(rng.integers(0, 2, count) == 0, made, small)
    made[:5] = np.array([low, high, 0, 1, high // 2 + 1]).astype(type.dtype)
    return made


_BITCASTS = [(a, b) for a in Type for b in Type if ops.can_bitcast(a, b) and a.size >= 4]
_CASTS = [(a, b) for a in Type for b in Type if ops.can_cast(a, b)]
_OPERANDS: dict[tuple[Type, ...], list[tuple[Op, Type]]] = {}
for _a, _b in _CASTS:
    _OPERANDS.setdefault((_a,), []).append((ops.CAST, _b))
for _a, _b in _BITCASTS:
    _OPERANDS.setdefault((_a,), []).append((ops.BITCAST, _b))
for _op in ops.OPS:
    if _op in (ops.CAST, ops.BITCAST):
        continue
    for _type in Type:
        for _shape in ((_type,), (_type, _type), (_type, Type.U32), (Type.BOOL, _type, _type)):
            try:
                _result = _op.rule(_shape)
                _arity = _op.evaluate.__code__.co_argcount if hasattr(_op.evaluate, "__code__") else 2
            except IndexError:
                continue
            if _op.evaluate in (np.sqrt, np.exp, np.log):
                _arity = 1
            if _result is not None and _arity == len(_shape) and _type not in (Type.U8, Type.U16):
                _wanted = (_op, _result)
                if _wanted not in _OPERANDS.setdefault(_shape, []):
                    _OPERANDS[_shape].append(_wanted)


def _table_program(shape: Sequence[Type], rows: Sequence[tuple[Op, Type]], group_size: int) -> ir.Program:
    """out_k[i] = op_k(in_0[i], …) for all rows."""
    inputs = [ir.Memory(f"in_{k}", ir.Space.STORAGE, type) for k, type in enumerate(shape)]
    outputs = [ir.Memory(f"out_{k}", ir.Space.STORAGE, type) for k, (_, type) in enumerate(rows)]
    operands = [ir.Variable(f"x_{k}", type) for k, type in enumerate(shape)]
    i = ir.Variable("i", Type.U32)
    index = ir.Read(i, HERE)
    group = ir.Apply(
        ops.MUL,
        (ir.Identity(ir.Builtin.GROUP_ID, HERE), ir.Identity(ir.Builtin.GROUP_SIZE, HERE)),
        Type.U32,
        HERE,
    )
    mine = ir.Apply(ops.ADD, (group, ir.Identity(ir.Builtin.LOCAL_ID, HERE)), Type.U32, HERE)
    reads = tuple(ir.Read(x, HERE) for x in operands)
    body: ir.Block = (
        ir.Assign(i, mine, HERE),
        *(ir.Load(x, memory, index, HERE) for x, memory in zip(operands, inputs, strict=True)),
        *(
            ir.Store(memory, index, ir.Apply(op, reads, result, HERE), HERE)
            for memory, (op, result) in zip(outputs, rows, strict=True)
        ),
    )
    return ir.Program("table", group_size, (), (*inputs, *outputs), (i, *operands), body, HERE)


def _element(type: Type) -> type[object]:
    """A class of elements of this type, for a Buffer."""
    from gpusort.types import scalars

    found: type[object] = getattr(scalars, str(type))
    return found


@pytest.mark.parametrize("group_size", [1, 32])
@pytest.mark.parametrize("shape", _OPERANDS, ids=lambda shape: "-".join(map(str, shape)))
def test_operations_mean_what_the_table_says(shape: tuple[Type, ...], group_size: int) -> None:
    rows, count = _OPERANDS[shape], 256
    operands = [_values(type, count) for type in shape]
    for k, operand in enumerate(operands):
        operands[k] = np.roll(operand, k)
    if any(op in (ops.FLOORDIV, ops.MOD) for op, _ in rows):
        operands[1] = np.where(operands[1] == 0, operands[1].dtype.type(3), operands[1])
    found = [np.zeros(count, type.dtype) for _, type in rows]
    buffers = [buffer(f"in_{k}", _element(type), count, Role.INPUT) for k, type in enumerate(shape)]
    buffers += [buffer(f"out_{k}", _element(type), count) for k, (_, type) in enumerate(rows)]
    step = Step(_table_program(shape, rows, group_size), tuple(buffers), (), count // group_size)
    arrays = {b.name: a for b, a in zip(buffers, [*operands, *found], strict=True)}
    TARGET.run_steps([step], arrays)
    for (op, type), result in zip(rows, found, strict=True):
        expected = ops.apply(op, *operands, to=type if op in (ops.CAST, ops.BITCAST) else None)
        if op in (ops.EXP, ops.LOG):
            np.testing.assert_allclose(result, expected, rtol=1e-6)
        else:
            np.testing.assert_array_equal(result, expected.astype(type.dtype), err_msg=f"{op} {shape}")


def test_every_operation_is_written_and_tested() -> None:
    names = {op.name for op in ops.OPS}
    assert set(CPU_OPERATIONS) == names
    assert {op.name for rows in _OPERANDS.values() for op, _ in rows} == names


# -- workgroups -----------------------------------------------------------------------------------------------


@kernel
def subgroups(cx: Invocation, data: Storage[U32], found: Storage[U64]) -> None:
    i = cx.global_id
    x = data[i]
    found[i * 8] = cx.ballot(x % 3 == 0)
    found[i * 8 + 1] = cx.match(x & 3)
    found[i * 8 + 2] = U64(cx.subgroup_add(x))
    found[i * 8 + 3] = U64(cx.exclusive_add(x))
    found[i * 8 + 4] = U64(cx.shuffle_up(x, U32(1)))
    found[i * 8 + 5] = U64(cx.shuffle_down(x, cx.lane & 3))
    found[i * 8 + 6] = U64(cx.subgroup_id)
    found[i * 8 + 7] = U64(cx.subgroup_size)


@kernel
def shuffles(cx: Invocation, data: Storage[U32], found: Storage[U64]) -> None:
    i = cx.global_id
    x = data[i]
    found[i * 2] = cx.shuffle(U64(x) << 9, cx.lane + 3)
    found[i * 2 + 1] = U64(cx.shuffle_xor(x, cx.subgroup_size - 1))


@pytest.mark.parametrize("group_size", [1, 2, 3, 4, 6, 8, 12, 24])
def test_subgroup_operations(group_size: int) -> None:
    _same_as_simulated(subgroups.launch, group_size, 8)


@pytest.mark.parametrize("group_size", [1, 2, 4, 8, 24])
def test_shuffles(group_size: int) -> None:
    _same_as_simulated(shuffles.launch, group_size, 2)


def _same_as_simulated(launch: Callable[..., Launch], group_size: int, width: int) -> None:
    count = 48
    data, found = buffer("data", U32, count, Role.INPUT), buffer("found", U64, count * width)
    made = launch(Grid(count // group_size, group_size), data, found)
    values = np.random.default_rng(3).integers(0, 1 << 32, count, dtype=np.uint32)
    mine, theirs = np.zeros(count * width, np.uint64), np.zeros(count * width, np.uint64)
    run(made, data=values, found=mine)
    Simulator(subgroup_size=subgroup_size(group_size)).run_steps(
        (specialise(made),), {"data": values, "found": theirs}
    )
    np.testing.assert_array_equal(mine, theirs)


@kernel
def passes(cx: Invocation, data: Storage[U32], tile: Workgroup[U32], rounds: U32) -> None:
    """Uniform control around barriers; a variable kept across them; registers kept and private."""
    me = cx.local_id
    kept: Registers[U32] = Registers(U32, 2)
    value = data[cx.global_id]
    kept[0] = value
    kept[1] = U32(0)
    tile[me] = value
    done = U32(0)
    for at in dynamic_range(U32(0), rounds):
        cx.barrier()
        neighbour = tile[(me + at + 1) % cx.group_size]
        cx.barrier()
        scratch: Registers[U32] = Registers(U32, 2)
        scratch[me & 1] = neighbour
        value = value * 3 + scratch[me & 1]
        kept[1] = kept[1] + neighbour
        if at == 5:
            break
        tile[me] = value
        done = done + 1
    while done > 2:
        cx.barrier()
        done = done - 1
    data[cx.global_id] = value + kept[0] * 5 + kept[1] * 7 + done


@pytest.mark.parametrize("rounds", [0, 1, 4, 9])
@pytest.mark.parametrize("group_size", [1, 5, 64])
def test_control_flow_around_barriers(group_size: int, rounds: int) -> None:
    count = group_size * 3
    data = buffer("data", U32, count)
    launch = passes.launch(Grid(3, group_size), data, Workgroup(U32, group_size), U32(rounds))  # type: ignore[arg-type]
    mine = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    theirs = mine.copy()
    run(launch, data=mine)
    Simulator().run_steps((specialise(launch),), {"data": theirs})
    np.testing.assert_array_equal(mine, theirs)


@kernel
def divergent(cx: Invocation, data: Storage[U32]) -> None:
    if data[cx.local_id] > 3:
        cx.barrier()


def test_a_barrier_that_some_lanes_miss_is_refused_before_anything_runs() -> None:
    with pytest.raises(KernelError, match=r"expected a barrier that all invocations"):
        run(divergent.launch(Grid(1, 8), buffer("data", U32, 8)), data=np.zeros(8, np.uint32))
