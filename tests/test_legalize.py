"""Legalised programs mean what they meant before: every operation on every type, run by the simulator and by
WGSL."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel import ir
from gpusort.kernel.launch import Buffer, Role
from gpusort.kernel.span import Span
from gpusort.kernel.verify import verify
from gpusort.targets.simulator.target import Simulator
from gpusort.targets.wgsl.legalize import Legalized, legalize
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types import ops, scalars
from gpusort.types.errors import CapabilityError
from gpusort.types.layout import Type
from gpusort.types.ops import AtomicOp, Op, SubgroupOp
from tests.opened import or_skip
from tests.stepped import run_step, step_of

Array: TypeAlias = npt.NDArray[Any]
HERE = Span(__file__, 1)
COUNT, GROUP = 257, 32
APPROXIMATE = (ops.DIV, ops.SQRT, ops.EXP, ops.LOG)  # WGSL promises a few units in the last place


# -- programs of one operation -----------------------------------------------------------------------------


def _global_id() -> ir.Expression:
    group, size = (ir.BuiltinValue(b, HERE) for b in (ir.Builtin.GROUP_ID, ir.Builtin.GROUP_SIZE))
    before = ir.Apply(ops.MUL, (group, size), Type.U32, HERE)
    return ir.Apply(ops.ADD, (before, ir.BuiltinValue(ir.Builtin.LOCAL_ID, HERE)), Type.U32, HERE)


def _apply(op: Op, *operands: ir.Expression, to: Type | None = None) -> ir.Apply:
    type = to or op.rule([operand.type for operand in operands])
    assert type is not None
    return ir.Apply(op, operands, type, HERE)


def operation_program(op: Op, types: Sequence[Type], result: Type, constant: int | None = None) -> ir.Program:
    """out[i] = op(in_0[i], …), the last operand a constant where one is given."""
    inputs = [ir.Memory(f"in_{k}", ir.Space.STORAGE, type) for k, type in enumerate(types)]
    out = ir.Memory("out", ir.Space.STORAGE, result)
    loaded = [ir.Variable(f"x_{k}", type) for k, type in enumerate(types)]
    index = ir.Variable("index", Type.U32)
    i = ir.Read(index, HERE)
    operands: list[ir.Expression] = [ir.Read(x, HERE) for x in loaded]
    if constant is not None:
        operands[-1] = ir.Const(constant, types[-1], HERE)
    value = ir.Apply(op, tuple(operands), result, HERE)
    inner: tuple[ir.Statement, ...] = (
        *(ir.Load(x, memory, i, HERE) for x, memory in zip(loaded, inputs, strict=True)),
        ir.Store(out, i, value, HERE),
    )
    body: ir.Block = (
        ir.Assign(index, _global_id(), HERE),
        ir.If(_apply(ops.LT, i, ir.Length(out, HERE)), inner, (), HERE),
    )
    return ir.Program("operation", GROUP, (), (*inputs, out), (index, *loaded), body, HERE)


def values(type: Type, seed: int) -> Array:
    """Edge values, then random ones of every magnitude."""
    rng = np.random.default_rng(seed)
    if type is Type.BOOL:
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if type.is_float:
        made = rng.standard_normal(COUNT) * 10.0 ** rng.integers(-6, 7, COUNT)
        made[:6] = [0.0, -0.0, 1.0, -1.5, 2.0**24 + 2, 1e-3]
        return made.astype(type.dtype)
    low, high = type.bounds
    bits = rng.integers(0, 1 << 64, COUNT, np.uint64) >> rng.integers(0, type.bits, COUNT).astype(np.uint64)
    made_bits = bits.astype(np.dtype(f"u{type.size}")).view(type.dtype)
    edges = [
        low,
        high,
        0,
        1,
        high // 2 + 1,
        high // 3,
        *(e for e in (1 << 32, (1 << 32) - 1, 1 << 63) if e <= high),
    ]
    for edge in edges:
        made_bits[rng.integers(0, COUNT, 6)] = edge
    return made_bits


def _shapes(op: Op) -> Iterator[tuple[tuple[Type, ...], Type]]:
    if op in (ops.CAST, ops.BITCAST):
        allowed = ops.can_cast if op is ops.CAST else ops.can_bitcast
        for source in Type:
            for target in Type:
                if allowed(source, target) and (op is ops.BITCAST or Type.F64 not in (source, target)):
                    yield (source,), target
        return
    arity = {ops.MIN: 2, ops.MAX: 2, ops.SQRT: 1, ops.EXP: 1, ops.LOG: 1}.get(op)  # NumPy's own
    arity = arity or len(inspect.signature(op.evaluate).parameters)
    for one in Type:
        if one in (Type.U8, Type.U16, Type.F64):
            continue
        shape: tuple[Type, ...] = {1: (one,), 2: (one, one), 3: (Type.BOOL, one, one)}[arity]
        if op in (ops.SHL, ops.SHR):
            shape = (one, Type.U32)
        result = op.rule(shape)
        if result is not None:
            yield shape, result


CASES = [(op, shape, result) for op in ops.OPS for shape, result in _shapes(op)]
CONSTANTS = [
    (op, (one, Type.U32), one, amount)
    for op in (ops.SHL, ops.SHR)
    for one in (Type.U32, Type.U64, Type.I64)
    for amount in (0, 1, 31, 32, 33, 63, 64, 100)
] + [
    (op, (one, one), one, divisor)
    for op in (ops.FLOORDIV, ops.MOD, ops.MUL)
    for one in (Type.U32, Type.U64)
    for divisor in (1, 8, 10, 1 << 31)
]


def operands_for(op: Op, shape: Sequence[Type]) -> list[Array]:
    operands = [values(type, seed) for seed, type in enumerate(shape)]
    if op in (ops.SHL, ops.SHR):
        operands[1] = (np.arange(COUNT) % 131).astype(np.uint32)
    if op is ops.ADD_NOWRAP:
        operands[:] = [operand // np.uint32(2) for operand in operands]
    if op in (ops.FLOORDIV, ops.MOD):
        operands[1] = np.where(operands[1] == 0, operands[1].dtype.type(3), operands[1])
    if op in (ops.SQRT, ops.LOG):
        operands[0] = np.abs(operands[0]) + np.float32(1e-3)
    if op is ops.EXP:
        operands[0] = operands[0] % np.float32(50)
    if op in (ops.EQ, ops.NE):
        operands[1][::3] = operands[0][::3]
    return operands


# -- who runs them -----------------------------------------------------------------------------------------


def element(of: Type) -> type[object]:
    found: type[object] = getattr(scalars, str(of))
    return found


def words_of(array: Array, type: Type) -> Array:
    """An array as legalised memory holds it: whole words, or its own elements where they are of 32 bits."""
    if type in (Type.U32, Type.I32, Type.F32):
        return array
    raw = array.view(np.uint8)
    return np.concatenate([raw, np.zeros(-raw.size % 4, np.uint8)]).view(np.uint32)


def run_legalized(program: ir.Program, arrays: dict[str, Array], arguments: dict[str, Array]) -> None:
    """Runs the legalised program in the simulator, on memory as the device would see it."""
    legalized = legalize(program)
    verify(legalized.program)
    _require_legal(legalized.program)
    before = {memory.name: memory for memory in program.storage}
    memory = {name: words_of(array, before[name].type) for name, array in arrays.items()}
    buffers = tuple(Buffer(m.name, element(m.type), len(memory[m.name]), Role.INOUT) for m in legalized.program.storage)
    step = step_of(legalized.program, buffers, _values(legalized, arrays, arguments), -(-COUNT // GROUP))
    run_step(Simulator(), step, memory)
    for name, array in arrays.items():
        array.view(np.uint8)[:] = memory[name].view(np.uint8)[: array.nbytes]


def _values(
    legalized: Legalized, arrays: dict[str, Array], arguments: dict[str, Array]
) -> tuple[int | float | bool, ...]:
    found: list[int | float | bool] = []
    for parameter, origin in zip(legalized.program.parameters, legalized.origins, strict=True):
        if origin.length_of is not None:
            found.append(len(arrays[origin.length_of.name]))
            continue
        if origin.parameter is None:
            found.append(0)
            continue
        words = words_of(arguments[origin.parameter.name].reshape(1), origin.parameter.type)
        found.append(words[origin.word].astype(parameter.type.dtype).item())
    return tuple(found)


def _require_legal(program: ir.Program) -> None:
    allowed = (Type.U32, Type.I32, Type.F32, Type.BOOL)
    masks = {s.variable for s in _flat(program.body) if isinstance(s, ir.Subgroup) and s.op is SubgroupOp.BALLOT}
    assert all(v.type in allowed or v in masks for v in program.variables)
    assert all(m.type in allowed[:3] for m in program.memories)
    assert all(p.type in allowed[:3] for p in program.parameters)


def _flat(block: ir.Block) -> Iterator[ir.Statement]:
    for statement in block:
        yield statement
        if isinstance(statement, ir.If):
            yield from _flat(statement.then + statement.otherwise)
        elif isinstance(statement, ir.For | ir.Loop):
            yield from _flat(statement.body)


@pytest.fixture(scope="module")
def wgsl() -> WgslTarget:
    return or_skip(WgslTarget)


def run_wgsl(target: WgslTarget, program: ir.Program, arrays: dict[str, Array]) -> None:
    buffers = tuple(Buffer(m.name, element(m.type), len(arrays[m.name]), Role.INOUT) for m in program.storage)
    run_step(target, step_of(program, buffers, (), -(-COUNT // GROUP)), arrays)


def _compare(op: Op, got: Array, wanted: Array, approximate: bool) -> None:
    if approximate and op in APPROXIMATE:
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=5e-7)
    elif op in (ops.EXP, ops.LOG):
        np.testing.assert_array_max_ulp(got, wanted, 1)  # NumPy's own forms differ with the length of an array
    else:
        np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), wanted.view(f"u{got.itemsize}"))


@pytest.mark.parametrize(("op", "shape", "result"), CASES, ids=lambda it: str(it) if isinstance(it, Op) else None)
def test_operations_keep_their_meaning(wgsl: WgslTarget, op: Op, shape: tuple[Type, ...], result: Type) -> None:
    operands = operands_for(op, shape)
    wanted = ops.apply(op, *operands, to=result if op in (ops.CAST, ops.BITCAST) else None).astype(result.dtype)
    program = operation_program(op, shape, result)
    for run in ("simulator", "wgsl"):
        arrays: dict[str, Array] = {f"in_{k}": operand for k, operand in enumerate(operands)}
        arrays["out"] = np.zeros(COUNT, result.dtype)
        if run == "simulator":
            run_legalized(program, arrays, {})
        else:
            run_wgsl(wgsl, program, arrays)
        _compare(op, arrays["out"], wanted, run == "wgsl")


@pytest.mark.parametrize(("op", "shape", "result", "constant"), CONSTANTS)
def test_operations_with_a_constant(
    wgsl: WgslTarget, op: Op, shape: tuple[Type, ...], result: Type, constant: int
) -> None:
    first = values(shape[0], 0)
    wanted = ops.apply(op, first, np.full(COUNT, constant, shape[1].dtype))
    program = operation_program(op, shape, result, constant)
    for run in ("simulator", "wgsl"):
        arrays: dict[str, Array] = {"in_0": first, "in_1": np.zeros(COUNT, shape[1].dtype)}
        arrays["out"] = np.zeros(COUNT, result.dtype)
        if run == "simulator":
            run_legalized(program, arrays, {})
        else:
            run_wgsl(wgsl, program, arrays)
        np.testing.assert_array_equal(arrays["out"], wanted)


# -- the rest of the pass ----------------------------------------------------------------------------------


def test_division_by_a_power_of_two_is_no_loop() -> None:
    program = operation_program(ops.FLOORDIV, (Type.U64, Type.U64), Type.U64, 1 << 40)
    assert not any(isinstance(s, ir.For) for s in _flat(legalize(program).program.body))


def test_float64_arithmetic_is_refused() -> None:
    program = operation_program(ops.ADD, (Type.F64, Type.F64), Type.F64)
    with pytest.raises(CapabilityError, match="'add' needs float64 arithmetic, which is not available in WGSL"):
        legalize(program)


def test_nested_expressions_stay_small() -> None:
    """Every level mentions its operand twice in words; a tree that were copied would have 2**40 nodes."""
    memory = ir.Memory("data", ir.Space.STORAGE, Type.U64)
    x = ir.Variable("x", Type.U64)
    nested: ir.Expression = ir.Read(x, HERE)
    for k in range(40):
        if k % 8 == 7:
            nested = _apply(ops.MUL, nested, _apply(ops.SHL, nested, ir.Const(1, Type.U32, HERE)))
        else:
            nested = _apply(ops.ADD, nested, ir.Const(3, Type.U64, HERE))
    index = _global_id()
    body: ir.Block = (ir.Load(x, memory, index, HERE), ir.Store(memory, index, nested, HERE))
    program = ir.Program("nested", GROUP, (), (memory,), (x,), body, HERE)
    statements = list(_flat(legalize(program).program.body))
    assert len(statements) < 3000
    data = values(Type.U64, 1)[: COUNT // GROUP * GROUP].copy()
    wanted = data.copy()
    for k in range(40):
        wanted = wanted * (wanted << np.uint64(1)) if k % 8 == 7 else wanted + np.uint64(3)
    arrays: dict[str, Array] = {"data": np.concatenate([data, np.zeros(GROUP, np.uint64)])}
    run_legalized(program, arrays, {})
    np.testing.assert_array_equal(arrays["data"][: len(data)], wanted)


def test_a_variable_may_be_computed_from_itself() -> None:
    """Both words of the new value are of the old one."""
    memory = ir.Memory("data", ir.Space.STORAGE, Type.U64)
    x, i = ir.Variable("x", Type.U64), ir.Variable("i", Type.U32)
    read, three = ir.Read(x, HERE), ir.Const(3, Type.U32, HERE)
    spun = _apply(ops.OR, _apply(ops.SHL, read, three), _apply(ops.SHR, read, ir.Const(61, Type.U32, HERE)))
    body: ir.Block = (
        ir.Load(x, memory, _global_id(), HERE),
        ir.For(
            i,
            ir.Const(0, Type.U32, HERE),
            three,
            ir.Const(1, Type.U32, HERE),
            (ir.Assign(x, spun, HERE),),
            HERE,
        ),
        ir.Store(memory, _global_id(), ir.Read(x, HERE), HERE),
    )
    program = ir.Program("spin", GROUP, (), (memory,), (x, i), body, HERE)
    data = values(Type.U64, 4)
    data = np.concatenate([data, np.zeros(-len(data) % GROUP, np.uint64)])
    arrays: dict[str, Array] = {"data": data.copy()}
    run_legalized(program, arrays, {})
    np.testing.assert_array_equal(arrays["data"], data << np.uint64(9) | data >> np.uint64(55))


def test_parameters_are_words() -> None:
    parameters = [ir.Parameter(f"p_{type.name.lower()}", type) for type in Type]
    memory = ir.Memory("out", ir.Space.STORAGE, Type.U64)
    body: list[ir.Statement] = []
    for k, parameter in enumerate(parameters):
        value: ir.Expression = ir.Argument(parameter, HERE)
        if parameter.type in (Type.F32, Type.F64):
            value = _apply(ops.BITCAST, value, to=Type.U32 if parameter.type is Type.F32 else Type.U64)
        value = value if value.type is Type.U64 else _apply(ops.CAST, value, to=Type.U64)
        body.append(ir.Store(memory, ir.Const(k, Type.U32, HERE), value, HERE))
    body = [ir.If(_apply(ops.EQ, _global_id(), ir.Const(0, Type.U32, HERE)), tuple(body), (), HERE)]
    program = ir.Program("echo", GROUP, tuple(parameters), (memory,), (), tuple(body), HERE)
    given = {p.name: values(p.type, 9)[7] for p in parameters}
    arrays: dict[str, Array] = {"out": np.zeros(len(parameters), np.uint64)}
    run_legalized(program, arrays, {name: np.asarray(value) for name, value in given.items()})
    for k, parameter in enumerate(parameters):
        passed = np.asarray(given[parameter.name])
        bits = passed.view(f"u{passed.itemsize}") if passed.dtype.kind == "f" else passed
        assert arrays["out"][k] == bits.astype(np.uint64)


def test_parameters_made_here_take_no_name_of_the_programs_own() -> None:
    memory = ir.Memory("out", ir.Space.STORAGE, Type.U64)
    given = {"x": np.uint64(5 << 32 | 7), "x_low": np.uint64(11), "out_length": np.uint64(13)}
    own = [ir.Parameter(name, Type.U64 if name == "x" else Type.U32) for name in given]
    counts: list[ir.Expression] = [*(ir.Argument(p, HERE) for p in own[1:]), ir.Length(memory, HERE)]
    found: list[ir.Expression] = [ir.Argument(own[0], HERE), *(_apply(ops.CAST, n, to=Type.U64) for n in counts)]
    stores = (ir.Store(memory, ir.Const(k, Type.U32, HERE), value, HERE) for k, value in enumerate(found))
    body = ir.If(_apply(ops.EQ, _global_id(), ir.Const(0, Type.U32, HERE)), tuple(stores), (), HERE)
    program = ir.Program("echo", GROUP, tuple(own), (memory,), (), (body,), HERE)
    arrays: dict[str, Array] = {"out": np.zeros(4, np.uint64)}
    run_legalized(program, arrays, {p.name: np.asarray(given[p.name]).astype(p.type.dtype) for p in own})
    assert arrays["out"].tolist() == [*given.values(), 4]


@pytest.mark.parametrize("type", [Type.BOOL, Type.U8, Type.U16])
def test_neighbours_in_one_word_do_not_lose_each_others_stores(type: Type) -> None:
    """Each invocation replaces its own element, of words that hold anything before."""
    memory = ir.Memory("data", ir.Space.STORAGE, type)
    x, i = ir.Variable("x", type), ir.Variable("index", Type.U32)
    read = ir.Read(x, HERE)
    value = _apply(ops.INVERT, read) if type is Type.BOOL else _apply(
        ops.CAST, _apply(ops.ADD, _apply(ops.CAST, read, to=Type.U32), ir.Const(7, Type.U32, HERE)), to=type
    )  # fmt: skip
    index = ir.Read(i, HERE)
    inner: ir.Block = (ir.Load(x, memory, index, HERE), ir.Store(memory, index, value, HERE))
    body: ir.Block = (
        ir.Assign(i, _global_id(), HERE),
        ir.If(_apply(ops.LT, index, ir.Length(memory, HERE)), inner, (), HERE),
    )
    program = ir.Program("replace", GROUP, (), (memory,), (x, i), body, HERE)
    stores = [s for s in _flat(legalize(program).program.body) if isinstance(s, ir.Store)]
    changes = [s for s in _flat(legalize(program).program.body) if isinstance(s, ir.Atomic)]
    assert not stores
    assert {s.op for s in changes} == {AtomicOp.LOAD, AtomicOp.XOR}
    data = values(type, 2)
    arrays: dict[str, Array] = {"data": data.copy()}
    run_legalized(program, arrays, {})
    wanted = ~data if type is Type.BOOL else data + data.dtype.type(7)
    np.testing.assert_array_equal(arrays["data"], wanted)
