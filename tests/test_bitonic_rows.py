"""Rows sorted in registers, compared with NumPy exactly, around every power of two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.bitonic_rows import bitonic_rows_sort
from gpusort.machine import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.params import RowsPolicy
from tests.covering import few_cases
from tests.reference import assert_same_bits, sample, sorted_by_numpy

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100]


def policy_for(target: str, length: int) -> RowsPolicy:
    info = target_of(target).info
    if Capability.SUBGROUPS not in info.capabilities:
        pytest.skip(f"target {target!r} has no subgroups")
    return RowsPolicy.holding(length, min(8, info.limits.subgroup_size), 2, 16)


def ordered(x: np.ndarray[Any, Any], descending: bool) -> np.ndarray[Any, Any]:
    """NumPy's answer with the bits that words give back: -0.0 before 0.0, NaNs by their words."""
    return sorted_by_numpy(x, descending=descending)


def can(case: Mapping[str, object]) -> bool:
    """Each kernel compiles for seconds on the CPU, and plain Python takes them for each row."""
    lengths = {"python": [3, 16], "cpu": [5, 33]}.get(str(case["target"]), LENGTHS)
    is_few = case["target"] != "cpu" or (case["dtype"] in ("u4", "f8") and not case["in_place"])
    return case["length"] in lengths and is_few


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f4", "i8", "f8"])
def test_rows(target: str, dtype: str, length: int, descending: bool, in_place: bool) -> None:
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    policy = policy_for(target, length)
    for rows in (1, policy.rows + 1):
        x = sample(dtype, (rows, length), seed=length)
        words = f"u{x.itemsize}"
        schedule = bitonic_rows_sort(Batch(key_for(dtype), rows, length, order, in_place=in_place), policy)
        found = x.copy() if in_place else np.zeros_like(x)
        arrays = {"data": (found if in_place else x).reshape(-1).view(words)}
        if not in_place:
            arrays["results"] = found.reshape(-1).view(words)
        target_of(target).run(schedule, arrays)
        np.testing.assert_array_equal(found, ordered(x, descending))
        for row, mine in zip(found, x, strict=True):
            assert_same_bits(np.sort(row.view(words)), np.sort(mine.view(words)))


def test_lanes_are_taken_when_items_are_full() -> None:
    assert RowsPolicy.holding(1024, 32, 8, 256) == RowsPolicy(32, 32, 256)
    assert RowsPolicy.holding(100, 32, 8, 256) == RowsPolicy(16, 8, 256)
    assert RowsPolicy.holding(1, 32, 8, 256) == RowsPolicy(1, 1, 256)
