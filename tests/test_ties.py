"""Stable order of floats put back after a sort by words: on every target and in every share, against its definition."""

from __future__ import annotations

import math
from typing import Any, cast

import attrs
import numpy as np
import pytest

from gpusort.algos.choice import choose_scan
from gpusort.algos.sizes import LARGEST_U32
from gpusort.algos.ties import first_not_below, restore_ties
from gpusort.kernel.launch import Schedule
from gpusort.machine import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import infinity_of, key_for
from gpusort.types.indices import SortOrder
from gpusort.types.keys import FloatKey
from gpusort.types.params import ScanPolicy
from gpusort.types.scalars import U32
from tests.covering import InTurn, few_cases
from tests.reference import Array, assert_same_bits, sample, sorted_by_numpy

ORDERS = tuple(SortOrder)
FLOATS = ("f2", "f4", "f8")


def by_words(x: Array, order: SortOrder) -> Array:
    """Rows in the order that a sort by words gives: -0.0 beside 0.0 on its side, NaNs last by their bits."""
    infinity, sign = infinity_of(x.dtype), 1 << (8 * x.itemsize - 1)
    words, all_ones = x.view(f"u{x.itemsize}").astype(object), 2 * sign - 1
    flipped = np.where(words >= sign, all_ones - words, words + sign)
    flipped = (flipped - (all_ones - (sign + infinity))) % (all_ones + 1)
    last = 2 * infinity + 1
    ordered = flipped if order is SortOrder.ASCENDING else np.where(flipped <= last, last - flipped, flipped)
    return np.take_along_axis(x, np.argsort(ordered, axis=-1, kind="stable"), axis=-1)


