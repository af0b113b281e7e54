"""Every row of the table of operations, for every type, as the CPU target compiles it: exact, lanes and serial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel import ir
from gpusort.kernel.launch import Buffer, Role, Step
from gpusort.kernel.span import Span
from gpusort.targets.cpu import CpuTarget
from gpusort.targets.cpu_writer import CPU_OPERATIONS
from gpusort.types import ops, scalars
from gpusort.types.layout import Type, bounds
from gpusort.types.ops import Op

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
