"""Rows sorted by radix in workgroup memory, compared with NumPy exactly, around every edge of a workgroup."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import gpusort
from gpusort.algos.batch import Batch, PairsAlgorithm
from gpusort.algos.sorts import BitonicRows, RadixRows
from gpusort.machine import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.indices import Placement, SortOrder
from gpusort.types.keys import RankKey, UnsignedKey
from gpusort.types.scalars import U16, U32, U64
from tests import key_cases
from tests.covering import few_cases
from tests.reference import assert_same_bits, sample, sorted_by_numpy
from tests.test_pairs import stable_order

GROUP, ITEMS = 64, 2
CAPACITY = 2 * GROUP * ITEMS
LENGTHS = [1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200, CAPACITY - 1, CAPACITY]


def algorithm_for(name: str) -> RadixRows:
    info = target_of(name).info
    if Capability.SUBGROUPS not in info.capabilities:
        pytest.skip(f"target {name!r} has no subgroups")
    return RadixRows(ITEMS, GROUP, 2 * GROUP, min(32, info.limits.subgroup_size), digit_bits=4)


def can(case: Mapping[str, object]) -> bool:
    """Plain Python takes minutes for these; on the CPU each kernel compiles for seconds."""
    in_place = case.get("placement") is Placement.IN_PLACE
    return case["target"] != "python" and (case["target"] != "cpu" or (case["dtype"] in ("u4", "f8") and not in_place))


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f4", "i8", "f8"])
def test_rows(target: str, dtype: str, length: int, descending: bool, placement: Placement) -> None:
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    algorithm = algorithm_for(target)
    for rows in (1, 5):
        x = sample(dtype, (rows, length), seed=length)
        words = f"u{x.itemsize}"
        schedule = algorithm.schedule(key_for(dtype), rows, length, order, placement)
        in_place = placement is Placement.IN_PLACE
        found = x.copy() if in_place else np.zeros_like(x)
        arrays = {"data": (found if in_place else x).reshape(-1).view(words)}
        if not in_place:
            arrays["results"] = found.reshape(-1).view(words)
        target_of(target).run(schedule, arrays)
        np.testing.assert_array_equal(found, sorted_by_numpy(x, descending=descending))
        for row, mine in zip(found, x, strict=True):
            assert_same_bits(np.sort(row.view(words)), np.sort(mine.view(words)))


@few_cases(
    can=lambda case: (
        case["target"] in ("simulator", "wgsl")
        or (case["target"], case["dtype"], case["descending"]) == ("cpu", "u1", False)
    )
)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
@pytest.mark.parametrize("in_registers", [False, True])
def test_places_in_rows_and_values_that_go_along(target: str, dtype: str, descending: bool, in_registers: bool) -> None:
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    algorithm: PairsAlgorithm = algorithm_for(target)
    key, cases = key_for(dtype), [(1, 1), (3, 129), (2, CAPACITY)]
    if in_registers:  # a row is one lane's, or several's, which hold all of their words or not
        algorithm = BitonicRows(min(8, target_of(target).info.limits.subgroup_size), 2, 4, 16)
        cases = [(1, 1), (17, 2), (3, 7), (2, 8), (5, 9), (3, 32)]
    for rows, length in [(3, 29)] if target == "cpu" else cases:
        x = sample(dtype, (rows, length), seed=length)
        words, places = x.reshape(-1).view(f"u{x.itemsize}"), np.zeros(x.shape, np.uint64)
        schedule = algorithm.sort(Batch(RankKey(key), rows, length, order, places=U64))
        target_of(target).run(schedule, {"data": words, "places": places.reshape(-1)})
        expected = np.array([stable_order(row, order) for row in x])
        np.testing.assert_array_equal(places, expected)
        if target == "cpu":
            continue
        values = np.random.default_rng(length).integers(0, 1 << 16, x.shape, np.uint16)
        found, moved = np.zeros_like(x), np.zeros_like(values)
        arrays = {"data": words, "values": values.reshape(-1), "results": found.reshape(-1).view(words.dtype)}
        schedule = algorithm.sort(Batch(RankKey(key), rows, length, order, value=U16))
        target_of(target).run(schedule, {**arrays, "moved": moved.reshape(-1)})
        np.testing.assert_array_equal(found, np.take_along_axis(x, expected, -1))
        np.testing.assert_array_equal(moved, np.take_along_axis(values, expected, -1))


def test_the_smallest_workgroup_that_holds_a_row_is_taken() -> None:
    algorithm = RadixRows(items=16)
    assert [algorithm.policy_for(n).group_size for n in (1, 4096, 4097, 8192, 8193, 16384)] == [
        256, 256, 512, 512, 1024, 1024,
    ]  # fmt: skip
    assert [algorithm.policy_for(n).items for n in (0, 1, 257, 2048, 2049, 3072, 3073, 4096, 4097, 8193)] == [
        1, 1, 2, 8, 10, 12, 14, 16, 10, 10,
    ]  # fmt: skip
    assert [RadixRows(27).policy_for(256 * n).items for n in (5, 9, 17, 21, 25, 27)] == [5, 10, 20, 24, 27, 27]
    assert algorithm.most_rows(16384, 1000) == 1000
    assert algorithm.most_rows(16385, 1000) == 0
    with pytest.raises(gpusort.CapabilityError, match="x: a row of 16384 elements, each of which takes 8 bytes of"):
        gpusort.sort(np.zeros(16384, np.uint64), algorithm=RadixRows(), target="simulator")


def test_keys_of_other_elements_are_refused() -> None:
    assert RadixRows().placements(UnsignedKey(U32, U32, 32))
    with pytest.raises(gpusort.UnsupportedTypeError, match="RadixRows sorts keys whose elements are unsigned integers"):
        RadixRows().placements(key_cases.OfFloats())
