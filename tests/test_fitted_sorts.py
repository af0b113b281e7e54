"""Sorts of rows and selections on devices of any size: what is made of a policy fits, and as little is given up as
need be."""

from __future__ import annotations

from itertools import product

import attrs
import pytest

from gpusort.algos.argsort import placed_class
from gpusort.algos.candidates import DIGITS
from gpusort.algos.chosen import candidates_of
from gpusort.algos.fit import (
    fitted_merge,
    fitted_network,
    fitted_radix,
    fitted_reduce,
    fitted_scan_policy,
    power_below,
)
from gpusort.algos.select import (
    ArgsortAndTake,
    SelectByDigits,
    SelectByParts,
    SelectBySamples,
    Selection,
    state_bytes,
)
from gpusort.algos.select_digits import DigitsPolicy
from gpusort.algos.select_rows import PartPolicy
from gpusort.algos.select_sampled import SampledPolicy
from gpusort.algos.sorts import Radix, RadixRows
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.types.dtypes import key_for
from gpusort.types.elements import bytes_held
from gpusort.types.errors import CapabilityError, InvalidArgumentError
from gpusort.types.indices import SortOrder
from gpusort.types.params import BitonicPolicy, MergePolicy, RadixPolicy, ReducePolicy, ScanPolicy
from gpusort.types.scalars import U32

KEYS = {4: key_for("u4"), 8: key_for("u8")}  # by the bytes of their words


def device(
    workgroup_bytes: int, group_size: int, lanes: int = 1, most_lanes: int = 1, groups: int = 65_535
) -> TargetInfo:  # fmt: skip
    limits = Limits(group_size, workgroup_bytes, groups, 1 << 30, 8, lanes, most_lanes)
    found = frozenset({Capability.SUBGROUPS}) if lanes > 1 else frozenset[Capability]()
    return TargetInfo("wgsl", "a device", "none", limits, found)


def held(policy: RadixPolicy, word: int) -> int:
    return policy.tile * word + 4 * (policy.counters + policy.scanned)


