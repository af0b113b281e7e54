"""What is made of a policy where workgroup memory is little: it fits, and a larger one would not."""

from __future__ import annotations

from typing import cast

import attrs
import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.candidates import DIGITS
from gpusort.algos.fit import (
    fitted_partition,
    fitted_radix,
    fitted_scan_policy,
    has_whole_subgroups,
    lanes_of,
    power_below,
)
from gpusort.algos.partition import BUCKETS, MOST_ITEMS, BucketCounts, partition
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.select import SelectByParts, rows_within, state_bytes, top_k
from gpusort.algos.select_rows import PartPolicy
from gpusort.algos.sorts import Bitonic, BitonicRows, Radix, RadixRows, SortAlgorithm
from gpusort.kernel.launch import Schedule
from gpusort.kernel.passes.overlay import packed_bytes
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.types.dtypes import key_for
from gpusort.types.elements import bytes_held
from gpusort.types.errors import CapabilityError
from gpusort.types.indices import SortOrder
from gpusort.types.memory import Workgroup
from gpusort.types.params import BitonicPolicy, RadixPolicy, ScanPolicy
from gpusort.types.scalars import U32

UP = SortOrder.ASCENDING
KEYS = {4: key_for("f4"), 8: key_for("f8")}  # by the bytes of their words


def device(workgroup_bytes: int, group_size: int = 256, lanes: int = 32) -> TargetInfo:
    limits = Limits(group_size, workgroup_bytes, 65_535, 1 << 30, 8, lanes, lanes)
    return TargetInfo("wgsl", "a device", "none", limits, frozenset({Capability.SUBGROUPS}))


def held_by(schedule: Schedule) -> int:
    """The most that a launch's workgroup memories take together."""
    return max(
        sum(len(one.items) * bytes_held(one.element) for one in map(_memory, launch.arguments) if one is not None)
        for launch in schedule.launches
    )


def _memory(argument: object) -> Workgroup[object] | None:
    return cast("Workgroup[object]", argument) if isinstance(argument, Workgroup) else None


def test_powers_of_two() -> None:
    assert [power_below(most) for most in (0, 1, 2, 3, 4, 5, 7, 8, 9, 1023, 1024)] == [
        1,
        1,
        2,
        2,
        4,
        4,
        4,
        8,
        8,
        512,
        1024,
    ]


@pytest.mark.parametrize("width", KEYS)
def test_a_partition_has_as_many_items_as_fit(width: int) -> None:
    """To the word: in memories of any size."""
    asked = ScanPolicy(group_size=64, items=30, subgroups=True)
    held = [
        held_by(partition(KEYS[width], 10_000, 10_000, SortOrder.ASCENDING, attrs.evolve(asked, items=items)))
        for items in range(1, MOST_ITEMS + 1)
    ]
    assert held[0] == 65 * bytes_held(BucketCounts) + 12 * BUCKETS + 64 * width
    for memory in range(2048, held[-1] + 300, 4):  # with less there are smaller workgroups
        found = fitted_partition(asked, KEYS[width], device(memory))
        assert found.group_size == 64
        assert found.items == sum(most <= memory for most in held)
        assert fitted_partition(attrs.evolve(asked, items=1), KEYS[width], device(memory)).items == 1


@pytest.mark.parametrize("group_size", [32, 64, 256])
def test_a_scan_s_tile_and_a_state_for_each_invocation_fit(group_size: int) -> None:
    asked = ScanPolicy(group_size=group_size, items=12, subgroups=True)
    for states in (2, 3, 63, 64, 200, 1000, 3000, 4000):
        found = fitted_scan_policy(asked, U32, device(4 * states))
        assert found.group_size * (found.items + 1) <= states
        assert found.group_size == group_size or 2 * group_size > states
        assert found.items == asked.items or found.group_size * (found.items + 2) > states
    with pytest.raises(CapabilityError, match="2 must fit"):
        fitted_scan_policy(asked, U32, device(7))


