"""What an expression means is what CPython finds, on every target: at the edges of all types, and for random trees.

`GPUSORT_TREES=500` compares more trees than the few that are compared by default.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.specialise import specialise
from gpusort.targets import registry
from gpusort.targets.cuda.compile import compile_ptx
from gpusort.types import ops
from gpusort.types.errors import CapabilityError
from gpusort.types.invocation import Invocation
from gpusort.types.layout import Type
from gpusort.types.memory import Storage
from gpusort.types.scalars import F32
from tests.expressions import (
    ALL,
    EVERYWHERE,
    FLOATS,
    INTEGERS,
    Trees,
    Words,
    Written,
    edges,
    kernel_text,
    launch_of,
    literal,
    load,
    run,
    words_of,
)
from tests.opened import or_skip

_MANY = 100
ROUNDS = int(os.environ.get("GPUSORT_TREES", "2"))
PARAMS = (0xFFFF_FFFF, 1 << 63, -(2**31), -(2**63), 0.0, -0.0, True)
# What `a` and `b` may stand for: only the first pair is of values that no compiler knows.
_COMPOUND = {
    "integer": (
        "(a + 1 > a)", "(a - 1 < a)", "(a - b < a)", "(a + b >= a)", "(a * 2 > a)", "((a + b) - b == a)",
        "((a << 1) >> 1 == a)", "(b + 2147483647 > b)", "(a - 1 < b)", "(a + 1 <= b)",
    ),
    "float": (
        "(a - a)", "(a + 0.0)", "(0.0 - a)", "((a + b) - b)", "((a + b) - a)", "(a * b + a)", "(a / a)", "(a * 0.0)",
        "(a - (a + b))", "(a + (-a))", "(-(a - b))", "(-(-a))", "(a / 0.0)", "(a / -0.0)", "(a * b - a * b)",
        "Bool(not (a < b))", "Bool(not (a >= b))", "(a != a)", "(a == a)", "(1.0 / a)", "sqrt(a * a)",
        "(sqrt(a) * sqrt(a))", "(a if a < b else b)", "(a if a > b else b)", "(b if a != b else a)",
    ),
}  # fmt: skip
_INTEGER = ("(a + b)", "(a - b)", "(a * b)", "(a & b)", "(a | b)", "(a ^ b)", "minimum(a, b)", "maximum(a, b)")
_FLOAT = ("(a + b)", "(a - b)", "(a * b)", "(a / b)")
_COMPARED = ("(a == b)", "(a != b)", "(a < b)", "(a <= b)", "(a > b)", "(a >= b)")


@pytest.fixture(params=[name for name in registry.NAMES if name != "python"])
def compiled(request: pytest.FixtureRequest) -> str:
    """The name of a target other than the one that all are compared with."""
    name = str(request.param)
    or_skip(registry.target, name)
    return name


def _types(target: str) -> tuple[Type, ...]:
    return EVERYWHERE if target == "wgsl" else ALL


def _forms(of: Type) -> Iterator[tuple[str, Type]]:
    """All there is to do with two values of a type."""
    for text in _COMPARED:
        yield text, Type.BOOL
    for text in _FLOAT if of.is_float else _INTEGER:
        yield text, of
    for text in _COMPOUND["float" if of.is_float else "integer"]:
        is_truth = text.startswith("Bool") or any(f" {sign} " in text for sign in ("==", "!=", "<", "<=", ">", ">="))
        yield text, Type.BOOL if is_truth and " if " not in text else of
    if of.is_float:
        yield "(-a)", of
        yield "sqrt(a)", of
    else:
        yield "(~a)", of
        yield "(a << U32(b & 127))" if of is Type.U64 else "(a << 33)", of
        yield "(a >> 33)", of
        yield "(a // (b | 1))" if of.is_unsigned else "(-a)", of
        yield "(a % (b | 1))" if of.is_unsigned else "(a if a >= 0 else -a)", of
        yield "(a >> params.p_u32)", of
    for to in Type:
        if ops.can_cast(of, to) and to not in (Type.U8, Type.U16):
            yield f"{to}(a)", to


def _table(of: Type, types: Sequence[Type]) -> list[Written]:
    """Every form: of operands that are loaded, parameters, and literals on either side. By default of loaded ones and
    of some others; of all pairs they can make where many rounds are asked for."""
    name, values = of.name.lower(), edges(of)
    known = [literal(values[number], of) for number in (0, 1, len(values) // 2, len(values) - 1)]
    pairs = [(f"x_{name}", f"y_{name}"), (f"x_{name}", f"params.p_{name}"), (f"params.p_{name}", f"y_{name}")]
    pairs += [pair for text in known for pair in ((f"x_{name}", text), (text, f"y_{name}"))]
    random = Random(of.value)
    made: list[Written] = []
    for number, (text, type) in enumerate(_forms(of)):
        some = pairs if ROUNDS >= _MANY else [pairs[0], random.choice(pairs)][: 1 + (number % 3 == 0)]
        made += [Written(_filled(text, a, b), type) for a, b in some if type in types]
    return made


def _filled(text: str, a: str, b: str) -> str:
    """The form with its operands in place of the letters."""
    words = {"a": a, "b": b}
    found = ""
    for number, letter in enumerate(text):
        alone = not (text[number - 1 : number].isalnum() or text[number + 1 : number + 2].isalnum())
        found += words[letter] if letter in words and alone else letter
    return found


def _launch(
    expressions: Sequence[Written],
    types: Sequence[Type],
    columns: dict[Type, tuple[Words, Words]],
    folder: Path,
    params: Sequence[float] = PARAMS,
) -> tuple[Launch, Words]:
    """A launch of a kernel of the expressions, with an invocation for each of the values of x and y."""
    rows = max(len(x) for x, _ in columns.values())
    words = np.zeros((rows, len(types), 2), np.uint64)
    for number, type in enumerate(types):
        for side, values in enumerate(columns.get(type, ())):
            words[:, number, side] = values
    module = load(kernel_text(expressions, types), folder)
    return launch_of(module, words.ravel(), 2 * len(types), len(expressions), params), words.ravel()


def _require_same(target: str, expressions: Sequence[Written], launch: Launch, words: Words) -> None:
    expected, found = run("python", launch, words), run(target, launch, words)
    given = words.reshape(len(expected), -1)
    is_card = target == "wgsl" and not registry.target(target).info.is_software
    loses_subnormals = target == "wgsl" and (is_card or not _keeps_subnormals(target))
    for row, number in np.argwhere(expected != found).tolist():
        expression, wanted, got = expressions[number], int(expected[row, number]), int(found[row, number])
        if loses_subnormals and any(_is_subnormal(bits) for bits in (wanted, *given[row].tolist())):
            continue  # which drivers may take for zero, as Mesa's newer ones do
        if is_card and _is_left_open(expression, wanted, got, given[row].tolist()):
            continue
        raise AssertionError(f"{expression.text} is {got:#x}, CPython has {wanted:#x}, of words {given[row].tolist()}")


@kernel
def _double(cx: Invocation, data: Storage[F32]) -> None:
    data[cx.global_id] = data[cx.global_id] + data[cx.global_id]


@cache
def _keeps_subnormals(target: str) -> bool:
    data, words = Buffer("data", F32, 1, Role.INOUT), np.ones(1, np.uint32)
    schedule = Schedule((data,), (_double.launch(Grid(1, 1), data),))
    registry.target(target).run(schedule, {"data": words.view(np.float32)})
    return words.tolist() == [2]


def _is_left_open(expression: Written, wanted: int, got: int, words: Sequence[int]) -> bool:
    """What docs/kernel-language.md leaves to a driver for a real card besides: quotients by divisors beyond 2**126, and
    the last bits of quotients and roots."""
    if "/" in expression.text and any(0x7E80_0000 <= bits & 0x7FFF_FFFF < 0x7F80_0000 for bits in words):
        return True
    is_inexact = "/" in expression.text or "sqrt" in expression.text
    return is_inexact and expression.type is Type.F32 and abs(wanted - got) <= 3


def _is_subnormal(bits: int) -> bool:
    return 0 < bits & 0x7FFF_FFFF < 0x0080_0000


@pytest.mark.parametrize("of", [*INTEGERS, *FLOATS], ids=str)
def test_every_form_at_the_edges(of: Type, compiled: str, tmp_path: Path) -> None:
    pairs = np.array(list(itertools.product(words_of(edges(of), of), repeat=2)), np.uint64)
    x, y = pairs.T
    table = _table(of, (*_types(compiled), of))
    launch, words = _launch(table, (of,), {of: (x, y)}, tmp_path)
    if of in _types(compiled):
        _require_same(compiled, table, launch, words)
    else:
        with pytest.raises(CapabilityError, match="float64 arithmetic"):
            run(compiled, launch, words)


@settings(
    max_examples=ROUNDS,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(random=st.randoms(use_true_random=False), seed=st.integers(0, 1 << 32))
def test_random_trees(compiled: str, tmp_path: Path, random: Random, seed: int) -> None:
    types = _types(compiled)
    trees = Trees(random, types)
    chosen = [random.choice(types) for _ in range(16)]
    expressions = [Written(trees.of(type, 4), type) for type in chosen]
    rng = np.random.default_rng(seed)
    columns = {type: (_some(rng, type), _some(rng, type)) for type in types}
    params = [random.choice(edges(type)) for type in (*INTEGERS, *FLOATS, Type.BOOL)]
    launch, words = _launch(expressions, types, columns, tmp_path, params)
    _require_same(compiled, expressions, launch, words)


def _some(rng: np.random.Generator, of: Type) -> Words:
    """Edges by turns with any bits."""
    known = words_of(edges(of), of)
    any_bits = rng.integers(0, 1 << 64, 24, np.uint64, endpoint=False) >> np.uint64(64 - of.bits)
    return np.where(rng.integers(0, 2, 24) == 0, known[rng.integers(0, len(known), 24)], any_bits)


def test_division_by_zero(target: str, tmp_path: Path) -> None:
    """Where it can be told, it is an error; elsewhere the dividend, and no rest, as WebGPU has it."""
    texts = ("(x_{0} // y_{0})", "((7) // y_{0})", "(x_{0} % y_{0})", "((7) % y_{0})")
    expressions = [Written(t.format(type.name.lower()), type) for type in (Type.U32, Type.U64) for t in texts]
    types = (Type.U32, Type.U64)
    columns = {type: (np.array([5], np.uint64), np.array([0], np.uint64)) for type in types}
    launch, words = _launch(expressions, types, columns, tmp_path)
    if target in ("python", "simulator"):
        with pytest.raises(ZeroDivisionError):
            run(target, launch, words)
    else:
        assert run(target, launch, words).ravel().tolist() == [5, 7, 0, 0] * 2


_NUMBERS = [type for type in ALL if type is not Type.BOOL]


@pytest.mark.parametrize("of", _NUMBERS, ids=[type.name for type in _NUMBERS])
def test_every_form_becomes_ptx(of: Type, tmp_path: Path) -> None:
    """Without a card: a form that the compiler does not know would be found by users only."""
    values = words_of(edges(of)[:2], of)
    launch, _ = _launch(_table(of, ALL), ALL, {of: (values, values)}, tmp_path)
    assert ".entry" in compile_ptx(specialise(launch).program)
