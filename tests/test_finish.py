"""Reductions that end in elements and places where the data lies, on every target, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from gpusort.algos.choice import choose_axis_reduction
from gpusort.algos.layout import Layout
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.kernel.launch import Schedule
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.finishes import finish_of
from gpusort.types.monoids import Maximum, Minimum
from gpusort.types.searches import ArgMax, ArgMin
from tests.covering import InTurn, few_cases
from tests.reference import COMPILED, Array, sample

DTYPES = ["u1", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]


def run(target: str, schedule: Schedule, x: Array, dtype: Any) -> Array:
    found = np.zeros(1, dtype)
    words = np.dtype(f"u{found.itemsize}")
    target_of(target).run(schedule, {"data": x.view(f"u{x.itemsize}"), "results": found.view(words)})
    return found


def can(case: Mapping[str, object]) -> bool:
    return case["target"] != "cpu" or case["dtype"] in COMPILED


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("make", "numpys"), [(Minimum, np.min), (Maximum, np.max)])
def test_extremes(
    target: str, dtype: str, make: Callable[[Any], Any], numpys: Callable[[Array], Any], in_turn: InTurn
) -> None:
    info = target_of(target).info
    for length, nan in in_turn((1, 2, 33) if target == "python" else (1, 2, 33, 1000), (False, True)):
        x = sample(dtype, length, seed=length)
        if x.dtype.kind == "f":
            x[np.isnan(x)] = 1
            x[length // 2 :: 7] = np.nan if nan else 0
        monoid = make(key_for(dtype))
        found = run(
            target,
            reduce_rows(
                monoid, 1, length, choose_axis_reduction(monoid.state, Layout.rows(1, length), info), finish_of(monoid)
            ),
            x,
            dtype,
        )
        np.testing.assert_array_equal(found[0], numpys(x))


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8", "f8"])
@pytest.mark.parametrize(("make", "numpys"), [(ArgMin, np.argmin), (ArgMax, np.argmax)])
def test_places(target: str, dtype: str, make: Callable[[Any], Any], numpys: Callable[[Array], Any]) -> None:
    info = target_of(target).info
    for length in (1, 2, 33) if target == "python" else (1, 2, 33, 1000):
        x = np.repeat(sample(dtype, length // 3 + 1, seed=length), 3)[:length]
        monoid = make(key_for(dtype))
        found = run(
            target,
            reduce_rows(
                monoid, 1, length, choose_axis_reduction(monoid.state, Layout.rows(1, length), info), finish_of(monoid)
            ),
            x,
            np.int64,
        )
        assert found[0] == numpys(x)