def test_where_a_column_has_an_invocation_of_its_own_these_are_fewer_and_not_the_items() -> None:
    """With fewer items no column of 16 would be alone."""
    asked = ScanPolicy(group_size=256, items=16, alone=True)
    for states, size in ((8192, 256), (4352, 256), (4096, 128), (1000, 32), (17, 1)):
        found = fitted_scan_policy(asked, U32, device(4 * states))
        assert (found.group_size, found.items) == (size, 16)
    assert fitted_scan_policy(asked, U32, device(4 * 4)).items < 16


@pytest.mark.parametrize("value_bytes", [0, 4, 8])
@pytest.mark.parametrize("width", KEYS)
def test_a_radix_sort_s_tile_fits_beside_what_is_live_with_it(width: int, value_bytes: int) -> None:
    """And with an item more in each invocation it would not: of keys, and of values where the keys were."""
    asked = RadixPolicy(digit_bits=8, group_size=256, items=28, sweeps=False)
    key = key_for(f"u{width}")
    for memory in range(8_000, 120_000, 1_000):
        found = fitted_radix(asked, key, 8 * width, device(memory), value_bytes)
        apart = 4 * (found.scanned + found.radix)
        element = max(width, value_bytes)
        assert apart + element * found.group_size * found.items <= memory
        if found.items < asked.items:
            assert apart + element * found.group_size * (found.items + 1) > memory


