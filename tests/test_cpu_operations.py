"""Every row of the table of operations, for every type, as the CPU target compiles it, in lanes and alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel import ir
from gpusort.kernel.launch import Buffer, Role
from gpusort.kernel.span import Span
from gpusort.targets.cpu.target import CpuTarget
from gpusort.targets.kernel_text import OPERATIONS
from gpusort.types import ops, scalars
from gpusort.types.layout import Type
from gpusort.types.ops import Op
from tests.expressions import UNARY
from tests.stepped import run_step, step_of

Array = npt.NDArray[np.generic]
HERE = Span(__file__, 1)
TARGET = CpuTarget()


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
    low, high = type.bounds
    made = rng.integers(low, high, count, dtype=type.dtype, endpoint=True)
    small = rng.integers(0, 70, count).astype(type.dtype)
    made = np.where(rng.integers(0, 2, count) == 0, made, small)
    made[:5] = [low, high, 0, 1, high // 2 + 1]
    return made


_CASTS = (ops.CAST, ops.BITCAST)
_COMPUTED = [type for type in Type if type not in (Type.U8, Type.U16)]


def _rows() -> dict[tuple[Type, ...], list[tuple[Op, Type]]]:
    """All there is to compute, by the types of the operands: an operation and the type of its result."""
    rows: dict[tuple[Type, ...], list[tuple[Op, Type]]] = {}
    for a, b in itertools.product(Type, Type):
        if ops.can_cast(a, b):
            rows.setdefault((a,), []).append((ops.CAST, b))
        if ops.can_bitcast(a, b) and a in _COMPUTED and b in _COMPUTED:
            rows.setdefault((a,), []).append((ops.BITCAST, b))
    for op, type in itertools.product(ops.OPS, _COMPUTED):
        shape = _operands(op, type)
        result = None if op in _CASTS else op.rule(shape)
        if result is not None:
            rows.setdefault(shape, []).append((op, result))
    return rows


def _operands(op: Op, type: Type) -> tuple[Type, ...]:
    if op in (ops.SHL, ops.SHR):
        return type, Type.U32
    if op is ops.SELECT:
        return Type.BOOL, type, type
    return (type,) if op in UNARY else (type, type)


_OPERANDS = _rows()


def _table_program(shape: Sequence[Type], rows: Sequence[tuple[Op, Type]], group_size: int) -> ir.Program:
    """out_k[i] = op_k(in_0[i], …) for all rows."""
    inputs = [ir.Memory(f"in_{k}", ir.Space.STORAGE, type) for k, type in enumerate(shape)]
    outputs = [ir.Memory(f"out_{k}", ir.Space.STORAGE, type) for k, (_, type) in enumerate(rows)]
    operands = [ir.Variable(f"x_{k}", type) for k, type in enumerate(shape)]
    i = ir.Variable("i", Type.U32)
    index = ir.Read(i, HERE)
    group = ir.Apply(
        ops.MUL,
        (ir.BuiltinValue(ir.Builtin.GROUP_ID, HERE), ir.BuiltinValue(ir.Builtin.GROUP_SIZE, HERE)),
        Type.U32,
        HERE,
    )
    mine = ir.Apply(ops.ADD, (group, ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE)), Type.U32, HERE)
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


def _element(of: Type) -> type[object]:
    """The class whose elements are of this type, for a Buffer."""
    found: type[scalars.Scalar] = getattr(scalars, str(of))
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
    buffers = [Buffer(f"in_{k}", _element(type), count, Role.INPUT) for k, type in enumerate(shape)]
    buffers += [Buffer(f"out_{k}", _element(type), count, Role.OUTPUT) for k, (_, type) in enumerate(rows)]
    step = step_of(_table_program(shape, rows, group_size), buffers, (), count // group_size)
    arrays = {b.name: a for b, a in zip(buffers, [*operands, *found], strict=True)}
    run_step(TARGET, step, arrays)
    for (op, type), result in zip(rows, found, strict=True):
        expected = ops.apply(op, *operands, to=type if op in _CASTS else None)
        if op in (ops.EXP, ops.LOG):
            np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=1e-6)
        else:
            np.testing.assert_array_equal(result, expected.astype(type.dtype), err_msg=f"{op} {shape}")


def test_every_operation_is_written_and_tested() -> None:
    names = {op.name for op in ops.OPS}
    assert set(OPERATIONS) == names
    assert {op.name for rows in _OPERANDS.values() for op, _ in rows} == names