@pytest.mark.parametrize("value_bytes", [0, 8])
@pytest.mark.parametrize("width", KEYS)
def test_rows_are_sorted_by_as_many_bits_at_a_time_as_counters_fit_for(width: int, value_bytes: int) -> None:
    """In tiles of workgroups that a device has, of whole subgroups where it has any. Values stay where they are: words
    go with their numbers."""
    asked, word, length = RadixRows(8, 64, 256, 16, 6), width + (4 if value_bytes else 0), 100 if width == 4 else 30
    seen = set[tuple[int, int, bool, int]]()
    for group_size, (lanes, most_lanes), memory in product(
        (1, 2, 3, 31, 64, 100, 128, 256, 1024), ((1, 1), (8, 8), (16, 64), (32, 128), (32, 32)), range(50, 9000, 250)
    ):
        info = device(memory, group_size, lanes, most_lanes)
        try:
            found = asked.fitted(KEYS[width], length, info, *([value_bytes] if value_bytes else []))
        except CapabilityError:
            if group_size >= 64:  # even a bit at a time is too much of two elements in each invocation
                uses_lanes = 1 < lanes <= most_lanes <= 64
                assert memory < held(RadixPolicy(1, 64, 2, lanes if uses_lanes else 32, uses_lanes), word)
            else:
                assert group_size == 1 or memory < 2000
            continue
        taken = min(length, found.capacity)
        policy = found.policy_for(taken)
        assert held(policy, word) <= memory
        assert policy.group_size <= found.most_group <= group_size
        assert found.least_group == min(64, 1 << group_size.bit_length() - 1)
        uses_lanes = lanes > 1 and most_lanes <= 64 and group_size >= 64
        assert found.subgroups is uses_lanes
        assert found.strand == (lanes if uses_lanes else min(32, found.least_group))
        assert found.digit_bits <= 6
        if 1 << found.digit_bits < min(64, found.least_group):
            assert held(attrs.evolve(policy, digit_bits=found.digit_bits + 1), word) > memory
        assert policy.items == -(-taken // policy.group_size)
        seen.add((found.digit_bits, policy.items, found.subgroups, found.most_group))
    assert len(seen) > 15


def test_rows_of_nothing_take_a_tile_too() -> None:
    """Of an element in each invocation, where memory is scarce."""
    for length, items in ((0, 1), (64, 1), (65, 2)):
        found = RadixRows(8, 64, 64, 16, 2).fitted(KEYS[4], length, device(1800, 64))
        assert found.policy_for(length).items == items


def test_subgroups_wider_than_a_workgroup_was_to_be_make_it_wider() -> None:
    asked = RadixRows(8, 32, 256, 16, 5)
    assert asked.fitted(KEYS[4], 100, device(1 << 15, 256, 32, 64)).least_group == 64
    assert asked.fitted(KEYS[4], 100, device(1 << 15, 256, 32, 32)).least_group == 32
    assert asked.fitted(KEYS[4], 100, device(1 << 15, 32, 32, 64)).subgroups is False
    own = attrs.evolve(asked, subgroups=False)
    assert own.fitted(KEYS[4], 100, device(1 << 15, 256, 32, 32)).strand == 16
    assert own.fitted(KEYS[4], 100, device(1 << 15, 8, 32, 32)).strand == 8


@pytest.mark.parametrize("bits", [7, 8, 9])
def test_sorts_of_an_even_number_of_passes_are_in_place_too(bits: int) -> None:
    passes = -(-32 // bits)
    assert len(Radix(RadixPolicy(bits, 512, 4)).placements(KEYS[4])) == (2 if passes % 2 == 0 else 1)


@pytest.mark.parametrize("width", KEYS)
def test_samples_and_candidates_are_as_many_as_there_is_memory_for(width: int) -> None:
    policy = SampledPolicy(256, 64, 16, 64, staged=200, few=256, network=BitonicPolicy(64, 16, 2))
    asked = SelectBySamples(policy)
    key, state, seen = KEYS[width], state_bytes(KEYS[width]), set[int]()
    apart = 4 * max(DIGITS + 1, 16)
    for memory in range(apart, apart + 300 * state, state // 2):
        try:
            found = asked.fitted(key, 100_000, 3, device(memory, 48)).policy
        except CapabilityError:
            assert memory < apart + 8 * state  # of so few, half would pass
            continue
        fits = (memory - apart) // state
        assert found.samples <= fits
        assert found.samples == 256 or 2 * found.samples > fits
        assert found.staged == min(200, fits)
        assert (found.group_size, found.filter_group, found.ranked) == (32, 32, min(16, found.samples))
        assert found.network.tile * state <= memory
        seen.add(found.samples)
    assert seen == {8, 16, 32, 64, 128, 256}
    assert asked.fitted(key, 100_000, 3, device(1 << 16, 8)).policy.ranked == 8
    assert asked.fitted(key, 100_000, 3, device(1 << 16, 64, groups=9)).policy.groups == 9


def test_an_argsort_to_take_from_is_fitted_as_it_is_alone() -> None:
    asked = ArgsortAndTake(Radix(RadixPolicy(4, 64, 8)), BitonicPolicy(1024, 256, 2))
    for memory, group_size, groups in ((1 << 14, 256, 65_535), (1500, 300, 1000), (1200, 32, 100)):
        info = device(memory, group_size, groups=groups)
        found = asked.fitted(KEYS[4], 1000, 10, info)
        assert found.network.group_size == min(256, group_size)
        assert found.sort == Radix(RadixPolicy(4, 64, 8)).fitted(KEYS[4], 1000, info, 4)
        tile, placed = found.network.tile, bytes_held(placed_class(U32))
        assert tile * placed <= memory
        assert tile == 1024 or 2 * tile * placed > memory


@pytest.mark.parametrize(
    ("k", "itemsize", "count"),
    [(1, 4, 64), (64, 4, 64), (65, 4, 128), (200, 4, 256), (1, 1, 256), (257, 1, 512), (9, 16, 16), (17, 24, 32),
     (1, 256, 1), (3, 512, 3), (33, 8, 64)],
)  # fmt: skip
def test_candidates_of_a_part_end_where_others_can_be_bound(k: int, itemsize: int, count: int) -> None:
    """At a multiple of 256 bytes: no later than need be."""
    assert candidates_of(k, itemsize) == count
    assert count * itemsize % 256 == 0


@pytest.mark.parametrize("wished", [96, 64, 100])
def test_a_workgroup_is_as_large_as_it_was_to_be_where_a_device_has_it(wished: int) -> None:
    """To the invocation, by its own number and by its memory; else it is the next power of two."""
    for most in (wished, wished + 1, wished - 1):
        found = wished if most >= wished else 64 if wished > 64 else 32
        key, merging = KEYS[4], MergePolicy(wished, 3)
        assert fitted_merge(merging, key, device(1 << 15, most)).group_size == found
        assert fitted_merge(merging, key, device(8 * most, 1024)) == MergePolicy(found, most // found)
        assert fitted_reduce(ReducePolicy(wished), U32, device(1 << 15, most)).group_size == found
        assert fitted_reduce(ReducePolicy(wished), U32, device(4 * most, 1024)).group_size == found
        assert fitted_scan_policy(ScanPolicy(wished, 3), U32, device(1 << 15, most)).group_size == found
        assert fitted_scan_policy(ScanPolicy(wished, 1), U32, device(8 * most, 1024)).group_size == found


def test_one_invocation_merges_without_workgroup_memory() -> None:
    alone, two = MergePolicy(1, 1000), MergePolicy(2, 1000)
    assert fitted_merge(alone, KEYS[4], device(4, 1)) == alone
    assert fitted_merge(two, KEYS[4], device(8 * 20, 8)) == MergePolicy(2, 10)
    assert fitted_merge(two, KEYS[4], device(8, 8)) == MergePolicy(1, 1)
    with pytest.raises(CapabilityError, match="takes 8 bytes of workgroup memory, of which the target has 7"):
        fitted_merge(two, KEYS[4], device(7, 8))


def test_a_network_holds_two_words_at_least() -> None:
    asked = BitonicPolicy(64, 16, 2)
    for memory, tile in ((8, 2), (15, 2), (16, 4), (255, 32), (256, 64), (9999, 64)):
        assert fitted_network(asked, U32, device(memory, 100).limits) == BitonicPolicy(tile, 16, 2)
    assert fitted_network(asked, U32, device(256, 15).limits).group_size == 8
    with pytest.raises(CapabilityError, match=r"takes 4 bytes of workgroup memory, .*; 2 must fit"):
        fitted_network(asked, U32, device(7, 100).limits)


@pytest.mark.parametrize(
    ("group_size", "groups", "bits"),
    [(1024, 65_535, 8), (256, 256, 8), (255, 65_535, 7), (1024, 255, 7), (16, 65_535, 4), (15, 16, 3), (2, 2, 1)],
)
def test_a_digit_has_as_many_values_as_there_are_invocations_and_workgroups(
    group_size: int, groups: int, bits: int
) -> None:
    found = fitted_radix(RadixPolicy(8, 256, 4), KEYS[4], 32, device(1 << 20, group_size, groups=groups))
    assert (found.digit_bits, found.group_size) == (bits, min(256, 1 << group_size.bit_length() - 1))
    for info in (device(1 << 20, 1), device(1 << 20, 256, groups=1)):
        with pytest.raises(CapabilityError, match="too little for a radix sort"):
            fitted_radix(RadixPolicy(8, 256, 4), KEYS[4], 32, info)


def test_digits_lose_a_bit_at_a_time_where_there_is_little_memory() -> None:
    found = list[int]()
    for memory in range(20, 20_000, 20):
        try:
            found.append(fitted_radix(RadixPolicy(8, 256, 1, 32, False), KEYS[4], 32, device(memory, 256)).digit_bits)
        except CapabilityError:
            assert not found, "less memory would do"
    assert found == sorted(found)
    assert {*found} == {1, 2, 3, 4, 5, 6, 7, 8}


def test_a_reduction_s_strands_are_those_of_a_device() -> None:
    """Within one of its subgroups, where a workgroup has whole ones; and it has no more workgroups than there are."""
    asked = ReducePolicy(64, 4, 100, subgroups=True, strand=16)
    for info, subgroups, strand in (
        (device(9999, 64), False, 1), (device(9999, 64, 32, 64), True, 16), (device(9999, 64, 8, 8), True, 8),
        (device(9999, 64, 32, 128), False, 1), (device(9999, 32, 32, 64), False, 1),
    ):  # fmt: skip
        found = fitted_reduce(asked, U32, info)
        assert (found.subgroups, found.strand, found.groups) == (subgroups, strand, 100)
        assert not fitted_reduce(attrs.evolve(asked, subgroups=False), U32, info).subgroups
    for groups in (99, 100, 101):
        info = device(9999, 64, groups=groups)
        assert fitted_reduce(asked, U32, info).groups == min(100, groups)
        assert fitted_scan_policy(ScanPolicy(64, 4, 100), U32, info).groups == min(100, groups)


@pytest.mark.parametrize(
    ("size", "lanes", "most_lanes", "are_used"),
    [(1, 1, 1, False), (16, 32, 32, True), (32, 32, 64, True), (48, 32, 32, False), (64, 32, 64, True),
     (64, 32, 128, False), (16, 1, 1, False)],
)  # fmt: skip
def test_a_scan_s_workgroup_is_within_a_subgroup_or_of_whole_ones(
    size: int, lanes: int, most_lanes: int, are_used: bool
) -> None:
    info = device(9999, 256, lanes, most_lanes)
    assert fitted_scan_policy(ScanPolicy(size, 4, subgroups=True), U32, info).subgroups is are_used
    assert not fitted_scan_policy(ScanPolicy(size, 4), U32, info).subgroups


@pytest.mark.parametrize("held", [0, 1, 2, 3, 4])
def test_a_state_at_least_fits_into_workgroup_memory_and_registers(held: int) -> None:
    info = device(4 * held + 3, 64)
    if held:
        assert fitted_reduce(ReducePolicy(64, 2), U32, info).group_size == (2 if held == 3 else held)
    else:
        with pytest.raises(CapabilityError, match="4 bytes of workgroup memory, of which the target has 3; 1 must fit"):
            fitted_reduce(ReducePolicy(64, 2), U32, info)
    info = attrs.evolve(
        device(9999, 64), limits=attrs.evolve(info.limits, workgroup_bytes=9999, register_bytes=4 * held + 3)
    )
    if held:
        assert fitted_reduce(ReducePolicy(64, 2), U32, info).items == max(1, min(held // 2, 2))
        assert fitted_scan_policy(ScanPolicy(64, 2), U32, info).items == max(1, min(held // 2, 2))
    else:
        with pytest.raises(CapabilityError, match="4 bytes of registers, of which the target has 3 for an array"):
            fitted_reduce(ReducePolicy(64, 2), U32, info)


PARTS = SelectByParts(PartPolicy(8, 4, 8, 9), 7)
NETWORK = ArgsortAndTake(None, BitonicPolicy(64, 16, 2))
RADIX = attrs.evolve(NETWORK, sort=Radix(RadixPolicy(4, 16, 2, 16, subgroups=False)))
BY_DIGITS = SelectByDigits(NETWORK, DigitsPolicy(16, 2, digit_bits=4))


@pytest.mark.parametrize(("size", "bits"), [(2, 1), (7, 2), (255, 7), (256, 8), (1024, 8)])
def test_a_selection_by_digits_has_an_invocation_for_each_and_counters_that_fit(size: int, bits: int) -> None:
    wished, key = SelectByDigits(NETWORK), key_for("f4")
    policy = wished.fitted(key, 9999, 50, device(1 << 15, size)).policy
    assert (policy.digit_bits, policy.items, policy.group_size) == (bits, 8, min(256, power_below(size)))
    memory = 4 * (policy.counters + policy.group_size + 3)
    assert wished.fitted(key, 9999, 50, device(max(memory, 1 << 10), size)).policy == policy
    if memory > 1 << 10:
        with pytest.raises(CapabilityError, match="finds too little workgroup memory on target 'wgsl'"):
            wished.fitted(key, 9999, 50, device(memory - 1, size))
    with pytest.raises(CapabilityError, match="finds workgroups of one invocation"):
        wished.fitted(key, 9999, 50, device(1 << 15, 1))
    with pytest.raises(InvalidArgumentError, match="group_size: expected at least 16, an invocation for each"):
        DigitsPolicy(15, digit_bits=4)
    with pytest.raises(InvalidArgumentError, match="items: expected fewer than 65536 elements in a tile"):
        DigitsPolicy(1 << 12, 16)


@pytest.mark.parametrize(
    ("selection", "length", "k"),
    [(NETWORK, 200, 3), (RADIX, 200, 3), (PARTS, 200, 8), (PARTS, 10, 8), (BY_DIGITS, 200, 3)],
)
@pytest.mark.parametrize("dtype", ["u2", "u8"])
def test_as_many_rows_are_selected_from_at_once_as_there_is_room_for(
    selection: Selection, length: int, k: int, dtype: str
) -> None:
    """And not one more: in launches, in buffers, and in numbers of 32 bits."""
    key, largest = key_for(dtype), (1 << 32) - 1
    limits = Limits(64, 1 << 14, largest, 1 << 60, 8, 1, 1)

    def most(rows: int) -> tuple[int, int]:
        schedule = selection.schedule(key, rows, length, k, SortOrder.ASCENDING)
        return max(one.grid.groups for one in schedule.launches), max(one.nbytes for one in schedule.buffers)

    rows = selection.most_rows(key, length, k, attrs.evolve(limits, storage_bytes=99_999))
    is_exact = selection is not RADIX and length == 200  # else there is room for what others would take
    assert most(rows)[1] <= 99_999 < most(rows + 1 if is_exact else 2 * rows + 1)[1]
    if selection is PARTS:  # in as many launches as they need
        assert selection.most_rows(key, length, k, attrs.evolve(limits, groups=7)) == largest // length
        assert selection.most_rows(key, length, 8, limits) > 0
        assert selection.most_rows(key, length, 9, limits) == 0
        assert most(300)[0] == 7
        fitted = [selection.fitted(key, length, 2, device(1 << 14, 64, groups=groups)) for groups in (6, 7, 8)]
        assert fitted == [attrs.evolve(PARTS, groups=groups) for groups in (6, 7, 7)]
    else:
        rows = selection.most_rows(key, length, k, attrs.evolve(limits, groups=9999))
        assert most(rows)[0] <= 9999 < most(rows + 1)[0]
        take = selection.schedule(key, 7, length, k, SortOrder.ASCENDING).launches[-1]
        assert take.grid.groups == 2, "of 16 invocations, for 21 elements"
        assert selection.schedule(key, 9999, length, k, SortOrder.ASCENDING).launches[-1].grid.groups == 1024
