"""Rows longer than a binding are sorted in parts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from gpusort import webgpu
from gpusort.algos.merge_exchange import compared_parts
from gpusort.targets.webgpu import target_on_device
from tests.covering import few_cases
from tests.reference import assert_same_bits, sample, sorted_by_numpy
from tests.small_bindings import Small, device_with_bindings_of

BYTES = 512  # of a binding


def parts_of(target: Small) -> list[int]:
    """How many parts the results of each run were in."""
    return [sum(buffer.name.startswith("results") for buffer in one.buffers) for one in target.schedules]


@pytest.mark.parametrize("count", range(1, 9))
def test_parts_are_compared_by_a_network(count: int) -> None:
    """One that sorts every permutation; where these are many, every sequence of zeros and ones."""
    found = [*compared_parts(count)]
    assert all(lower < upper < count for lower, upper in found)
    for values in permutations(range(count)) if count < 6 else product((0, 1), repeat=count):
        line = list(values)
        for lower, upper in found:
            line[lower], line[upper] = sorted((line[lower], line[upper]))
        assert line == sorted(values)


def test_no_pair_of_parts_is_merged_in_vain() -> None:
    """As many as Batcher's merge exchange has, each of which is a pass over two bindings."""
    most = [0, 0, 1, 3, 5, 9, 12, 16, 19, 26, 31, 37, 41, 48, 53, 59, 63, 74]
    assert [len([*compared_parts(count)]) for count in range(len(most))] == most


@few_cases()
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "u8"])
@pytest.mark.parametrize("extra", [1, 7, BYTES - 1, BYTES, 2 * BYTES + 100])
def test_long_rows_are_sorted(dtype: str, extra: int, descending: bool) -> None:
    target, x = Small(BYTES), sample(dtype, (BYTES + extra) // np.dtype(dtype).itemsize + 1, seed=extra)
    before = x.copy()
    found = gpusort.sort(x, descending=descending, target=target)
    np.testing.assert_array_equal(found, sorted_by_numpy(x, descending=descending))
    assert_same_bits(x, before)
    assert parts_of(target) == [-(-x.nbytes // BYTES)]


def test_several_long_rows_and_columns_and_in_place() -> None:
    x = sample("i4", (3, 300))
    for axis, given in ((1, x), (0, x.T.copy())):
        target = Small(BYTES)
        assert_same_bits(gpusort.sort(given, axis=axis, target=target), np.sort(given, axis=axis))
        assert parts_of(target) == [3] * 3
    gpusort.sort_inplace(x, target=Small(BYTES))
    assert_same_bits(x, np.sort(sample("i4", (3, 300))))


def test_orders_that_parts_may_come_in() -> None:
    x = np.arange(700, dtype=np.uint32)
    for given in (x, x[::-1].copy(), np.zeros_like(x), np.roll(x, 200)):
        assert_same_bits(gpusort.sort(given, target=Small(BYTES)), np.sort(given))


@pytest.fixture(scope="module", name="small_device")
def device_with_small_bindings() -> Any:
    return device_with_bindings_of(1 << 16)


@pytest.mark.parametrize(("dtype", "count"), [("u4", 50_005), ("f4", 20_000), ("u1", 65_537)])
def test_several_bindings_of_a_device(small_device: Any, dtype: str, count: int) -> None:
    """On arrays of the host, and on arrays that lie there in one buffer."""
    assert target_on_device(small_device).info.limits.storage_bytes == 1 << 16
    x, on_device = sample(dtype, count), cast("Callable[..., Any]", gpusort.sort)
    np.testing.assert_array_equal(gpusort.sort(x, target=target_on_device(small_device)), np.sort(x))
    there = webgpu.asarray(x, small_device)
    np.testing.assert_array_equal(on_device(there).to_numpy(), np.sort(x))
    np.testing.assert_array_equal(there.to_numpy(), x)
    on_device(there, out=there)
    np.testing.assert_array_equal(there.to_numpy(), np.sort(x))
