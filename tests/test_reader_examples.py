"""What messages suggest works: each conversion is tried in plain Python on a scalar of the type it starts from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product

import attrs
import numpy as np
import pytest

from gpusort.kernel.messages import converted, is_from_a_library, operand_of, shown_value
from gpusort.types import ops, scalars
from gpusort.types.intrinsics import bitcast
from gpusort.types.layout import Type
from gpusort.types.memory import Workgroup
from gpusort.types.ops import Op
from gpusort.types.scalars import Scalar

SCALARS: dict[Type, type[Scalar]] = {
    cls.type: cls
    for cls in (
        scalars.Bool, scalars.U8, scalars.U16, scalars.U32, scalars.U64, scalars.I32, scalars.I64, scalars.F32,
        scalars.F64,
    )
}  # fmt: skip
UNARY = (ops.NEG, ops.INVERT, ops.COUNT_ONES, ops.LEADING_ZEROS, ops.TRAILING_ZEROS, ops.SQRT, ops.EXP, ops.LOG)
NAMES = {"bitcast": bitcast, **{str(type): cls for type, cls in SCALARS.items()}}


def tried(example: str, source: Type) -> object:
    return eval(example, {"x": SCALARS[source](source is Type.BOOL or 1), **NAMES})


def test_all_types_are_tried() -> None:
    assert set(SCALARS) == set(Type)


@pytest.mark.parametrize(("source", "target"), list(product(SCALARS, SCALARS)), ids=str)
def test_a_conversion_gives_the_type_asked_for(source: Type, target: Type) -> None:
    if source is not target:
        assert type(tried(converted(source, target), source)) is SCALARS[target]


@pytest.mark.parametrize("op", [op for op in ops.OPS if op not in (ops.SELECT, ops.CAST, ops.BITCAST)], ids=str)
def test_a_conversion_of_an_operand_gives_an_accepted_type(op: Op) -> None:
    count = 1 if op in UNARY else 2
    for found in product(SCALARS, repeat=count):
        if op.rule(found) is None:
            example = operand_of(op, found)
            if example in ("a if a < b else b", "b if a < b else a"):  # of floats, for which no conversion would do
                assert found[0] is found[1]
                assert found[0].is_float
                assert eval(example, {"a": 1, "b": 2}) == (1 if op is ops.MIN else 2)
                continue
            assert any(op.rule([type] * count) for type in reached(example, found)), (found, example)


def reached(example: str, found: Sequence[Type]) -> list[Type]:
    """The types that the example makes of those operands that it can be applied to."""
    results: list[Type] = []
    for source in found:
        with suppress(TypeError):
            result = tried(example, source)
            assert isinstance(result, Scalar)
            results.append(result.type)
    return results


def test_whose_a_function_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one whose module has been overwritten, as attrs overwrites its own `evolve`'s from Python 3.13 on."""
    monkeypatch.setattr(attrs.evolve, "__module__", "gpusort.kernel.values")
    assert is_from_a_library(attrs.evolve)
    assert is_from_a_library(np.sort)
    assert is_from_a_library(product)
    assert not is_from_a_library(tried)
    assert is_from_a_library(converted)  # the package's own, but for hosts
    assert not is_from_a_library(bitcast)


def test_a_value_is_shown_where_a_line_has_room_for_it() -> None:
    assert shown_value("x" * 58) == repr("x" * 58)
    assert shown_value("x" * 59) == "a str"
    assert shown_value(np.eye(2)) == "a ndarray"
    assert shown_value(np.arange(2)) == "array([0, 1])"
    assert shown_value(Workgroup(scalars.U32, 7)) == "Workgroup(U32, 7)"
    assert shown_value(scalars.U32) == "the class U32"
