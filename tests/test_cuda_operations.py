"""Every row of the table of operations, for every type, as the CUDA target writes, compiles and runs it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel import ir
from gpusort.kernel.launch import Buffer, Role
from gpusort.kernel.span import Span
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.kernel_text import OPERATIONS
from gpusort.types import ops, scalars
from gpusort.types.layout import Type
from tests.cuda_launches import arguments_at, run_kernel
from tests.expressions import UNARY
from tests.stepped import run_step, step_of

Array = npt.NDArray[np.generic]
HERE = Span(__file__, 1)
COUNT = 32
NARROW = (Type.U8, Type.U16)


@attrs.frozen
class Case:
    """One operation on operands of certain types."""

    op: ops.Op
    operands: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"{self.op}-{'-'.join(map(str, self.operands))}-{self.result}"


def cases() -> Iterator[Case]:
    for a, b in itertools.product(Type, Type):
        if ops.can_cast(a, b):
            yield Case(ops.CAST, (a,), b)
        if ops.can_bitcast(a, b) and a not in NARROW and b not in NARROW:
            yield Case(ops.BITCAST, (a,), b)
    for op, type in itertools.product(ops.OPS, Type):
        if type in NARROW or op in (ops.CAST, ops.BITCAST):
            continue
        operands: tuple[Type, ...] = (type,) if op in UNARY else (type, type)
        if op in (ops.SHL, ops.SHR):
            operands = (type, Type.U32)
        elif op is ops.SELECT:
            operands = (Type.BOOL, type, type)
        result = op.rule(operands)
        if result is not None:
            yield Case(op, operands, result)


CASES = tuple(cases())


def values(type: Type, seed: int) -> Array:
    """Edge values of a type among random ones."""
    rng = np.random.default_rng(seed)
    if type is Type.BOOL:
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if type.is_float:
        edges = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, 2.0**63]
        random = rng.standard_normal(COUNT - len(edges)) * 10.0 ** rng.integers(-30, 30, COUNT - len(edges))
        with np.errstate(all="ignore"):
            return rng.permutation(np.concatenate([edges, random])).astype(type.dtype)
    low, high = type.bounds
    made = rng.integers(low, high, COUNT, dtype=type.dtype, endpoint=True)
    made[:8] = [low, high, 1, 2, 31, 33, 64, high // 2 + 1]
    return rng.permutation(made)


def program_of(case: Case) -> ir.Program:
    """out[i] = op(in_0[i], …)"""
    inputs = [ir.Memory(f"in_{k}", ir.Space.STORAGE, type) for k, type in enumerate(case.operands)]
    out = ir.Memory("out", ir.Space.STORAGE, case.result)
    variables = [ir.Variable(f"x_{k}", type) for k, type in enumerate(case.operands)]
    me = ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE)
    loads = [ir.Load(x, memory, me, HERE) for x, memory in zip(variables, inputs, strict=True)]
    value = ir.Apply(case.op, tuple(ir.Read(x, HERE) for x in variables), case.result, HERE)
    body: ir.Block = (*loads, ir.Store(out, me, value, HERE))
    return ir.Program("operation", COUNT, (), (*inputs, out), tuple(variables), body, HERE)


def operands_of(case: Case) -> list[Array]:
    operands = [values(type, seed) for seed, type in enumerate(case.operands)]
    if case.op in (ops.FLOORDIV, ops.MOD):
        operands[1] = np.where(operands[1] == 0, operands[1].dtype.type(3), operands[1])
    return operands


def check(case: Case, operands: list[Array], found: Array) -> None:
    to = case.result if case.op in (ops.CAST, ops.BITCAST) else None
    expected = ops.apply(case.op, *operands, to=to).astype(case.result.dtype)
    if case.op in (ops.EXP, ops.LOG):
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


def test_the_table_has_a_row_for_every_operation() -> None:
    assert set(OPERATIONS) == {op.name for op in ops.OPS}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_source_of_an_operation_means_what_the_table_says(case: Case) -> None:
    program, operands = program_of(case), operands_of(case)
    found = np.zeros(COUNT, case.result.dtype)
    addresses = np.array([array.ctypes.data for array in (*operands, found)], np.uint64)
    pointers = np.array([part.ctypes.data for part in addresses.reshape(-1, 1)], np.uint64)  # as the driver takes them
    source = cuda_compile.text_of(program).source
    run_kernel(source, 1, COUNT, arguments_at(source, pointers.ctypes.data), 0)
    check(case, operands, found)


def element(of: Type) -> type[object]:
    """The class whose elements are of this type."""
    found: type[scalars.Scalar] = getattr(scalars, str(of))
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operation_means_what_the_table_says_on_a_card(real_card: CudaTarget, case: Case) -> None:
    operands, found = operands_of(case), np.zeros(COUNT, case.result.dtype)
    buffers = [Buffer(f"in_{k}", element(t), COUNT, Role.INPUT) for k, t in enumerate(case.operands)]
    buffers.append(Buffer("out", element(case.result), COUNT, Role.OUTPUT))
    arrays = {b.name: a for b, a in zip(buffers, [*operands, found], strict=True)}
    run_step(real_card, step_of(program_of(case), buffers), arrays)
    check(case, operands, found)


def test_all_operations_compile_to_machine_code() -> None:
    """In one kernel each for results of a type: a compilation apiece would take minutes."""
    for result in Type:
        chosen = [case for case in CASES if case.result is result]
        if not chosen:
            continue
        ptx = cuda_compile.compile_ptx(together(chosen, result))
        machine_code, _ = cuda_compile.assemble(ptx, cuda_compile.DEFAULT_CAPABILITY)
        assert machine_code[:4] == b"\x7fELF"
        assert "call" not in ptx


def together(chosen: list[Case], result: Type) -> ir.Program:
    """out[k] = op_k(in_type[0], …), for all cases."""
    types = sorted({type for case in chosen for type in case.operands}, key=str)
    inputs = {type: ir.Memory(f"in_{type.value}", ir.Space.STORAGE, type) for type in types}
    read = {(type, k): ir.Variable(f"{type.value}_{k}", type) for type in types for k in range(3)}
    out = ir.Memory("out", ir.Space.STORAGE, result)

    def number(value: int) -> ir.Const:
        return ir.Const(value, Type.U32, HERE)

    body: list[ir.Statement] = [ir.Load(v, inputs[t], number(k), HERE) for (t, k), v in read.items()]
    for place, case in enumerate(chosen):
        operands = tuple(ir.Read(read[type, k], HERE) for k, type in enumerate(case.operands))
        body.append(ir.Store(out, number(place), ir.Apply(case.op, operands, result, HERE), HERE))
    memories = (*inputs.values(), out)
    return ir.Program("operations", 1, (), memories, tuple(read.values()), tuple(body), HERE)