def kinds_of_rows(dtype: str, length: int) -> Array:
    """Rows of every kind: without ties, with zeros of one sign or both, NaNs alike and not, nothing but ties."""
    mixed = sample(dtype, (3, length), seed=length)
    plain = np.abs(sample(dtype, length, seed=length + 1))
    plain[~(plain > 0)] = 1
    zeros, nans, one_nan, one_zero = plain.copy(), plain.copy(), plain.copy(), plain.copy()
    zeros[::3], zeros[1::3] = 0.0, -0.0
    nans[::2] = sample(dtype, length, seed=3)[::2]
    nans[::4], nans[2::4] = np.nan, -np.nan
    nans[nans == 0] = 2
    one_nan[length // 2 :] = np.nan
    one_zero[: length // 2] = -0.0
    signs = np.where(np.arange(length) % 3 == 1, -0.0, 0.0).astype(dtype)
    return np.stack([*mixed, plain, zeros, nans, -one_nan, one_zero, signs, np.copysign(np.nan, signs).astype(dtype)])


def mended(name: str, schedule: Schedule, x: Array, results: Array) -> Array:
    found, words = results.copy(), f"u{x.itemsize}"
    arrays = {"data": x.reshape(-1).view(words), "results": found.reshape(-1).view(words)}
    target_of(name).run(schedule, arrays)
    return found


def float_key(dtype: str) -> FloatKey[U32, U32]:
    """The key of a float dtype, of whichever element."""
    return cast("FloatKey[U32, U32]", key_for(dtype))


POLICY = ScanPolicy(16, 3, 12)
POLICIES = (POLICY, ScanPolicy(64, 2, 12, subgroups=True), ScanPolicy(1, 1, 12))
LENGTHS = (1, 2, 47, 49, 300)


@few_cases(can=lambda case: case["target"] != "cpu" or (case["dtype"], case["policy"]) == ("f4", POLICY), pairs=False)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_become_stable(target: str, dtype: str, policy: ScanPolicy, order: SortOrder, in_turn: InTurn) -> None:
    if policy.subgroups and Capability.SUBGROUPS not in target_of(target).info.capabilities:
        pytest.skip("has no subgroups")
    if target == "cpu" and (policy is not POLICY or dtype != "f4"):
        pytest.skip("each kernel compiles for seconds there")
    descending = order is SortOrder.DESCENDING
    for length, rows in in_turn(LENGTHS[: 4 if target == "python" else None], (1, 10)):
        x = kinds_of_rows(dtype, length)
        sorted_ = by_words(x, order)
        expected = sorted_by_numpy(x, descending=descending)
        mine = slice(4, 5) if rows == 1 else slice(0, rows)
        schedule = restore_ties(float_key(dtype), rows, length, order, policy)
        found = mended(target, schedule, x[mine], sorted_[mine])
        assert_same_bits(found, expected[mine])


@pytest.mark.parametrize("order", ORDERS)
def test_each_kind_of_long_row(target: str, order: SortOrder) -> None:
    """One row at a time, which many workgroups share."""
    length = 100 if target == "python" else 2000
    x = kinds_of_rows("f4", length)
    sorted_, expected = by_words(x, order), sorted_by_numpy(x, descending=order is SortOrder.DESCENDING)
    schedule = restore_ties(float_key("f4"), 1, length, order, POLICY)
    assert len(schedule.launches) == 2
    for row in range(len(x)):
        assert_same_bits(mended(target, schedule, x[row], sorted_[row]), expected[row])


def test_no_rows_and_nothing_in_them(target: str) -> None:
    for rows, length in ((0, 5), (3, 0), (3, 1)):
        schedule = restore_ties(float_key("f4"), rows, length, SortOrder.ASCENDING, POLICY)
        x = np.full((rows, length), -0.0, "f4")
        assert_same_bits(mended(target, schedule, -x, x), x)


def test_many_short_rows(target: str) -> None:
    """Several to a workgroup, and the last has fewer."""
    rows, length = (70, 5) if target == "python" else (203, 9)
    x = sample("f4", (rows, length), seed=1)
    x[::3] = np.abs(np.nan_to_num(x[::3])) + 1
    schedule = restore_ties(float_key("f4"), rows, length, SortOrder.ASCENDING, POLICY)
    assert schedule.launches[0].grid.groups < rows
    found = mended(target, schedule, x, by_words(x, SortOrder.ASCENDING))
    assert_same_bits(found, sorted_by_numpy(x))


def test_a_policy_that_suits_the_target(target: str) -> None:
    length = 100 if target == "python" else 30_000
    x = kinds_of_rows("f4", length)[:1]
    policy = choose_scan(U32, length, target_of(target).info)
    schedule = restore_ties(float_key("f4"), 1, length, SortOrder.DESCENDING, policy)
    found = mended(target, schedule, x, by_words(x, SortOrder.DESCENDING))
    assert_same_bits(found, sorted_by_numpy(x, descending=True))


def test_without_ties_the_source_is_not_read(target: str) -> None:
    """What is said to be the source here would be seen in the results."""
    x = np.linspace(-1, 1, 500, dtype="f4")
    lies: Array = np.where(np.arange(500) % 2, 0.0, -0.0).astype("f4")
    for policy in (POLICY, ScanPolicy(16, 3, 1)):
        schedule = restore_ties(float_key("f4"), 1, 500, SortOrder.ASCENDING, policy)
        assert_same_bits(mended(target, schedule, lies, x), x)


def test_few_rows_are_searched_by_more_loads_at_a_time() -> None:
    """Which many rows would have to wait for."""
    for rows, length, ways in ((1, 9, 16), (1, 5000, 16), (4095, 9, 16), (4096, 9, 4), (100_000, 9, 4)):
        launch: Any = restore_ties(float_key("f4"), rows, length, SortOrder.ASCENDING, POLICY).launches[0]
        assert launch.arguments[-2] == ways


def test_tiles_are_counted_in_half_a_word() -> None:
    schedule: Any = restore_ties(float_key("f4"), 1, 10, SortOrder.ASCENDING, ScanPolicy(4096, 256))
    policy = schedule.launches[0].arguments[-1]
    assert policy.tile == 4096 * 15


@attrs.define
class Steps:
    """A sorted row of 1.0 and, from an index on, of 2.0, which takes no memory; and how often it is read."""

    cut: int
    reads: int = 0

    def __getitem__(self, index: U32) -> U32:
        self.reads += 1
        return U32(0x3F800000 if int(index) < self.cut else 0x40000000)


@pytest.mark.parametrize("ways", [2, 4, 16])
@pytest.mark.parametrize("length", [1, 5, 15, 16, 17, 1000, 1 << 24, LARGEST_U32])
def test_a_search_divides_what_is_left_by_its_ways(length: int, ways: int) -> None:
    """Each round makes that many loads, all in flight at once, and leaves less than a way."""
    key, two = float_key("f4"), U32(0x40000000)
    for cut in {0, 1, length // ways, length // 3, length // 2 + 1, length - 1, length}:
        row = Steps(cut)
        bound, whole = key.to_word(two), (U32(0), U32(0), U32(length))
        found = first_not_below(key, cast(Any, row), *whole, bound, SortOrder.ASCENDING, ways)
        assert found == cut
        rounds = math.ceil(math.log(length + 1, ways))
        assert row.reads <= ways * rounds
