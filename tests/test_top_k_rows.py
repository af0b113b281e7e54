"""Top-k of short rows in one launch, by the sorts of rows that keep the first of each, and by lanes that keep the first
of what they see, compared with NumPy exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.choice import choose_top_k
from gpusort.algos.select import ArgsortAndTake, SelectByLanes, top_k
from gpusort.algos.sorts import BitonicRows, RadixRows
from gpusort.kernel.launch import Role
from gpusort.kernel.specialise import specialise
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.params import RowsPolicy
from tests.covering import few_cases
from tests.reference import COMPILED, DTYPES, sample
from tests.test_select import CARD, adverse, check

LENGTHS = [1, 3, 8, 9, 64, 65, 129, 513, 1024, 1025]
FORMS: dict[str, Callable[[int], ArgsortAndTake | SelectByLanes]] = {
    "registers": lambda lanes: ArgsortAndTake(BitonicRows(lanes, 4, 2048 // lanes, group_size=32)),
    "workgroup memory": lambda lanes: ArgsortAndTake(RadixRows(5, 64, 256, lanes, digit_bits=4)),
    "lanes": lambda lanes: SelectByLanes(RowsPolicy(min(lanes, 4), 8, 32)),
    "more lanes than each keeps": lambda lanes: SelectByLanes(RowsPolicy(min(lanes, 8), 4, 16)),
    "a lane": lambda lanes: SelectByLanes(RowsPolicy(1, 4, 16)),
}


def selection(target: str, by: str, dtype: str, length: int) -> ArgsortAndTake | SelectByLanes:
    info = target_of(target).info
    return FORMS[by](min(32, info.limits.subgroup_size)).fitted(key_for(dtype), length, 1, info)


def numbers(found: ArgsortAndTake | SelectByLanes, *wished: int) -> list[int]:
    """Those k that it selects."""
    most = found.policy.items if isinstance(found, SelectByLanes) else max(wished)
    return sorted({min(k, most) for k in wished if k})


def can(case: Mapping[str, object]) -> bool:
    """Plain Python takes minutes for long rows, and where many invocations wait for each other; many elements in
    registers compile for seconds by LLVM and WGSL's software driver."""
    target, by, number = str(case["target"]), case["by"], LENGTHS.index(cast(int, case["length"]))
    most = {"python": 0 if by == "workgroup memory" else 3, "cpu": 5, "wgsl": 6 if by == "registers" else 10}
    lengths = most.get(target, 10)
    return number < lengths and (number < 7 or case["dtype"] in COMPILED)


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by", FORMS)
def test_the_first_of_rows(target: str, by: str, dtype: str, length: int) -> None:
    """NaNs of several bits, both zeros, NaT and many equals come as in a stable argsort, with the bits they had. The
    last workgroup has fewer rows than the others."""
    found = selection(target, by, dtype, length)
    x = sample(dtype, (3 if by == "workgroup memory" else 33 if length == 1 else 17, length), seed=length)
    largest = (DTYPES.index(dtype) + LENGTHS.index(length)) % 2 == 0
    for k in numbers(found, 1, min(2, length), (length + 1) // 2, length - 1, length):
        check(target, found, x, k, largest)


@few_cases(can=lambda case: case["target"] in ("simulator", "wgsl"), pairs=False)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "f2", "u4", "f4", "i8", "f8"])
@pytest.mark.parametrize("by", FORMS)
def test_the_first_of_adverse_rows(target: str, by: str, dtype: str, largest: bool) -> None:
    rows = np.stack([*adverse(dtype, 60).values()])
    found = selection(target, by, dtype, 60)
    for k in numbers(found, 1, 7, 30, 60):
        check(target, found, rows, k, largest)


@pytest.mark.parametrize("by", FORMS)
def test_they_take_one_launch_and_no_scratch_memory(by: str) -> None:
    """So as many rows go together as buffers hold of what is given and made; k is a number that one kernel takes."""
    key = key_for("f4")
    found = FORMS[by](32).fitted(key, 100, 1, CARD)
    few, many = (top_k(key, 50, 100, k, SortOrder.ASCENDING, found) for k in numbers(found, 2, 90))
    ((one,), (other,)) = few.launches, many.launches
    assert specialise(one).program is specialise(other).program
    assert not [buffer for buffer in few.buffers if buffer.role is Role.SCRATCH]
    limits = attrs.evolve(CARD.limits, storage_bytes=400 * 70)
    assert found.most_rows(key, 100, 4, limits) == 70
    if isinstance(found, ArgsortAndTake):
        assert found.most_rows(key, 100, 100, limits) == 35


def test_lanes_find_as_many_as_each_holds() -> None:
    found, key = SelectByLanes(RowsPolicy(4, 8)), key_for("f4")
    with pytest.raises(gpusort.InvalidArgumentError, match="k: expected at most the 8 that a lane holds, found 9"):
        top_k(key, 50, 100, 9, SortOrder.ASCENDING, found)
    with pytest.raises(gpusort.CapabilityError, match="k: 9 is more than SelectByLanes"):
        found.fitted(key, 100, 9, CARD)
    assert found.most_rows(key, 100, 9, CARD.limits) == 0
    assert found.most_rows(key, (1 << 32) - 32, 8, CARD.limits) == 0
    few = attrs.evolve(CARD.limits, groups=1000)
    assert found.most_rows(key, 100, 8, few) == 64 * 1000
    policies = [found.fitted(key, length, 1, CARD).policy for length in (1, 5, 8, 9, 17, 100)]
    assert [(one.lanes, one.items) for one in policies] == [(1, 1), (1, 8), (1, 8), (2, 8), (4, 8), (4, 8)]
    chosen = {
        case: type(choose_top_k(CARD, key, *case)) for case in ((1 << 15, 64, 8), (1000, 64, 8), (1 << 15, 64, 17))
    }
    assert [*chosen.values()] == [SelectByLanes, ArgsortAndTake, ArgsortAndTake]
