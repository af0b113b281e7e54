"""Radix sort in both forms, compared with NumPy exactly, around every edge of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos.radix import radix_sort
from gpusort.algos.radix_sweep import MOST_ELEMENTS, radix_sweep_sort
from gpusort.kernel.launch import Schedule
from gpusort.targets.base import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import SortOrder
from gpusort.types.params import RadixPolicy

Array = npt.NDArray[Any]
GROUP, ITEMS = 64, 2
TILE = GROUP * ITEMS
LENGTHS = [0, 1, 2, 15, 16, 17, TILE - 1, TILE, TILE + 1, 2 * TILE, 1000, 5 * TILE + 3]
DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "M8[s]"]


def policy_for(name: str, subgroups: bool) -> RadixPolicy:
    strand = target_of(name).info.limits.subgroup_size if subgroups else 16
    return RadixPolicy(4, GROUP, ITEMS, strand, subgroups, looks=2, count_group=GROUP, count_items=2, copies=2)


def random_bits(dtype: str, length: int, few: bool = False) -> Array:
    """Any bits at all: for floats, NaNs of both signs, infinities, subnormals and both zeros are among them."""
    rng = np.random.default_rng(length + few)
    bits = rng.integers(0, 2 if few else 256, length * np.dtype(dtype).itemsize, dtype=np.uint8) * (255 if few else 1)
    return bits.view(dtype)


def in_order(x: Array, order: SortOrder) -> Array:
    """NumPy's answer; descending mirrors what is not NaN or NaT."""
    ascending = np.sort(x)
    if order is SortOrder.ASCENDING:
        return ascending
    last = int(np.isnan(x).sum()) if x.dtype.kind == "f" else int(np.isnat(x).sum()) if x.dtype.kind == "M" else 0
    return np.concatenate([ascending[: len(x) - last][::-1], ascending[len(x) - last :]])


def check(schedule: Schedule, name: str, x: Array, order: SortOrder) -> None:
    words = np.dtype(f"u{x.dtype.itemsize}")
    found = np.zeros_like(x)
    target_of(name).run(schedule, {"data": x.view(words), "results": found.view(words)})
    np.testing.assert_array_equal(found, in_order(x, order))
    np.testing.assert_array_equal(np.sort(found.view(words)), np.sort(x.view(words)))  # every bit came back


@pytest.fixture
def quick_target(target: str) -> str:
    if target == "python":
        pytest.skip("plain Python takes minutes for these")
    return target


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_portable_form(quick_target: str, dtype: str, order: SortOrder) -> None:
    if quick_target == "cpu" and dtype not in ("u1", "u4", "f4", "i8"):
        pytest.skip("each dtype compiles for seconds there, and these four have every word size and kind of key")
    policy = policy_for(quick_target, subgroups=True)
    for length in LENGTHS:
        x = random_bits(dtype, length)
        check(radix_sort(key_for(dtype), length, order, policy, 8 * x.itemsize), quick_target, x, order)


@pytest.mark.parametrize("dtype", ["u4", "f4", "i8"])
def test_the_portable_form_without_subgroups(quick_target: str, dtype: str) -> None:
    policy = policy_for(quick_target, subgroups=False)
    for length in (1, TILE - 1, TILE + 1, 1000):
        x = random_bits(dtype, length)
        schedule = radix_sort(key_for(dtype), length, SortOrder.ASCENDING, policy, 8 * x.itemsize)
        check(schedule, quick_target, x, SortOrder.ASCENDING)


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_single_sweep(quick_target: str, dtype: str, order: SortOrder) -> None:
    """In the simulator all workgroups of these lengths advance together, which is progress enough."""
    has_progress = Capability.FORWARD_PROGRESS in target_of(quick_target).info.capabilities
    if not has_progress and quick_target != "simulator":
        pytest.skip(f"{quick_target} does not promise forward progress between workgroups")
    policy = policy_for(quick_target, subgroups=True)
    for length in LENGTHS:
        x = random_bits(dtype, length)
        check(radix_sweep_sort(key_for(dtype), length, order, policy, 8 * x.itemsize), quick_target, x, order)


@pytest.mark.parametrize("name", ["simulator"])
@pytest.mark.parametrize("make", [radix_sort, radix_sweep_sort])
def test_arrangements(name: str, make: Any) -> None:
    policy = policy_for(name, subgroups=True)
    n = 5 * TILE + 3
    ramp = np.arange(n, dtype=np.uint32) * np.uint32(7919)
    for x in (ramp, ramp[::-1].copy(), np.full(n, 5, np.uint32), random_bits("u4", n, few=True)):
        check(make(key_for("u4"), n, SortOrder.ASCENDING, policy, 32), name, x, SortOrder.ASCENDING)


def test_a_sweep_of_too_many_elements_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=f"fewer than {MOST_ELEMENTS} elements, not {MOST_ELEMENTS}"):
        radix_sweep_sort(key_for("u1"), MOST_ELEMENTS, SortOrder.ASCENDING, RadixPolicy(), 8)
