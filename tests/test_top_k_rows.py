"""Top-k of short rows in one launch, by the sorts of rows that keep the first of each, compared with NumPy exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import attrs
import numpy as np
import pytest

from gpusort.algos.select import ArgsortAndTake, top_k
from gpusort.algos.sorts import BitonicRows, RadixRows
from gpusort.kernel.launch import Role
from gpusort.kernel.specialise import specialise
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.reference import COMPILED, DTYPES, sample
from tests.test_select import CARD, adverse, check

LENGTHS = [1, 3, 8, 9, 64, 65, 129, 513, 1024, 1025]
SORTS: dict[str, Callable[[int], BitonicRows | RadixRows]] = {
    "registers": lambda lanes: BitonicRows(lanes, items=4, most_items=2048 // lanes, group_size=32),
    "workgroup memory": lambda lanes: RadixRows(5, 64, 256, lanes, digit_bits=4),
}


def selection(target: str, by: str, dtype: str, length: int) -> ArgsortAndTake:
    info = target_of(target).info
    wished = ArgsortAndTake(SORTS[by](min(32, info.limits.subgroup_size)))
    return wished.fitted(key_for(dtype), length, 1, info)


def can(case: Mapping[str, object]) -> bool:
    """Plain Python takes minutes for long rows, and many elements in registers compile for long: for
    seconds by LLVM and by WGSL's software driver."""
    target, by, number = str(case["target"]), case["by"], LENGTHS.index(cast(int, case["length"]))
    lengths = {"python": 3, "cpu": 5, "wgsl": 6 if by == "registers" else 10}.get(target, 10)
    return number < lengths and (number < 7 or case["dtype"] in COMPILED)


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by", SORTS)
def test_the_first_of_rows(target: str, by: str, dtype: str, length: int) -> None:
    """NaNs of several bits, both zeros, NaT and many equals come as in a stable argsort, with the bits they had. The
    last workgroup has fewer rows than the others."""
    found = selection(target, by, dtype, length)
    rows = found.sort.policy_for(length).rows + 1 if isinstance(found.sort, BitonicRows) else 3
    x = sample(dtype, (rows, length), seed=length)
    largest = (DTYPES.index(dtype) + LENGTHS.index(length)) % 2 == 0
    for k in sorted({1, min(2, length), (length + 1) // 2, max(1, length - 1), length}):
        check(target, found, x, k, largest)


@few_cases(can=lambda case: case["target"] in ("simulator", "wgsl"), pairs=False)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "f2", "u4", "f4", "i8", "f8"])
@pytest.mark.parametrize("by", SORTS)
def test_the_first_of_adverse_rows(target: str, by: str, dtype: str, largest: bool) -> None:
    rows = np.stack([*adverse(dtype, 60).values()])
    for k in (1, 7, 30, 60):
        check(target, selection(target, by, dtype, 60), rows, k, largest)


@pytest.mark.parametrize("by", SORTS)
def test_they_take_one_launch_and_no_scratch_memory(by: str) -> None:
    """So as many rows go together as buffers hold of what is given and made; k is a number that one kernel takes."""
    found, key = ArgsortAndTake(SORTS[by](32)).fitted(key_for("f4"), 100, 8, CARD), key_for("f4")
    few, many = (top_k(key, 50, 100, k, SortOrder.ASCENDING, found) for k in (8, 90))
    ((one,), (other,)) = few.launches, many.launches
    assert specialise(one).program is specialise(other).program
    assert not [buffer for buffer in few.buffers if buffer.role is Role.SCRATCH]
    limits = attrs.evolve(CARD.limits, storage_bytes=400 * 70)
    assert found.most_rows(key, 100, 8, limits) == 70
    assert found.most_rows(key, 100, 100, limits) == 35