def test_a_sort_sweeps_where_the_histograms_of_all_its_passes_fit() -> None:
    """With as many copies of them as do; below that it counts pass by pass, with the same digits."""
    asked = RadixPolicy(digit_bits=4, group_size=32, items=1, copies=4, sweeps=True)
    progress = frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS})
    each, seen = 4 * 16 * 16, list[tuple[bool, int]]()
    for memory in range(600, 6_000, 4):
        found = fitted_radix(asked, KEYS[8], 64, attrs.evolve(device(memory), capabilities=progress))
        assert (found.digit_bits, found.sweeps) == (4, memory >= each)
        assert found.copies == max(1, min(4, memory // each))
        seen.append((found.sweeps, found.copies))
        one_by_one = attrs.evolve(asked, sweeps=False)
        assert not fitted_radix(one_by_one, KEYS[8], 64, attrs.evolve(device(memory), capabilities=progress)).sweeps
    assert {*seen} == {(False, 1), (True, 1), (True, 2), (True, 3), (True, 4)}


@pytest.mark.parametrize(("group_size", "bits"), [(2, 1), (4, 2), (8, 3)])
def test_a_sweep_has_digits_of_two_bits_or_more(group_size: int, bits: int) -> None:
    """And histograms are counted by no more invocations and workgroups than there are."""
    asked = RadixPolicy(4, 16, 2, 2, False, count_group=256, count_groups=100, sweeps=True)
    progress = attrs.evolve(device(9_999, group_size), capabilities=frozenset({Capability.FORWARD_PROGRESS}))
    for groups in (99, 100, 101):
        info = attrs.evolve(progress, limits=attrs.evolve(progress.limits, groups=groups))
        found = fitted_radix(asked, KEYS[4], 32, info)
        assert (found.digit_bits, found.sweeps) == (bits, bits > 1)
        assert (found.count_group, found.count_groups) == (group_size, min(100, groups))


@pytest.mark.parametrize("sweeps", [False, True])
def test_a_radix_sort_s_tile_fits_to_the_word(sweeps: bool) -> None:
    """Beside the counters where it is filled while they are live, as what kernels overlay says."""
    asked, counts = RadixPolicy(2, 8, 6, 2, False, sweeps=sweeps), (4, 5, 6)
    schedules = [radix_sort(Batch(KEYS[4], 1, 99, UP), attrs.evolve(asked, items=n), 32) for n in counts]
    held = [packed_bytes(specialise(schedule.launches[-1]).program) for schedule in schedules]
    unused = 4 * asked.scanned if sweeps else 0  # counted apart from the tile, as no target shares all that it could
    progress = frozenset({Capability.FORWARD_PROGRESS})
    for memory in range(held[0], held[-1] + 2 * unused + 8, 4):
        found = fitted_radix(asked, KEYS[4], 32, attrs.evolve(device(memory), capabilities=progress))
        assert (found.digit_bits, found.group_size, found.sweeps) == (2, 8, sweeps)
        assert found.items <= 6
        assert [found.items >= n for n in counts] == [memory >= most + unused for most in held]


@pytest.mark.parametrize(("lanes", "most", "are_used"), [(4, 4, False), (8, 8, True), (8, 64, True), (8, 128, False)])
def test_subgroups_are_neither_small_nor_wider_than_masks(lanes: int, most: int, are_used: bool) -> None:
    limits = attrs.evolve(device(1 << 15).limits, subgroup_size=lanes, most_subgroup_size=most)
    info = attrs.evolve(device(1 << 15), limits=limits)
    assert has_whole_subgroups(256, info) is are_used
    assert not has_whole_subgroups(most + 1, info)


def test_masks_in_workgroup_memory_have_32_lanes_and_kernels_128_strands() -> None:
    """At most; what divides the workgroup."""
    none = attrs.evolve(device(1 << 16, group_size=1024), capabilities=frozenset[Capability]())
    asked = RadixPolicy(4, 99, 2)
    assert [lanes_of(asked, size, none)["strand"] for size in (99, 66, 64, 34, 31)] == [11, 22, 32, 17, 31]
    for size, found in ((129, 128), (128, 128), (96, 96)):
        one_by_one = RadixPolicy(4, size, 2, strand=1, subgroups=False)
        assert fitted_radix(one_by_one, key_for("u4"), 32, none).group_size == found


def test_where_a_workgroup_is_too_large_the_greatest_power_of_two_is_taken_that_fits() -> None:
    """And then smaller digits."""
    asked, found = RadixPolicy(4, 96, 8, 32), set[tuple[int, int]]()
    for memory in range(100, 12_000, 100):
        try:
            policy = fitted_radix(asked, key_for("u4"), 32, device(memory, group_size=200))
        except CapabilityError:
            continue
        found.add((policy.digit_bits, policy.group_size))
    assert found == {(4, 96), (4, 64), (4, 32), (2, 8)}
    assert fitted_radix(asked, key_for("u4"), 32, device(1 << 16, group_size=96)).group_size == 96


def test_rows_of_a_selection_share_the_largest_buffer() -> None:
    limits = attrs.evolve(device(1 << 14).limits, storage_bytes=80_000)
    key = key_for("u2")
    assert rows_within(key, 100, 10, limits, 0) == 80_000 // (2 * 100)
    assert rows_within(key, 100, 90, limits, 0) == 80_000 // (8 * 90)
    assert rows_within(key, 100, 90, limits, 1000) == 80
    assert rows_within(key, 0, 0, limits, 0) == 80_000


@pytest.mark.parametrize("width", KEYS)
def test_a_selection_by_parts_keeps_its_tile_and_as_many_candidates_as_fit(width: int) -> None:
    """By smaller workgroups with more items."""
    asked, k = SelectByParts(PartPolicy(group_size=64, items=4, sets=32, kept=100)), 2
    state, sizes = state_bytes(KEYS[width]), set[int]()
    for memory in range(100, 5000, 12):
        try:
            found = asked.fitted(KEYS[width], 1000, k, device(memory, group_size=32)).policy
        except CapabilityError:
            assert memory < 4 * (DIGITS + 2) + 5 * state  # two sets' minima, what k of them give, and two kept
            continue
        held = held_by(top_k(KEYS[width], 1, 1000, k, SortOrder.ASCENDING, SelectByParts(found)))
        assert held <= memory
        assert found.kept == 100 or held + state > memory
        assert found.tile == 256
        assert found.sets == min(32, found.group_size)
        sizes.add(found.group_size)
    assert sizes == {2, 4, 8, 16, 32}
    least = 4 * (DIGITS + 2) + 3 * state  # one set, what is the least of its minima, and what is kept
    assert asked.fitted(KEYS[width], 1000, 1, device(least)).policy.kept == 1
    with pytest.raises(CapabilityError):
        asked.fitted(KEYS[width], 1000, 1, device(least - 1))
    with pytest.raises(CapabilityError, match="k: 33 is more"):
        asked.fitted(KEYS[width], 1000, 33, device(5000))
    huge = SelectByParts(PartPolicy(group_size=64, items=200, sets=32, kept=100))
    assert huge.fitted(KEYS[width], 1000, k, device(5000, group_size=32)).policy.items == 256


@pytest.mark.parametrize("width", KEYS)
def test_rows_in_registers_give_up_lanes_first_and_items_then(width: int) -> None:
    """Until each lane's block, with a word between it and the next, finds room; then as many rows as do beside it."""
    asked, halvings = BitonicRows(lanes=32, items=8, most_items=32, group_size=256), [(32, 32)]
    while halvings[-1] != (1, 1):
        lanes, items = halvings[-1]
        halvings.append((lanes // 2, items) if lanes > 1 else (1, items // 2))
    assert len(halvings) == 11
    edges = [lanes * (items + 1) * width for lanes, items in halvings]
    assert edges == sorted(edges, reverse=True)
    for edge, (lanes, items), after in zip(edges, halvings, [*halvings[1:], None], strict=True):
        found = asked.fitted(KEYS[width], 10, device(edge))
        assert (found.lanes, found.most_items, found.items) == (lanes, items, min(8, items))
        assert found.group_size == lanes, "no room is left for a second row"
        twice = asked.fitted(KEYS[width], 10, device(2 * edge, group_size=128))
        assert twice.group_size <= 128
        if after is None:
            with pytest.raises(CapabilityError, match="too little workgroup memory"):
                asked.fitted(KEYS[width], 10, device(edge - 1))
        else:
            less = asked.fitted(KEYS[width], 10, device(edge - 1))
            assert (less.lanes, less.most_items) == after
    assert asked.fitted(KEYS[width], 10, device(1 << 20)) == asked
    assert asked.fitted(KEYS[width], 10, device(1 << 20, lanes=8)).lanes == 8
    assert asked.fitted(KEYS[width], 10, device(1 << 20, group_size=16)).lanes == 16
    none = attrs.evolve(device(1 << 20), capabilities=frozenset[Capability]())
    assert asked.fitted(KEYS[width], 10, none).lanes == 1


ALGORITHMS: tuple[SortAlgorithm, ...] = (
    Bitonic(BitonicPolicy(tile=64, group_size=16, fused_passes=2)), Bitonic(BitonicPolicy(tile=16, group_size=16)),
    BitonicRows(lanes=8, items=2, most_items=16, group_size=32), RadixRows(2, 16, 64, 16, 4, subgroups=False),
    Radix(RadixPolicy(4, 16, 2, 16, subgroups=False)), Radix(RadixPolicy(5, 64, 3, 16)),
)  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_as_many_rows_are_sorted_at_once_as_there_are_workgroups_for(algorithm: SortAlgorithm) -> None:
    """And not one more: of any length, up to the longest that a sort of rows takes."""
    key, most_groups, longest = KEYS[4], 1000, getattr(algorithm, "capacity", 5000)
    assert longest in (128, 5000)

    def groups(rows: int) -> int:
        return max(
            one.grid.groups for one in algorithm.schedule(key, rows, length, SortOrder.ASCENDING, place).launches
        )

    place = algorithm.placements(key)[0]
    for length in (2, 3, 15, 16, 17, 63, 64, 65, 128, 129, 1000, 5000):
        rows = algorithm.most_rows(length, most_groups)
        assert (rows > 0) == (length <= longest), length
        if rows:
            assert groups(rows) <= most_groups
            assert groups(rows + 1) > most_groups, length
    assert algorithm.most_rows(longest + 1, most_groups) == 0 or longest == 5000
    assert algorithm.most_rows(2, 1 << 40) <= ((1 << 32) - 1) // 2
